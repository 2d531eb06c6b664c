"""The demo: a scripted Thursday on the example cluster, written as a recording.

20 of the 32 GPUs of ml-shared-01 are allocated and nearly half of those do nothing, while one job has
waited for two days and another loses its work again and again: all of it within the rules (times are UTC, the replay runs 08:00 to 20:00; script.py says what holds when, and why):

- platform-mlops uses 6 GPUs, the 4 of its quota and the 2 that its limit lets it borrow.
  `rerank-train` has waited for 4 more since Tuesday 07:50, while research could lend 8.
- `eval-sweep` runs on the 2 borrowed GPUs until research wants its own: preempted twice before the
  day, at 09:31 and at 14:09, and never with a checkpoint.
- research: `layer-probe-18` (09:31 to 10:57) and `layer-probe-19` (14:09 to 15:28) need all 14.
- research: `pretrain-encoder` works all day and writes a checkpoint every 24 minutes;
  `dataset-checksum` needs no GPU. One of the 2 GPUs of `sweep-vision` stops at 08:20 and stays idle.
- platform-mlops: the 4 GPUs of `checkpoint-eval` are idle from 10:02 and work again from 13:31.
- product-genai: `notebook-llm-eval` has held 8 GPUs idle since Tuesday 19:40, about 30 GiB each; the
  2 GPUs of `adapter-export` have no telemetry: nobody can say.

At 15:02 HyperPod reports a node healthy: an event, and so a snapshot between two ticks.
The same bytes are written every time: nothing is random and nothing reads a clock.
"""

from local.demo_recording.recording import write

__all__ = ["write"]
