"""The demo: a scripted Thursday on the example cluster, written as a recording.

28 of the 32 GPUs of ml-shared-01 are allocated, every team is within its quota, and still most of
what the day costs goes to GPUs that do nothing (times are UTC, the replay runs 08:00 to 20:00):

- product-genai: `notebook-llm-eval` has held 8 GPUs idle since Tuesday 19:40, about 30 GiB each.
- research: one of the 8 GPUs of `sweep-vision` stops at 08:20 and stays idle.
- platform-mlops: the 4 GPUs of `nightly-eval` are idle from 10:02 and work again from 13:31.
- product-genai: the 2 GPUs of `adapter-export` have no telemetry: nobody can say.
- research: the 6 GPUs of `pretrain-encoder` work all day; `dataset-checksum` needs none.

At 15:02 HyperPod reports a node healthy: an event, and so a snapshot between two ticks.
The same bytes are written every time: nothing is random and nothing reads a clock.
"""

from local.demo_recording.recording import write
from local.demo_recording.script import gpu_uuid

__all__ = ["gpu_uuid", "write"]
