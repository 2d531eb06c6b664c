"""Write the recordings of Slack anew: `python -m tests.alerting`."""

import shutil

from tests.alerting.every import EVERY
from tests.alerting.kit import RECORDINGS

if __name__ == "__main__":
    shutil.rmtree(RECORDINGS, ignore_errors=True)
    for one in EVERY:
        print(one.record(RECORDINGS))
