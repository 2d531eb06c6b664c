"""Write the recordings of all faults anew: `python -m tests.faults`."""

import shutil

from tests.faults import gpu_holders, gpu_values, idle_claims
from tests.faults.kit import RECORDINGS

if __name__ == "__main__":
    shutil.rmtree(RECORDINGS, ignore_errors=True)
    for fault in (*gpu_values.FAULTS, *gpu_holders.FAULTS, *idle_claims.FAULTS):
        print(fault.record(RECORDINGS))
