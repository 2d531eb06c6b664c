"""The metrics that the detectors read, as data: names, labels, and what switches each on."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Backend(StrEnum):
    """Where metrics are asked for."""

    PROMETHEUS = "prometheus"
    CONTAINER_INSIGHTS = "container_insights"


class Hardware(StrEnum):
    """Which accelerators a metric is of."""

    ANY = "any"
    GPU = "gpu"
    NEURON = "neuron"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that detectors want to know, and the metrics that tell it.

    Attributes
    ----------
    metrics : tuple of str
        Any one of them is enough.
    on_every : tuple of tuple of str
        Labels (dimensions) that each series needs; each in its spellings, one of which is enough.
    on_some : tuple of tuple of str
        Labels that series of held accelerators need; those of free ones lack them rightly.
    when : str
        Label that shows that there is anything to measure; without it the need does not arise.
    required : bool
        Whether detectors say *unknown* without it.
    activity : bool
        Whether idleness is read from it, as far back as the beginning of an idle stretch.
    add_on, setting : str
        The EKS add-on that collects it, and which of its settings (empty: none of its own).
    """

    name: str
    backend: Backend
    hardware: Hardware = Hardware.ANY
    detectors: tuple[str, ...]
    metrics: tuple[str, ...]
    on_every: tuple[tuple[str, ...], ...] = ()
    on_some: tuple[tuple[str, ...], ...] = ()
    when: str = ""
    required: bool = False
    activity: bool = False
    add_on: str
    setting: str = ""
    remedy: str


OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
INSIGHTS = "amazon-cloudwatch-observability"

_DEVICE = (("UUID", "uuid"), ("Hostname", "hostname", "node", "kubernetes_node"))
_HOLDER = (("pod", "exported_pod"), ("namespace", "exported_namespace"))
_PROM, _CW = Backend.PROMETHEUS, Backend.CONTAINER_INSIGHTS
_ACCELERATED = "acceleratedComputeMetrics"
_KUEUE_ON = (
    f"set metricsProvider.taskGovernanceMetrics.level of {OBSERVABILITY} to BASIC: "
    "it is DISABLED by default"
)
_DCGM_MORE = (
    f"set metricsProvider.{_ACCELERATED}.level of {OBSERVABILITY} to ADVANCED, or add the "
    "counter to dcgm-exporter's list"
)
_INSIGHTS_ON = (
    f"install {INSIGHTS} with enhanced observability and acceleratedComputeMetrics (on by default)"
)

