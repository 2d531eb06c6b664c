"""What listing the demo's checkpoint bucket shows: one job of research writes, others do not."""

from datetime import timedelta

from local.demo_recording.documents import Json
from local.demo_recording.script import FROM, TO
from steward.cluster.figures import stamp

BUCKET = "ml-shared-01-checkpoints"
EVERY, STEPS = timedelta(minutes=24), 500
"""From one checkpoint of `pretrain-encoder` to the next."""

_FILES = {"__0_0.distcp": 2_684_354_560, "__1_0.distcp": 2_684_354_560, ".metadata": 183_402}
"""Files of one checkpoint; `.metadata` is written last."""


def listing() -> list[Json]:
    """List the objects of the day, from shortly before it on, the oldest first."""
    count = (TO - FROM) // EVERY
    return [
        {
            "bucket": BUCKET,
            "key": f"research/pretrain-encoder/step-{112_000 + STEPS * number:07}/{name}",
            "last_modified": stamp(FROM + (number - 1) * EVERY + timedelta(seconds=41 + index)),
            "size": size,
        }
        for number in range(count + 1)
        for index, (name, size) in enumerate(_FILES.items())
    ]
