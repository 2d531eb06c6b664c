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

    @property
    def key(self) -> tuple[str, str]:
        return self.labels["UUID"], self.labels["pod"]

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


type Objects = dict[str, list[dict[str, Any]]]

QUIET = {"platform-mlops": 6, "research": 4, "product-genai": 10}
PROBING = {"platform-mlops": 4, "research": 14, "product-genai": 10}
LOOKS = {"06:30": QUIET, "09:35": PROBING, "11:00": QUIET, "14:10": PROBING, "15:30": QUIET}
"""When Kubernetes was looked at, and the GPUs that each team had in use: research's probes run from
09:31 to 10:57 and from 14:09 to 15:28, and take the two that platform-mlops borrows."""


def look_at(folder: Path, time: str) -> Objects:
    name = f"20261105T{time.replace(':', '')}00Z"
    return {
        path.stem: json.loads(path.read_text())["items"]
        for path in (folder / "kubernetes" / name).glob("*.json")
    }


@pytest.fixture(scope="session", params=LOOKS)
def time(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def objects(folder: Path, time: str) -> Objects:
    return look_at(folder, time)


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


def team_of(queue: dict[str, Any]) -> str:
    name: str = queue["metadata"]["name"]
    return name.removeprefix("hyperpod-ns-").removesuffix("-clusterqueue")


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = (one for one in items if name in one["metadata"]["name"])
    return found


def conditions(workload: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {one["type"]: one for one in workload["status"]["conditions"]}


def finished(workload: dict[str, Any]) -> bool:
    return conditions(workload).get("Finished", {}).get("status") == "True"


def requested(workload: dict[str, Any]) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for pod_set in workload["spec"]["podSets"]:
        for container in pod_set["template"]["spec"]["containers"]:
            for name, quantity in container["resources"]["requests"].items():
                amounts[name] += pod_set["count"] * number(quantity)
    return amounts


def running(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


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


def test_every_resource_of_the_contract_is_recorded(objects: Objects) -> None:
    assert sorted(objects) == sorted(RESOURCES.split())


def test_kubernetes_was_looked_at_before_the_day_and_after_every_change(folder: Path) -> None:
    names = sorted(path.name for path in (folder / "kubernetes").iterdir())
    assert names == [f"20261105T{time.replace(':', '')}00Z" for time in LOOKS]


def test_a_job_that_has_ended_says_so_and_so_do_its_workload_and_its_pods(
    objects: Objects, time: str
) -> None:
    ended = {
        "dataset-checksum": "10:41:40",
        "layer-probe-18": "10:57:20",
        "layer-probe-19": "15:28:20",
    }
    expected = {name for name, end in ended.items() if end <= time}
    done = [one for one in objects["workloads"] if finished(one)]
    assert {re.sub(r"^[a-z]+-|-\w{5}$", "", one["metadata"]["name"]) for one in done} == expected
    gone = [pod for pod in objects["pods"] if pod["status"]["phase"] == "Succeeded"]
    assert {re.sub(r"(-worker)?-\w+$", "", pod["metadata"]["name"]) for pod in gone} == expected
    for job in (*objects["jobs"], *objects["pytorchjobs"]):
        assert ("completionTime" in job["status"]) == (job["metadata"]["name"] in expected)


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


def test_priority_classes_are_those_of_the_policy(folder: Path, objects: Objects) -> None:
    (cluster,) = YAML(typ="safe", pure=True).load(POLICY)["clusters"]
    weights = {one["name"]: one["weight"] for one in cluster["priority_classes"]}
    described = answer(folder, "sagemaker/DescribeClusterSchedulerConfig")["SchedulerConfig"]
    assert {c["Name"]: c["Weight"] for c in described["PriorityClasses"]} == weights
    classes = objects["workloadpriorityclasses"]
    named = {one["metadata"]["name"]: one["value"] for one in classes}
    assert named == {f"{name}-priority": weight for name, weight in weights.items()}
    for workload in objects["workloads"]:
        assert named[workload["spec"]["priorityClassRef"]["name"]] == workload["spec"]["priority"]


def test_cluster_queues_carry_the_quotas(objects: Objects) -> None:
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
        found[team_of(queue)] = (
            quota["nominalQuota"],
            quota["borrowingLimit"],
            quota.get("lendingLimit"),
        )
    assert found == expected
    cohorts = {one["metadata"]["name"] for one in objects["cohorts"]}
    assert {one["spec"]["cohortName"] for one in objects["clusterqueues"]} == cohorts


def test_usage_is_what_the_admitted_workloads_add_up_to(objects: Objects) -> None:
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for workload in objects["workloads"]:
        if not finished(workload) and "admission" in workload["status"]:
            admission = workload["status"]["admission"]
            for pod_set in admission["podSetAssignments"]:
                usage = {name: number(q) for name, q in pod_set["resourceUsage"].items()}
                used[admission["clusterQueue"]].update(usage)
            assert used[admission["clusterQueue"]] >= requested(workload)
    for queue in objects["clusterqueues"]:
        for key in ("flavorsReservation", "flavorsUsage"):
            amounts = {name: number(q) for name, q in total(queue, key).items()}
            assert +Counter(amounts) == used[queue["metadata"]["name"]]
    for queue in objects["localqueues"]:
        amounts = {name: number(q) for name, q in total(queue, "flavorsUsage").items()}
        assert +Counter(amounts) == used[queue["spec"]["clusterQueue"]]


def test_teams_use_what_the_script_says(objects: Objects, time: str) -> None:
    held: Counter[str] = Counter()
    for pod in running(objects["pods"]):
        held[pod["metadata"]["namespace"].removeprefix("hyperpod-ns-")] += gpus(pod)
    assert held == LOOKS[time]
    for queue in objects["clusterqueues"]:
        assert total(queue, "flavorsUsage")[GPU] == str(LOOKS[time][team_of(queue)])


def test_only_gpus_are_borrowed_and_only_by_platform_mlops(objects: Objects, time: str) -> None:
    for queue in objects["clusterqueues"]:
        (spec,) = queue["spec"]["resourceGroups"][0]["flavors"]
        nominal = {one["name"]: number(one["nominalQuota"]) for one in spec["resources"]}
        borrowed = {
            one["name"]: number(one["borrowed"])
            for one in queue["status"]["flavorsUsage"][0]["resources"]
        }
        # Kueue's definition.
        assert borrowed == {
            name: max(0, number(amount) - nominal[name])
            for name, amount in total(queue, "flavorsUsage").items()
        }
        over = team_of(queue) == "platform-mlops" and LOOKS[time] is QUIET
        assert +Counter(borrowed) == ({GPU: 2} if over else {})  # 6 of 4, and 2 is the limit
        share = queue["status"]["fairSharing"]["weightedShare"]
        assert share == (2**63 - 1 if over else 0)  # a weight of 0 makes any share infinite


def test_queues_count_the_workloads_that_are_theirs(objects: Objects) -> None:
    for queue in (*objects["clusterqueues"], *objects["localqueues"]):
        namespace = queue["metadata"].get("namespace", f"hyperpod-ns-{team_of(queue)}")
        own = [w for w in objects["workloads"] if w["metadata"]["namespace"] == namespace]
        open_ones = [w for w in own if not finished(w)]
        admitted = sum(conditions(w)["QuotaReserved"]["status"] == "True" for w in open_ones)
        status = queue["status"]
        assert status["pendingWorkloads"] == len(open_ones) - admitted
        assert status["reservingWorkloads"] == status["admittedWorkloads"] == admitted


def test_what_waits_lacks_gpus_and_nothing_else_and_says_how_many(
    objects: Objects, time: str
) -> None:
    # Kueue's arithmetic: a queue may still take what the pool has left, and no more than its limit
    # leaves. Platform-mlops and research are the pool.
    queues = {team_of(queue): queue for queue in objects["clusterqueues"]}

    def quota(team: str, resource: str, key: str) -> int:
        (flavor,) = queues[team]["spec"]["resourceGroups"][0]["flavors"]
        return next(number(one[key]) for one in flavor["resources"] if one["name"] == resource)

    def left(resource: str) -> int:
        used = {
            t: number(total(queues[t], "flavorsUsage")[resource])
            for t in ("platform-mlops", "research")
        }
        pool = sum(quota(team, resource, "nominalQuota") for team in used) - sum(used.values())
        most = quota("platform-mlops", resource, "nominalQuota")
        most += quota("platform-mlops", resource, "borrowingLimit")
        return min(pool, most - used["platform-mlops"])

    waiting = [w for w in objects["workloads"] if "admission" not in w["status"]]
    expected = {"rerank-train": 4} | ({} if LOOKS[time] is QUIET else {"eval-sweep": 2})
    assert len(waiting) == len(expected)
    for name, missing in expected.items():
        workload = named(waiting, name)
        for resource, amount in requested(workload).items():
            lacking = max(0, amount - left(resource))
            assert lacking == (missing if resource == GPU else 0)
        said = conditions(workload)["QuotaReserved"]
        assert (said["status"], said["reason"]) == ("False", "Pending")
        assert said["message"] == (
            f"couldn't assign flavors to pod set {workload['spec']['podSets'][0]['name']}: "
            "insufficient unused quota for nvidia.com/gpu in flavor ml.p5.48xlarge, "
            f"{missing} more needed"
        )


def test_nothing_that_waits_could_preempt_its_way_in(objects: Objects) -> None:
    # Own queue: LowerPriority. Cohort: only a queue above its own quota loses anything.
    for workload in (w for w in objects["workloads"] if "admission" not in w["status"]):
        own = [
            w["spec"]["priority"]
            for w in objects["workloads"]
            if w["metadata"]["namespace"] == workload["metadata"]["namespace"] and not finished(w)
        ]
        assert workload["spec"]["priority"] == min(own)
    research = next(q for q in objects["clusterqueues"] if team_of(q) == "research")
    assert all(one["borrowed"] == "0" for one in research["status"]["flavorsUsage"][0]["resources"])


def test_a_probe_is_within_researchs_own_quota_but_not_within_what_is_left(folder: Path) -> None:
    before, during = look_at(folder, "06:30"), look_at(folder, "09:35")
    probe = requested(named(during["workloads"], "layer-probe-18"))
    research = next(q for q in before["clusterqueues"] if team_of(q) == "research")
    (flavor,) = research["spec"]["resourceGroups"][0]["flavors"]
    used = {name: number(amount) for name, amount in total(research, "flavorsUsage").items()}
    for one in flavor["resources"]:
        assert used[one["name"]] + probe[one["name"]] <= number(one["nominalQuota"])
    # So it may reclaim what others borrow; 18 - 6 - 4 = 8 are left and it asks for 10: 2 are missing,
    # which are the two of the one job there with the least priority.
    assert (probe[GPU], used[GPU]) == (10, 4)
    priorities = {
        w["metadata"]["name"]: w["spec"]["priority"]
        for w in before["workloads"]
        if w["metadata"]["namespace"] == "hyperpod-ns-platform-mlops" and "admission" in w["status"]
    }
    assert min(priorities, key=lambda name: priorities[name]).startswith("job-eval-sweep-")
    assert sorted(priorities.values()) == [25, 75]


EVAL_SWEEP = {
    # Preempted so often, seconds admitted in all earlier rounds, since when it runs.
    # Monday 08:06:00 to Tuesday 06:06:00 is 22 h, Tuesday 09:30 to Wednesday 13:30 is 28 h: 50 h.
    "06:30": (2, 180_000, "2026-11-04T17:01:21Z"),
    # Wednesday 17:01:21 to Thursday 09:31:25, when its pods were gone: 16.5 h and 4 s.
    "09:35": (3, 180_000 + 59_404, None),
    "11:00": (3, 239_404, "2026-11-05T10:57:21Z"),
    # 10:57:21 to 14:09:25: 3.2 h and 4 s.
    "14:10": (4, 239_404 + 11_524, None),
    "15:30": (4, 250_928, "2026-11-05T15:28:21Z"),
}
PREEMPTOR = {"09:35": "layer-probe-18", "11:00": "layer-probe-18", "14:10": "layer-probe-19"}


def test_eval_sweep_is_preempted_and_comes_back(objects: Objects, time: str) -> None:
    workload, (count, past, start) = named(objects["workloads"], "eval-sweep"), EVAL_SWEEP[time]
    status, said = workload["status"], conditions(workload)
    assert status["schedulingStats"]["evictions"] == [
        {"reason": "Preempted", "underlyingCause": "", "count": count}
    ]
    assert status["accumulatedPastExecutionTimeSeconds"] == past
    for kind in ("QuotaReserved", "Admitted"):
        assert said[kind]["status"] == str(start is not None)
        assert start is None or said[kind]["lastTransitionTime"] == start
    pods = [pod for pod in objects["pods"] if "eval-sweep" in pod["metadata"]["name"]]
    assert [pod["metadata"]["creationTimestamp"] for pod in pods] == ([start] if start else [])
    job = named(objects["jobs"], "eval-sweep")
    assert job["spec"]["suspend"] == (start is None)
    # The condition of the last eviction stays, and is no longer true once it is admitted again.
    for kind in ("Evicted", "Preempted"):
        assert said[kind]["status"] == str(start is None)
        assert said[kind]["message"].startswith("Previously: ") == (start is not None)
    assert said["Requeued"]["status"] == "True"
    assert said["Requeued"]["lastTransitionTime"] == "2026-11-03T06:06:00Z"  # the first time


def test_a_preemption_names_who_it_was_for(folder: Path) -> None:
    for time, evicted in (("09:35", "09:31:21"), ("14:10", "14:09:21")):
        objects = look_at(folder, time)
        said = conditions(named(objects["workloads"], "eval-sweep"))
        assert said["Evicted"]["reason"] == "Preempted"
        assert said["Preempted"]["reason"] == "InCohortReclamation"
        preemptor = named(objects["workloads"], PREEMPTOR[time])
        job = named(objects["pytorchjobs"], PREEMPTOR[time])
        for kind in ("Evicted", "Preempted"):
            assert said[kind]["lastTransitionTime"] == f"2026-11-05T{evicted}Z"
            assert said[kind]["message"] == (
                f"Preempted to accommodate a workload (UID: {preemptor['metadata']['uid']}, "
                f"JobUID: {job['metadata']['uid']}) due to reclamation within the cohort; "
                "preemptor path: /shared-pool/hyperpod-ns-research-clusterqueue; "
                "preemptee path: /shared-pool/hyperpod-ns-platform-mlops-clusterqueue"
            )
        # The preemptor asked before the eviction and was admitted after it.
        admitted = conditions(preemptor)["Admitted"]["lastTransitionTime"]
        assert preemptor["metadata"]["creationTimestamp"] < f"2026-11-05T{evicted}Z" < admitted


def test_rerank_train_has_waited_since_tuesday_and_there_is_a_node_for_it(
    objects: Objects, time: str
) -> None:
    workload = named(objects["workloads"], "rerank-train")
    assert workload["metadata"]["creationTimestamp"] == "2026-11-03T07:50:00Z"
    assert requested(workload)[GPU] == 4
    assert [one["count"] for one in workload["spec"]["podSets"]] == [1]  # on one node
    assert not [pod for pod in objects["pods"] if "rerank-train" in pod["metadata"]["name"]]
    held: Counter[str] = Counter()
    for pod in running(objects["pods"]):
        held[pod["spec"]["nodeName"]] += gpus(pod)
    free = sorted(8 - held[node["metadata"]["name"]] for node in objects["nodes"])
    # The notebook's node is full, the exports' has 2 left, the evaluations' 2, the fourth all 8. A
    # probe takes ten of those, and two of the evaluations' come free.
    assert free == ([0, 2, 2, 8] if LOOKS[time] is QUIET else [0, 0, 0, 4])


def test_every_owner_exists(objects: Objects, time: str) -> None:
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
    # Workloads: 8 jobs before the day, and a probe each time. Pods: one a job that has run, five a
    # probe. And the replica set.
    workloads = {"06:30": 8, "09:35": 9, "11:00": 9, "14:10": 10, "15:30": 10}[time]
    pods = {"06:30": 7, "09:35": 6 + 5, "11:00": 7 + 5, "14:10": 6 + 10, "15:30": 7 + 10}[time]
    assert owned == workloads + pods + 1


def test_every_pod_has_its_node_and_no_node_has_too_much(objects: Objects) -> None:
    allocatable = {node["metadata"]["name"]: node["status"] for node in objects["nodes"]}
    held: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in running(objects["pods"]):
        for container in pod["spec"]["containers"]:
            requests = container["resources"]["requests"]
            held[pod["spec"]["nodeName"]].update({n: number(q) for n, q in requests.items()})
    assert set(held) <= set(allocatable)
    for amounts in held.values():
        assert amounts[GPU] <= 8
        assert amounts["cpu"] <= 191  # 191450m
        assert amounts["memory"] <= 1988  # 2085237904Ki


def test_a_workloads_topology_is_where_its_pods_are(objects: Objects) -> None:
    for workload in objects["workloads"]:
        if not (admission := workload["status"].get("admission")):
            continue
        (assignment,) = admission["podSetAssignments"]
        (piece,) = assignment["topologyAssignment"]["slices"]
        roots = piece["valuesPerLevel"][0]["individual"]["roots"]
        counts = dict(zip(roots, piece["podCounts"]["individual"], strict=True))
        assert piece["domainCount"] == len(counts)
        name = workload["metadata"]["name"]
        own = [
            pod["spec"]["nodeName"]
            for pod in objects["pods"]
            if pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == name
        ]
        assert counts == Counter(own)


def test_kubernetes_and_sagemaker_name_the_same_nodes(folder: Path, objects: Objects) -> None:
    instances = answer(folder, "sagemaker/ListClusterNodes")["ClusterNodeSummaries"]
    names = {f"hyperpod-{one['InstanceId']}" for one in instances}
    assert {one["metadata"]["name"] for one in objects["nodes"]} == names
    assert all(re.fullmatch(r"hyperpod-i-[0-9a-f]{17}", name) for name in names)


def test_every_workload_has_its_queue_and_every_pod_its_workload(objects: Objects) -> None:
    queues = {
        (q["metadata"]["namespace"], q["metadata"]["name"]): q["spec"]["clusterQueue"]
        for q in objects["localqueues"]
    }
    assert set(queues.values()) == {q["metadata"]["name"] for q in objects["clusterqueues"]}
    workloads = {}
    for one in objects["workloads"]:
        namespace = one["metadata"]["namespace"]
        workloads[namespace, one["metadata"]["name"]] = one
        queue = queues[namespace, one["spec"]["queueName"]]
        assert one["status"].get("admission", {"clusterQueue": queue})["clusterQueue"] == queue
    for pod in objects["pods"]:
        metadata = pod["metadata"]
        name = metadata["annotations"]["kueue.x-k8s.io/workload"]
        workload = workloads[metadata["namespace"], name]
        labels = metadata["labels"]
        assert labels["kueue.x-k8s.io/queue-name"] == workload["spec"]["queueName"]
        assert (
            labels["kueue.x-k8s.io/priority-class"] == workload["spec"]["priorityClassRef"]["name"]
        )


def test_every_namespace_is_declared(objects: Objects) -> None:
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
        ("sweep-vision", at("2026-11-05T08:20:41"), at("2026-11-05T19:59:41")): 1,
        # Awake at 13:31, so the last idle sample is that of 13:30.
        ("checkpoint-eval", at("2026-11-05T10:02:53"), at("2026-11-05T13:30:53")): 4,
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


RUNS = {
    # First and last minute of the samples of the pods that come or go; the others are there all day.
    "eval-sweep": [("06:57", "09:30"), ("10:57", "14:08"), ("15:28", "19:59")],
    "layer-probe-18": [("09:31", "10:56")],
    "layer-probe-19": [("14:09", "15:27")],
}


def test_activity_is_sampled_every_minute_without_a_gap(metrics: dict[str, list[Series]]) -> None:
    for name, limit in ACTIVITY.items():
        found: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for series in metrics[name]:
            times = [t for t, _ in series.samples]
            assert {b - a for a, b in pairwise(times)} == {60}
            assert all(0 <= value <= limit for _, value in series.samples)
            first, last = (f"{datetime.fromtimestamp(t, UTC):%H:%M}" for t in (times[0], times[-1]))
            if series.owner in RUNS:
                found[series.owner].add((first, last))
            else:
                # The first tick's window is (06:58, 07:58]; nothing is later than the last tick.
                assert times[0] <= at("2026-11-05T06:58:59")
                assert last == "19:59"
        assert {owner: sorted(runs) for owner, runs in found.items()} == RUNS


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
    for owner in ("sweep-vision", "checkpoint-eval"):
        assert 0 < max(held[owner]) < 1024  # below 1 GiB: idle, not idle_held


def test_nothing_looks_like_a_hang(metrics: dict[str, list[Series]]) -> None:
    # A hang has full utilisation with no tensor activity, or at most a quarter of 700 W.
    power = {s.key: dict(s.samples) for s in metrics["DCGM_FI_DEV_POWER_USAGE"]}
    engine = {s.key: dict(s.samples) for s in metrics[ENGINE]}
    for series in metrics["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]:
        for t, tensor in series.samples:
            working = engine[series.key][t] > 0.01
            assert (tensor > 0.1, power[series.key][t] > 400) == (working, working)


def test_no_gpu_is_two_pods_at_once(metrics: dict[str, list[Series]]) -> None:
    for every in metrics.values():
        seen = Counter((s.labels["UUID"], t) for s in every for t, _ in s.samples)
        assert max(seen.values()) == 1
        devices = {(s.labels["Hostname"], s.labels["gpu"]): s.labels["UUID"] for s in every}
        assert len(devices) == len(set(devices.values()))


def test_every_gpu_is_named_for_the_pod_that_holds_it(
    metrics: dict[str, list[Series]], objects: Objects, time: str
) -> None:
    pods = {p["metadata"]["name"]: p for p in running(objects["pods"])}
    look = at(f"2026-11-05T{max(time, '06:58')}")  # the first look was before the first sample
    for every in metrics.values():
        current = [s for s in every if any(look <= t < look + 120 for t, _ in s.samples)]
        seen = Counter(s.labels["pod"] for s in current)
        # All allocated GPUs but the two of adapter-export, which no series names.
        expected = {p: gpus(pod) for p, pod in pods.items() if not p.startswith("adapter-export-")}
        assert seen == +Counter(expected)
        assert sum(seen.values()) == sum(LOOKS[time].values()) - 2
        for series in current:
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
    ((_, event),) = Recording.open(folder).events()
    assert event["time"] == "2026-11-05T15:02:11Z"
    assert event["source"] == "aws.sagemaker"
    assert event["detail-type"] == "SageMaker HyperPod Cluster Node Health Event"
    assert event["detail"]["ClusterName"] == "ml-shared-01"
    assert event["resources"] == [answer(folder, "sagemaker/DescribeCluster")["ClusterArn"]]
    instances = answer(folder, "sagemaker/ListClusterNodes")["ClusterNodeSummaries"]
    assert event["detail"]["InstanceId"] in {one["InstanceId"] for one in instances}


def test_pretrain_encoder_writes_checkpoints_all_day_and_nobody_else_does(folder: Path) -> None:
    (path,) = (folder / "checkpoints").iterdir()
    listed = json.loads(path.read_text())
    assert all(set(one) == {"bucket", "key", "last_modified", "size"} for one in listed)
    # The policy's location of research, and the job's name as a part of the path.
    prefix = "s3://ml-shared-01-checkpoints/research/pretrain-encoder/"
    assert all(f"s3://{one['bucket']}/{one['key']}".startswith(prefix) for one in listed)
    written = sorted({at(one["last_modified"][:19]) for one in listed})
    # Every 24 minutes, three files within three seconds: never older than 24 min at any tick.
    assert written[0] < at("2026-11-05T08:00:00")
    assert max(b - a for a, b in pairwise(written)) <= 24 * 60
    assert at("2026-11-05T19:36:00") < written[-1] < at("2026-11-05T20:00:00")
