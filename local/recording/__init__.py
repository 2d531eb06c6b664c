"""A recording: the folder that holds what a cluster looked like over a period (docs/recordings.md).

Opening one checks everything that can be checked without a replay, so that a bad recording ends
with one clear line before anything runs. A recording is read, never written to.
"""

from local.recording.loader import Recording
from local.recording.moments import moment, moment_name

__all__ = ["Recording", "moment", "moment_name"]