NEEDS = (
    Need(
        name="activity of each GPU",
        backend=_PROM,
        hardware=Hardware.GPU,
        detectors=("idle_gpus", "telemetry"),
        metrics=("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"),
        on_every=_DEVICE,
        on_some=_HOLDER,
        required=True,
        activity=True,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy=f"set metricsProvider.{_ACCELERATED}.level of {OBSERVABILITY} to BASIC or more; "
        "pods are named only by a dcgm-exporter that runs with DCGM_EXPORTER_KUBERNETES=true",
    ),
    Need(
        name="activity of MIG slices",
        backend=_PROM,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("DCGM_FI_PROF_GR_ENGINE_ACTIVE",),
        on_every=_DEVICE,
        on_some=_HOLDER,
        when="GPU_I_PROFILE",
        activity=True,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="only where cards are partitioned; utilisation says nothing of a slice. "
        + _DCGM_MORE,
    ),
    Need(
        name="memory held",
        backend=_PROM,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("DCGM_FI_DEV_FB_USED",),
        on_every=_DEVICE,
        on_some=_HOLDER,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="idle and idle_held cannot be told apart without it. " + _DCGM_MORE,
    ),
    Need(
        name="tensor activity",
        backend=_PROM,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",),
        on_every=_DEVICE,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="a hang is suspected from this or from power. " + _DCGM_MORE,
    ),
    Need(
        name="power drawn",
        backend=_PROM,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("DCGM_FI_DEV_POWER_USAGE",),
        on_every=_DEVICE,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="a hang is suspected from this or from tensor activity. " + _DCGM_MORE,
    ),
    Need(
        name="power limit",
        backend=_PROM,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"),
        on_every=_DEVICE,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="without it the limit is the card's model's. Add the counter to dcgm-exporter's list",
    ),
    Need(
        name="activity of each Neuron core",
        backend=_PROM,
        hardware=Hardware.NEURON,
        detectors=("idle_gpus", "telemetry"),
        metrics=("neuroncore_utilization_ratio",),
        on_every=(("neuroncore",),),
        on_some=_HOLDER,
        required=True,
        activity=True,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy=f"set metricsProvider.{_ACCELERATED}.level of {OBSERVABILITY} to BASIC or more, "
        "which runs neuron-monitor",
    ),
    Need(
        name="memory held by Neuron cores",
        backend=_PROM,
        hardware=Hardware.NEURON,
        detectors=("idle_gpus",),
        metrics=(
            "neuroncore_memory_usage_constants",
            "neuroncore_memory_usage_model_code",
            "neuroncore_memory_usage_model_shared_scratchpad",
            "neuroncore_memory_usage_runtime_memory",
            "neuroncore_memory_usage_tensors",
        ),
        on_every=(("neuroncore",),),
        on_some=_HOLDER,
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="idle and idle_held cannot be told apart without it. neuron-monitor exports it",
    ),
    Need(
        name="Neuron cores of a device",
        backend=_PROM,
        hardware=Hardware.NEURON,
        detectors=("idle_gpus",),
        metrics=("neuron_hardware_info",),
        on_every=(("neuroncore_per_device_count",),),
        add_on=OBSERVABILITY,
        setting=_ACCELERATED,
        remedy="tells which cores make a device. neuron-monitor exports it",
    ),
    Need(
        name="pending workloads of each queue",
        backend=_PROM,
        detectors=("pending",),
        metrics=("kueue_pending_workloads",),
        on_every=(("cluster_queue",), ("status",)),
        add_on=OBSERVABILITY,
        setting="taskGovernanceMetrics",
        remedy=f"a cross-check only. {_KUEUE_ON}",
    ),
    Need(
        name="admitted workloads of each queue",
        backend=_PROM,
        detectors=("pending",),
        metrics=("kueue_admitted_active_workloads",),
        on_every=(("cluster_queue",),),
        add_on=OBSERVABILITY,
        setting="taskGovernanceMetrics",
        remedy=f"a cross-check only. {_KUEUE_ON}",
    ),
    Need(
        name="evictions of each queue",
        backend=_PROM,
        detectors=("preemptions",),
        metrics=("kueue_evicted_workloads_total",),
        on_every=(("cluster_queue",), ("reason",)),
        add_on=OBSERVABILITY,
        setting="taskGovernanceMetrics",
        remedy=f"a cross-check only. {_KUEUE_ON}",
    ),
    Need(
        name="quota and usage of each queue",
        backend=_PROM,
        detectors=("borrowing",),
        metrics=(
            "kueue_cluster_queue_resource_usage",
            "kueue_cluster_queue_nominal_quota",
        ),
        on_every=(("cluster_queue",), ("flavor",), ("resource",)),
        add_on=OBSERVABILITY,
        setting="taskGovernanceMetrics",
        remedy=f"a cross-check only; Kueue needs metrics.enableClusterQueueResources. {_KUEUE_ON}",
    ),
    Need(
        name="Kueue's version",
        backend=_PROM,
        detectors=("pending",),
        metrics=("kueue_build_info",),
        on_every=(("git_version",),),
        add_on=OBSERVABILITY,
        setting="taskGovernanceMetrics",
        remedy=f"Kueue 0.13 and later tell it. {_KUEUE_ON}",
    ),
    Need(
        name="pods and their nodes",
        backend=_PROM,
        detectors=("telemetry",),
        metrics=("kube_pod_info",),
        on_every=(("namespace",), ("pod",), ("node",)),
        add_on=OBSERVABILITY,
        remedy="for dashboards only: the steward joins on the Kubernetes API's own answers. "
        "kube-state-metrics exports it",
    ),
    Need(
        name="activity of each GPU",
        backend=_CW,
        hardware=Hardware.GPU,
        detectors=("idle_gpus", "telemetry"),
        metrics=("pod_gpu_utilization",),
        on_every=(("ClusterName",), ("Namespace",), ("FullPodName",), ("GpuDevice",)),
        required=True,
        activity=True,
        add_on=INSIGHTS,
        remedy=_INSIGHTS_ON,
    ),
    Need(
        name="memory held",
        backend=_CW,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("pod_gpu_memory_used",),
        on_every=(("ClusterName",), ("Namespace",), ("FullPodName",), ("GpuDevice",)),
        add_on=INSIGHTS,
        remedy=f"idle and idle_held cannot be told apart without it. {_INSIGHTS_ON}",
    ),
    Need(
        name="tensor activity",
        backend=_CW,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("pod_gpu_tensor_core_utilization",),
        on_every=(("ClusterName",), ("Namespace",), ("FullPodName",), ("GpuDevice",)),
        add_on=INSIGHTS,
        remedy=f"a hang is suspected from this or from power. {_INSIGHTS_ON}",
    ),
    Need(
        name="power drawn",
        backend=_CW,
        hardware=Hardware.GPU,
        detectors=("idle_gpus",),
        metrics=("pod_gpu_power_draw",),
        on_every=(("ClusterName",), ("Namespace",), ("FullPodName",), ("GpuDevice",)),
        add_on=INSIGHTS,
        remedy=f"a hang is suspected from this or from tensor activity. {_INSIGHTS_ON}",
    ),
    Need(
        name="activity of each Neuron core",
        backend=_CW,
        hardware=Hardware.NEURON,
        detectors=("idle_gpus", "telemetry"),
        metrics=("pod_neuroncore_utilization",),
        on_every=(
            ("ClusterName",),
            ("Namespace",),
            ("FullPodName",),
            ("NeuronDevice",),
            ("NeuronCore",),
        ),
        required=True,
        activity=True,
        add_on=INSIGHTS,
        remedy=_INSIGHTS_ON,
    ),
    Need(
        name="memory held by Neuron cores",
        backend=_CW,
        hardware=Hardware.NEURON,
        detectors=("idle_gpus",),
        metrics=("pod_neuroncore_memory_usage_total",),
        on_every=(("ClusterName",), ("Namespace",), ("FullPodName",), ("NeuronDevice",)),
        add_on=INSIGHTS,
        remedy=f"idle and idle_held cannot be told apart without it. {_INSIGHTS_ON}",
    ),
    Need(
        name="health of each node",
        backend=_CW,
        detectors=("capacity",),
        metrics=("hyperpod_node_health_status_schedulable",),
        on_every=(("ClusterName",), ("InstanceId",)),
        add_on=INSIGHTS,
        remedy=f"a cross-check only. {_INSIGHTS_ON}",
    ),
    Need(
        name="queues",
        backend=_CW,
        detectors=("pending", "preemptions", "borrowing"),
        metrics=(
            "kueue_pending_workloads",
            "kueue_admitted_active_workloads",
            "kueue_evicted_workloads_total",
            "kueue_cluster_queue_resource_usage",
            "kueue_cluster_queue_nominal_quota",
        ),
        on_every=(("ClusterName",), ("ClusterQueue",)),
        add_on=INSIGHTS,
        setting="kueue_container_insights",
        remedy=f"a cross-check only. Set kueue_container_insights: true in {INSIGHTS} v2.4.0 or "
        "later",
    ),
)
"""Every metric that a detector, a cross-check or a recording reads."""


def needs_of(backend: Backend, hardware: Iterable[Hardware]) -> tuple[Need, ...]:
    """Choose what a cluster with this backend and these accelerators needs."""
    wanted = {Hardware.ANY, *hardware}
    return tuple(one for one in NEEDS if one.backend is backend and one.hardware in wanted)


def metric_names(needs: Iterable[Need], *, activity: bool | None = None) -> tuple[str, ...]:
    """Name the metrics of some needs, each once; `activity`: only those of activity, or the rest."""
    needs = tuple(needs)
    active = {metric for need in needs if need.activity for metric in need.metrics}
    names = dict.fromkeys(metric for need in needs for metric in need.metrics)
    return tuple(one for one in names if activity is None or (one in active) is activity)
