"""Who holds which GPUs on the day, from when to when, and what everything is called."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import NAMESPACE_DNS, uuid5

from local.demo_recording.documents import HERE, Json, read


def utc(text: str) -> datetime:
    """Read a time of the script."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


FROM, TO = utc("2026-11-05T08:00"), utc("2026-11-05T20:00")
FOLDERS = (utc("2026-11-05T06:30"), utc("2026-11-05T11:00"))
"""When Kubernetes was looked at: before and after `dataset-checksum` ends."""

HISTORY = utc("2026-11-05T06:57")  # the first tick's window reaches back to 06:58
NOTEBOOK_HISTORY, NOTEBOOK_IDLE = utc("2026-11-03T19:15"), utc("2026-11-03T19:40")
SWEEP_IDLE = utc("2026-11-05T08:20")
EVAL_IDLE, EVAL_AWAKE = utc("2026-11-05T10:02"), utc("2026-11-05T13:31")

INSTANCES = (
    "i-0a41c7de83b5f2601",
    "i-0b93e15fa27cd6408",
    "i-0c7d20b86e49fa135",
    "i-0e58f6a1d3927bc04",
)
NODES = tuple(f"hyperpod-{instance}" for instance in INSTANCES)

QUOTAS = {"platform-mlops": 4, "research": 14, "product-genai": 10}
CLASSES = {"inference-serving": 100, "production-training": 75, "experimentation": 25}


def uid(*names: str) -> str:
    """Make the UUID of something of this cluster: the same names, the same UUID."""
    return str(uuid5(NAMESPACE_DNS, "/".join(("ml-shared-01", *names))))


def gpu_uuid(node: int, gpu: int) -> str:
    """UUID of a GPU, by node and index (0 to 7)."""
    return f"GPU-{uid('GPU', NODES[node], str(gpu))}"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of the script: `pods` pods of `gpus` GPUs each, on one node from its first GPU on."""

    team: str
    kind: str
    name: str
    pods: int = 1
    gpus: int
    node: int
    priority: str
    created: str
    created_by: str
    image: str
    args: str
    env: Json
    telemetry: bool = True
    finished: str | None = None

    @property
    def namespace(self) -> str:
        """Namespace that HyperPod made for the team."""
        return f"hyperpod-ns-{self.team}"

    @property
    def replica_set(self) -> str:
        """Name of a Deployment's ReplicaSet."""
        return f"{self.name}-{uid('ReplicaSet', self.name)[:8]}"

    @property
    def podset(self) -> str:
        """Name of the Workload's pod set."""
        return "worker" if self.kind == "PyTorchJob" else "main"

    @property
    def container(self) -> str:
        """Name of the pods' container; the training operator demands its own."""
        return "pytorch" if self.kind == "PyTorchJob" else "main"

    def pod_name(self, index: int) -> str:
        """Name of a pod, by the rule of the controller that makes it."""
        suffix = uid("Pod", self.name, str(index))[:5]
        return {
            "PyTorchJob": f"{self.name}-worker-{index}",
            "StatefulSet": f"{self.name}-{index}",
            "Deployment": f"{self.replica_set}-{suffix}",
        }.get(self.kind, f"{self.name}-{suffix}")

    @property
    def requests(self) -> dict[str, int]:
        """What each pod requests: vCPU, GiB, GPUs."""
        if not self.gpus:
            return {"cpu": 8, "memory": 32}
        return {"cpu": 22 * self.gpus, "memory": 220 * self.gpus, "nvidia.com/gpu": self.gpus}

    def running(self, at: datetime) -> bool:
        """Whether it has not finished."""
        return self.finished is None or at < utc(self.finished)


JOBS = tuple(Job(**one) for one in read((HERE / "jobs.yaml").read_text())[0])
