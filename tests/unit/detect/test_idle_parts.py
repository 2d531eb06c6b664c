"""What an idle finding rests on: what went dark after it was idle holds the finding, too."""

from copy import replace

from steward.cluster.accelerators import IdleSince
from steward.cluster.memory import Memory
from steward.detect.idle import detect
from tests.builders import a_cluster, a_snapshot, a_window, an_accelerator, at


def test_a_finding_rests_on_an_accelerator_that_went_dark_while_it_was_idle():
    # Nobody has seen GPU-2 work again. If it were left out and GPU-1 woke up, the alert would end
    # as released, although the job still holds both and unknown resolves nothing.
    found = IdleSince(first=at("8:58"), last=at("11:58"), exact=True, observed_seconds=10_800)
    both = [an_accelerator(uuid, idle_since=found) for uuid in ("GPU-1", "GPU-2")]
    first = detect(a_snapshot(*both), Memory(cluster="ml-shared-01"), a_cluster())
    dark = replace(both[1], windows=(a_window(None, present=0),), last_sample=None, idle_since=None)
    (finding,) = detect(
        a_snapshot(both[0], dark, at=at("12:05")), first.memory, a_cluster()
    ).findings
    assert (finding.gpus, finding.parts) == (1, ("uid-sweep/GPU-1", "uid-sweep/GPU-2"))
