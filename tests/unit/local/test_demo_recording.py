"""The right answers here are the script's, as the module's docstring tells it, not its code's."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from local.demo_recording import write
from local.recording import Recording

POLICY = Path(__file__).parents[3] / "layers" / "policy" / "governance.yaml"
# The contract's list: a recording that lacks one of these says that it was denied.
RESOURCES = """\
    workloads clusterqueues localqueues cohorts topologies resourceflavors workloadpriorityclasses
    namespaces nodes pods events jobs replicasets deployments statefulsets pytorchjobs
    hyperpodpytorchjobs rayclusters rayjobs jobsets networkpolicies roles rolebindings clusterroles
    clusterrolebindings serviceaccounts resourcequotas validatingadmissionpolicies
    validatingadmissionpolicybindings
"""
GPU = "nvidia.com/gpu"
SAMPLE = re.compile(r"(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+) (?P<seconds>\d+)")
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
ACTIVITY = {ENGINE: 1.0, "DCGM_FI_DEV_GPU_UTIL": 100.0}


@dataclass(frozen=True)
class Series:
    labels: dict[str, str]
    samples: list[tuple[int, float]]

    @property
    def owner(self) -> str:
        return re.sub(r"(-worker)?-\w+$", "", self.labels["pod"])

    def idle(self) -> list[int]:
        return [seconds for seconds, value in self.samples if value <= 0.01]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def metrics(folder: Path) -> dict[str, list[Series]]:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for line in (folder / "metrics" / "dcgm.om").read_text().splitlines():
        if match := SAMPLE.fullmatch(line):
            series = found.setdefault((match["name"], match["labels"]), [])
            series.append((int(match["seconds"]), float(match["value"])))
        else:
            assert line.startswith("# "), line
    by_name = defaultdict(list)
    for (name, labels), samples in found.items():
        pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        by_name[name].append(Series(pairs, samples))
    return by_name


@pytest.fixture(params=["20261105T063000Z", "20261105T110000Z"])
def objects(folder: Path, request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: json.loads(path.read_text())["items"]
        for path in (folder / "kubernetes" / request.param).glob("*.json")
    }


def answer(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def gpus(pod: dict[str, Any]) -> int:
    containers = pod["spec"]["containers"]
    return sum(int(c["resources"]["requests"].get(GPU, 0)) for c in containers)


def total(queue: dict[str, Any], key: str) -> dict[str, str]:
    (flavor,) = queue["status"][key]
    return {one["name"]: one["total"] for one in flavor["resources"]}


def number(quantity: str) -> int:
    return int(quantity.removesuffix("Gi"))


def team_policies() -> dict[str, dict[str, Any]]:
    (cluster,) = YAML(typ="safe", pure=True).load(POLICY)["clusters"]
    return {team["name"]: team for team in cluster["teams"]}


def test_it_opens_as_a_recording_of_twelve_hours_in_five_minute_ticks(folder: Path) -> None:
    recording = Recording.open(folder)
    assert recording.cluster == "ml-shared-01"
    assert recording.start == datetime(2026, 11, 5, 8, tzinfo=UTC)
    assert recording.end - recording.start == timedelta(hours=12)
    assert recording.tick == timedelta(minutes=5)
    assert recording.governance is None  # the example policy is in force


def test_two_writes_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    def digests(root: Path) -> dict[str, str]:
        files = (path for path in root.rglob("*") if path.is_file())
        return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    assert digests(write(tmp_path)) == digests(folder)


def test_every_resource_of_the_contract_is_recorded(objects: dict[str, Any]) -> None:
    assert sorted(objects) == sorted(RESOURCES.split())


def test_something_changes_between_the_folders(folder: Path) -> None:
    names = ("20261105T063000Z", "20261105T110000Z")
    before, after = (answer(folder, f"kubernetes/{name}/workloads")["items"] for name in names)

    def finished(items: list[dict[str, Any]]) -> list[str]:
        done = {"type": "Finished", "status": "True"}.items()
        conditions = [(w["metadata"]["name"], c) for w in items for c in w["status"]["conditions"]]
        return [name for name, condition in conditions if done <= condition.items()]

    assert finished(before) == []
    (name,) = finished(after)
    assert name.startswith("job-dataset-checksum-")


def test_quotas_are_those_of_the_policy_and_leave_its_buffer(folder: Path) -> None:
    teams = team_policies()
    live = answer(folder, "sagemaker/ListComputeQuotas")["ComputeQuotaSummaries"]
    assert len(live) == len(teams) == 3
    for quota in live:
        team = teams[quota["ComputeQuotaTarget"]["TeamName"]]
        (resource,) = quota["ComputeQuotaConfig"]["ComputeQuotaResources"]
        sharing = quota["ComputeQuotaConfig"]["ResourceSharingConfig"]
        assert resource == {"InstanceType": "ml.p5.48xlarge", "Accelerators": team["accelerators"]}
        assert sharing["Strategy"] == team["sharing"]["strategy"]
        assert sharing.get("BorrowLimit") == team["sharing"].get("borrow_limit_percent")
    # 4 + 14 + 10 of four nodes of eight leave the buffer of 4.
    given = sum(q["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Accelerators"] for q in live)
    nodes = answer(folder, "sagemaker/ListClusterNodes")["ClusterNodeSummaries"]
    assert 8 * len(nodes) - given == 4


def test_priority_classes_are_those_of_the_policy(folder: Path, objects: dict[str, Any]) -> None:
    (cluster,) = YAML(typ="safe", pure=True).load(POLICY)["clusters"]
    weights = {one["name"]: one["weight"] for one in cluster["priority_classes"]}
    described = answer(folder, "sagemaker/DescribeClusterSchedulerConfig")["SchedulerConfig"]
    assert {c["Name"]: c["Weight"] for c in described["PriorityClasses"]} == weights
    classes = objects["workloadpriorityclasses"]
    named = {one["metadata"]["name"]: one["value"] for one in classes}
    assert named == {f"{name}-priority": weight for name, weight in weights.items()}
    for workload in objects["workloads"]:
        assert named[workload["spec"]["priorityClassRef"]["name"]] == workload["spec"]["priority"]


def test_cluster_queues_carry_the_quotas(objects: dict[str, Any]) -> None:
    # BorrowLimit 50 is half of the own quota: 2 of 4, 7 of 14. DontLend is neither in nor out.
    expected = {
        "platform-mlops": ("4", "2", None),
        "research": ("14", "7", None),
        "product-genai": ("10", "0", "0"),
    }
    found = {}
    for queue in objects["clusterqueues"]:
        (flavor,) = queue["spec"]["resourceGroups"][0]["flavors"]
        quota = {one["name"]: one for one in flavor["resources"]}[GPU]
        team = queue["metadata"]["name"].removeprefix("hyperpod-ns-").removesuffix("-clusterqueue")
        found[team] = (quota["nominalQuota"], quota["borrowingLimit"], quota.get("lendingLimit"))
    assert found == expected
    cohorts = {one["metadata"]["name"] for one in objects["cohorts"]}
    assert {one["spec"]["cohortName"] for one in objects["clusterqueues"]} == cohorts


def test_usage_is_what_the_unfinished_workloads_add_up_to(objects: dict[str, Any]) -> None:
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for workload in objects["workloads"]:
        if not any(c["type"] == "Finished" for c in workload["status"]["conditions"]):
            admission = workload["status"]["admission"]
            for pod_set in admission["podSetAssignments"]:
                usage = {name: number(q) for name, q in pod_set["resourceUsage"].items()}
                used[admission["clusterQueue"]].update(usage)
    for queue in objects["clusterqueues"]:
        for key in ("flavorsReservation", "flavorsUsage"):
            amounts = {name: number(q) for name, q in total(queue, key).items()}
            assert +Counter(amounts) == used[queue["metadata"]["name"]]
    for queue in objects["localqueues"]:
        amounts = {name: number(q) for name, q in total(queue, "flavorsUsage").items()}
        assert +Counter(amounts) == used[queue["spec"]["clusterQueue"]]


def test_no_team_exceeds_its_quota(objects: dict[str, Any]) -> None:
    held: Counter[str] = Counter()
    for pod in objects["pods"]:
        held[pod["metadata"]["namespace"].removeprefix("hyperpod-ns-")] += gpus(pod)
    assert held == {name: team["accelerators"] for name, team in team_policies().items()}


def test_every_owner_exists(objects: dict[str, Any]) -> None:
    everything = [one for items in objects.values() for one in items]
    known = {
        (one["apiVersion"], one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]):
        one["metadata"]["uid"]
        for one in everything
    }  # fmt: skip
    assert len(set(known.values())) == len(everything)  # a UID of its own for each
    owned = 0
    for one in everything:
        for owner in one["metadata"].get("ownerReferences", []):
            key = owner["apiVersion"], owner["kind"], one["metadata"]["namespace"], owner["name"]
            assert known[key] == owner["uid"]
            owned += 1
    assert owned == 9 + 1 + 6  # pods, the replica set, workloads


def test_every_pod_has_its_node_and_no_node_has_too_many(objects: dict[str, Any]) -> None:
    capacity = {n["metadata"]["name"]: int(n["status"]["capacity"][GPU]) for n in objects["nodes"]}
    held: Counter[str] = Counter()
    for pod in objects["pods"]:
        held[pod["spec"]["nodeName"]] += gpus(pod)
    assert set(held) == set(capacity)
    assert sorted(held.values()) == [4, 8, 8, 8]
    assert all(held[name] <= count for name, count in capacity.items())


def test_kubernetes_and_sagemaker_name_the_same_nodes(
    folder: Path, objects: dict[str, Any]
) -> None:
    instances = answer(folder, "sagemaker/ListClusterNodes")["ClusterNodeSummaries"]
    names = {f"hyperpod-{one['InstanceId']}" for one in instances}
    assert {one["metadata"]["name"] for one in objects["nodes"]} == names
    assert all(re.fullmatch(r"hyperpod-i-[0-9a-f]{17}", name) for name in names)


def test_every_workload_has_its_queue_and_every_pod_its_workload(objects: dict[str, Any]) -> None:
    queues = {
        (q["metadata"]["namespace"], q["metadata"]["name"]): q["spec"]["clusterQueue"]
        for q in objects["localqueues"]
    }
    assert set(queues.values()) == {q["metadata"]["name"] for q in objects["clusterqueues"]}
    workloads = {}
    for one in objects["workloads"]:
        namespace = one["metadata"]["namespace"]
        workloads[namespace, one["metadata"]["name"]] = one
        assert (
            queues[namespace, one["spec"]["queueName"]]
            == one["status"]["admission"]["clusterQueue"]
        )
    for pod in objects["pods"]:
        metadata = pod["metadata"]
        name = metadata["annotations"]["kueue.x-k8s.io/workload"]
        workload = workloads[metadata["namespace"], name]
        labels = metadata["labels"]
        assert labels["kueue.x-k8s.io/queue-name"] == workload["spec"]["queueName"]
        assert (
            labels["kueue.x-k8s.io/priority-class"] == workload["spec"]["priorityClassRef"]["name"]
        )


def test_every_namespace_is_declared(objects: dict[str, Any]) -> None:
    declared = {one["metadata"]["name"] for one in objects["namespaces"]}
    everything = [one["metadata"] for items in objects.values() for one in items]
    assert {m["namespace"] for m in everything if "namespace" in m} <= declared


def idle_stretches(
    metrics: dict[str, list[Series]], name: str
) -> Iterator[tuple[Series, int, int]]:
    """Yield each series that is ever idle, with its first and last idle sample."""
    for series in metrics[name]:
        if idle := series.idle():
            # One stretch: every sample from its first to its last is idle.
            assert idle == [t for t, _ in series.samples if idle[0] <= t <= idle[-1]]
            yield series, idle[0], idle[-1]


def test_idle_stretches_are_those_of_the_script(metrics: dict[str, list[Series]]) -> None:
    found = Counter(
        (series.owner, first, last) for series, first, last in idle_stretches(metrics, ENGINE)
    )
    assert found == {
        # Idle from the first minute on that the script names; the last sample is that of 19:59.
        ("notebook-llm-eval", at("2026-11-03T19:40:12"), at("2026-11-05T19:59:12")): 8,
        ("sweep-vision", at("2026-11-05T08:20:27"), at("2026-11-05T19:59:27")): 1,
        # Awake at 13:31, so the last idle sample is that of 13:30.
        ("nightly-eval", at("2026-11-05T10:02:53"), at("2026-11-05T13:30:53")): 4,
    }


def test_both_activity_metrics_tell_the_same_of_the_day(metrics: dict[str, list[Series]]) -> None:
    start = at("2026-11-05T06:57:00")
    for engine, percent in zip(metrics[ENGINE], metrics["DCGM_FI_DEV_GPU_UTIL"], strict=True):
        assert engine.labels == percent.labels
        shares = [(t, value) for t, value in engine.samples if t >= start]
        assert [t for t, _ in percent.samples] == [t for t, _ in shares]
        for (_, share), (_, value) in zip(shares, percent.samples, strict=True):
            assert value == pytest.approx(100 * share, abs=0.6)  # whole percents


def test_a_working_gpu_is_far_from_the_idle_limit(metrics: dict[str, list[Series]]) -> None:
    values = [v for series in metrics[ENGINE] for _, v in series.samples if v > 0.01]
    assert 0.5 < min(values) <= max(values) < 1


def test_activity_is_sampled_every_minute_without_a_gap(metrics: dict[str, list[Series]]) -> None:
    for name, limit in ACTIVITY.items():
        for series in metrics[name]:
            times = [t for t, _ in series.samples]
            assert {b - a for a, b in pairwise(times)} == {60}
            assert all(0 <= value <= limit for _, value in series.samples)
            # The first tick's window is (06:58, 07:58]; nothing is later than the last tick.
            assert times[0] <= at("2026-11-05T06:58:59")
            assert at("2026-11-05T19:58:00") <= times[-1] <= at("2026-11-05T20:00:00")


def test_only_the_notebook_holds_memory_while_idle(metrics: dict[str, list[Series]]) -> None:
    idle = {
        s.labels["UUID"]: range(first, last + 1)
        for s, first, last in idle_stretches(metrics, ENGINE)
    }
    held: dict[str, set[float]] = defaultdict(set)
    for series in metrics["DCGM_FI_DEV_FB_USED"]:
        window = idle.get(series.labels["UUID"], range(0))
        held[series.owner] |= {mib for t, mib in series.samples if t in window}
    assert 30 * 1024 <= min(held["notebook-llm-eval"]) <= max(held["notebook-llm-eval"]) < 31 * 1024
    for owner in ("sweep-vision", "nightly-eval"):
        assert 0 < max(held[owner]) < 1024  # below 1 GiB: idle, not idle_held


def test_nothing_looks_like_a_hang(metrics: dict[str, list[Series]]) -> None:
    # A hang has full utilisation with no tensor activity, or at most a quarter of 700 W.
    power = {s.labels["UUID"]: dict(s.samples) for s in metrics["DCGM_FI_DEV_POWER_USAGE"]}
    engine = {s.labels["UUID"]: dict(s.samples) for s in metrics[ENGINE]}
    for series in metrics["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]:
        uuid = series.labels["UUID"]
        for t, tensor in series.samples:
            working = engine[uuid][t] > 0.01
            assert (tensor > 0.1, power[uuid][t] > 400) == (working, working)


def test_every_gpu_is_named_for_the_pod_that_holds_it(
    metrics: dict[str, list[Series]], objects: dict[str, Any]
) -> None:
    pods = {p["metadata"]["name"]: p for p in objects["pods"]}
    for every in metrics.values():
        devices = {(s.labels["Hostname"], s.labels["gpu"]) for s in every}
        assert len({s.labels["UUID"] for s in every}) == len(devices) == 26
        seen = Counter(s.labels["pod"] for s in every)
        # All allocated GPUs but the two of adapter-export, which no series names.
        expected = {p: gpus(pod) for p, pod in pods.items() if not p.startswith("adapter-export-")}
        assert seen == +Counter(expected)
        for series in every:
            pod = pods[series.labels["pod"]]
            assert series.labels["namespace"] == pod["metadata"]["namespace"]
            assert series.labels["Hostname"] == pod["spec"]["nodeName"]
            assert series.labels["container"] == pod["spec"]["containers"][0]["name"]
    assert sum(gpus(p) for name, p in pods.items() if name.startswith("adapter-export-")) == 2


def test_the_metrics_are_openmetrics_text(folder: Path) -> None:
    text = (folder / "metrics" / "dcgm.om").read_text()
    assert text.endswith("\n# EOF\n")
    families = [
        line.partition("# TYPE ")[2].split(" ")[0] if line.startswith("# TYPE ") else line.partition("{")[0]
        for line in text.splitlines()[:-1]
    ]  # fmt: skip
    starts = [
        name for previous, name in zip(["", *families], families, strict=False) if name != previous
    ]
    assert len(starts) == len(set(starts)) == 5  # each family is one block, headed by its TYPE
    assert text.count("# TYPE ") == 5


def test_the_metrics_stay_small(folder: Path) -> None:
    assert (folder / "metrics" / "dcgm.om").stat().st_size < 25_000_000


def test_a_node_health_event_falls_between_two_ticks(folder: Path) -> None:
    (event,) = Recording.open(folder).events()
    assert event["time"] == "2026-11-05T15:02:11Z"
    assert event["source"] == "aws.sagemaker"
    assert event["detail-type"] == "SageMaker HyperPod Cluster Node Health Event"
    assert event["detail"]["ClusterName"] == "ml-shared-01"
    assert event["resources"] == [answer(folder, "sagemaker/DescribeCluster")["ClusterArn"]]
    instances = answer(folder, "sagemaker/ListClusterNodes")["ClusterNodeSummaries"]
    assert event["detail"]["InstanceId"] in {one["InstanceId"] for one in instances}
