"""Accelerator metrics: which are read, which values they can have, what one of them is worth. Pure.

Sources: `etc/default-counters.csv` of NVIDIA/dcgm-exporter for names and units; `dcgm_structs.h` of
NVIDIA/DCGM for the blank values, which all lie far above every limit here;
`neuron-monitor-prometheus.py` for what is exported of a NeuronCore (0-1, and bytes): those in use,
and one whose runtime ended keeps its last value until no runtime is left.
"""

from typing import NamedTuple

from steward.ports import Signal


class Family(NamedTuple):
    """A metric, the values it can have (0 to `highest`) and how many of its units are one of ours."""

    metric: str
    highest: float
    unit: float = 1

    def valid(self, value: float) -> bool:
        """Whether the value can be true; NaN cannot."""
        return 0 <= value <= self.highest


ENGINE = Family("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1)
UTILISATION = Family("DCGM_FI_DEV_GPU_UTIL", 100, unit=100)
NEURON_CORE = Family("neuroncore_utilization_ratio", 1)
TENSOR = Family("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1)
POWER = Family("DCGM_FI_DEV_POWER_USAGE", 10_000)  # W: no card draws 10 kW

BY_SIGNAL = {
    Signal.ACTIVITY: (ENGINE, UTILISATION, NEURON_CORE),
    Signal.TENSOR: (TENSOR,),
    Signal.POWER: (POWER,),
}
"""Best first: where a device has the first, the others say nothing of it."""

ACTIVITY = BY_SIGNAL[Signal.ACTIVITY]
WINDOWED = (*ACTIVITY, TENSOR, POWER)
"""Read as statistics over windows."""

MEMORY = (
    Family("DCGM_FI_DEV_FB_USED", 2**24, unit=2**-20),  # MiB: no card has 16 TiB
    *(
        Family(f"neuroncore_memory_usage_{kind}", 2**44)
        for kind in (
            "constants",
            "model_code",
            "model_shared_scratchpad",
            "runtime_memory",
            "tensors",
        )
    ),
)
"""A device's metrics, and all parts of it, add up to the memory it holds, in bytes."""

POWER_LIMITS = (
    Family("DCGM_FI_DEV_POWER_MGMT_LIMIT", 10_000),
    Family("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 10_000),
)
"""Best first."""

LEVELS = (*MEMORY, *POWER_LIMITS)
"""Read as the newest value."""

NEURON_HARDWARE = "neuron_hardware_info"
"""Its label `neuroncore_per_device_count` tells which cores make a device."""

BY_METRIC = {family.metric: family for family in (*WINDOWED, *LEVELS)}
