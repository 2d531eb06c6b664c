"""Write the recordings of queues anew: `python -m tests.queues`."""

import shutil

from tests.queues.every import EVERY
from tests.queues.scene import RECORDINGS

if __name__ == "__main__":
    shutil.rmtree(RECORDINGS, ignore_errors=True)
    for one in EVERY:
        print(one.record(RECORDINGS))
