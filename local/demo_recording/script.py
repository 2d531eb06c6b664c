"""Who holds which GPUs on the day, from when to when, and what everything is called.

What the quotas of platform-mlops (4 GPUs, and 2 borrowed at most) and research (14) hold:

================== ============== ============ ==== ==========================================
from, to           platform-mlops research     left so that
================== ============== ============ ==== ==========================================
Wed 17:01-09:31:21 4 + 2 = 6      2 + 2 = 4      8  it is at its limit, and research could lend
09:31:26-10:57:20  4              4 + 10 = 14    0  nothing could be lent, whatever the limit
10:57:21-14:09:21  4 + 2 = 6      2 + 2 = 4      8  as in the morning
14:09:26-15:28:20  4              4 + 10 = 14    0  as at ten
15:28:21-          4 + 2 = 6      2 + 2 = 4      8  as in the morning
================== ============== ============ ==== ==========================================

The 10 GPUs of a `layer-probe` are research's own, but only 8 are left: Kueue takes back the 2 that
platform-mlops borrows (`reclaimWithinCohort: Any`), and of its jobs the one with the least priority,
`eval-sweep`. When the probe is done Kueue looks at what waits, the oldest first: `eval-sweep` fits
and is back at once; `rerank-train` needs 4 where the limit leaves 0. Neither may preempt: nobody
borrows from platform-mlops, and none of its jobs has less priority than they.

Only GPUs are ever short. At 12 vCPU and 120 GiB a GPU all 10 that platform-mlops asks for take 120
vCPU and 1200 GiB, and it may have 144 and 1536. Research's 14 take 316 vCPU and 3112 GiB with
`dataset-checksum`; its own are 336 and 3584.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_DNS, uuid5

from local.demo_recording.documents import HERE, Json, read


def utc(text: str) -> datetime:
    """Read a time of the script."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


FROM, TO = utc("2026-11-05T08:00"), utc("2026-11-05T20:00")
FOLDERS = tuple(utc(f"2026-11-05T{time}") for time in ("06:30", "09:35", "11:00", "14:10", "15:30"))
"""When Kubernetes was looked at: first, and whenever a probe has begun or ended."""

HISTORY = utc("2026-11-05T06:57")  # the first tick's window reaches back to 06:58
NOTEBOOK_HISTORY, NOTEBOOK_IDLE = utc("2026-11-03T19:15"), utc("2026-11-03T19:40")
SWEEP_IDLE = utc("2026-11-05T08:20")
EVAL_IDLE, EVAL_AWAKE = utc("2026-11-05T10:02"), utc("2026-11-05T13:31")

NEVER = datetime.max.replace(tzinfo=UTC)
"""When a run ends that goes on."""

STOPPING = timedelta(seconds=4)
"""From an eviction until the pods are gone, and with them the hold on the quota."""

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
class Run:
    """A job's time on its GPUs: from its admission to its end, or to its eviction.

    Attributes
    ----------
    preemptor : str
        The job that it was evicted for; empty where it ended by itself, or goes on.
    """

    start: datetime
    end: datetime = NEVER
    preemptor: str = ""

    @property
    def released(self) -> datetime:
        """When its quota was free again."""
        return self.end + STOPPING if self.preemptor else self.end


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of the script.

    Attributes
    ----------
    gpus, cpu, memory : int
        What a pod requests, memory in GiB.
    places : list of list of int
        For each pod its node and its first GPU there.
    """

    team: str
    kind: str
    name: str
    gpus: int
    cpu: int
    memory: int
    places: list[list[int]]
    priority: str
    created: datetime
    created_by: str
    image: str
    args: str
    env: Json
    telemetry: bool = True
    runs: tuple[Run, ...]

    @property
    def namespace(self) -> str:
        """Namespace that HyperPod made for the team."""
        return namespace_of(self.team)

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

    def pod_name(self, index: int, run: Run) -> str:
        """Name of a pod of a run, by the rule of the controller that makes it."""
        suffix = uid("Pod", self.name, run.start.isoformat(), str(index))[:5]
        return {
            "PyTorchJob": f"{self.name}-worker-{index}",
            "StatefulSet": f"{self.name}-{index}",
            "Deployment": f"{self.replica_set}-{suffix}",
        }.get(self.kind, f"{self.name}-{suffix}")

    @property
    def requests(self) -> dict[str, int]:
        """What each pod requests: vCPU, GiB, GPUs."""
        gpus = {"nvidia.com/gpu": self.gpus} if self.gpus else {}
        return {"cpu": self.cpu, "memory": self.memory} | gpus

    def run(self, at: datetime) -> Run | None:
        """Find the run that holds quota at a time."""
        return next((run for run in self.runs if run.start <= at < run.released), None)

    def finish(self, at: datetime) -> Run | None:
        """Find the run that has finished the job."""
        return next((run for run in self.runs if run.end <= at and not run.preemptor), None)

    def preempted(self, at: datetime) -> list[Run]:
        """List the runs that ended for another job's sake."""
        return [run for run in self.runs if run.preemptor and run.released <= at]


def namespace_of(team: str) -> str:
    """Name the namespace that HyperPod makes for a team."""
    return f"hyperpod-ns-{team}"


def _job(given: Json) -> Job:
    created = utc(given["created"])
    runs = tuple(_run(one, created) for one in given.get("runs", [{}]))
    return Job(**given | {"created": created, "runs": runs})


def _run(given: Json, created: datetime) -> Run:
    start = utc(given["start"]) if "start" in given else created
    end = utc(given["end"]) if "end" in given else NEVER
    return Run(start=start, end=end, preemptor=given.get("preemptor", ""))


JOBS = tuple(_job(one) for one in read((HERE / "jobs.yaml").read_text(encoding="utf-8"))[0])
