"""The contract's recordings in every legal shape, and what each has to print; stated by hand.

Ticks end their windows two minutes early, a GPU costs 63.296 / 8 = 7.912 USD an hour, and a pod that
idles from 06:00 on has, at 10:00, idle samples up to 09:58: 238 minutes.
"""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from local.replay import main, replay
from tests.handmade import (
    NAMESPACE,
    NODE,
    controller,
    header,
    kubernetes,
    listing,
    metrics,
    node,
    owned,
    pod,
    series,
    write,
)
from tests.recordings import about_gpus, iso

TEN = datetime(2026, 11, 5, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SIX = TEN - 240 * MINUTE
SINCE_SIX = round(238 / 60, 6)


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def minutes(start, stop, value):
    """A sample a minute in [start, stop)."""
    return [(start + n * MINUTE, value) for n in range(int((stop - start) / MINUTE))]


def run(folder):
    told = []
    done = replay(folder, told.append)
    times = [line["at"] for line in told]
    assert times == sorted(times)
    assert told[-1]["type"] == "summary"
    assert told[-1]["failures"] == done.failures
    return about_gpus(told)


def findings(told, *keys):
    return [tuple(line[k] for k in keys) for line in told if line["type"] == "finding"]


def unknown(told):
    return [(u["subject"], u["reason"], "ended" in u) for u in told if u["type"] == "unknown"]


def research(kind, name):
    return f"{kind}/{NAMESPACE}/{name}"


def test_the_subject_is_the_top_owner_and_times_have_any_legal_form(tmp_path):
    epoch = int(SIX.timestamp())
    india = SIX.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat()
    ray = controller("ray.io/v1", "RayJob", "rj")
    pods = [
        pod("bare", epoch),
        pod("dep-1-a", india, owner=controller("apps/v1", "ReplicaSet", "dep-1")),
        pod("ss-0", iso(SIX), owner=controller("apps/v1", "StatefulSet", "ss")),
        pod("hp-0", float(epoch), owner=controller("kubeflow.org/v1", "PyTorchJob", "pt")),
        pod("ray-0", epoch, owner=controller("ray.io/v1", "RayCluster", "rc")),
        pod("js-0", epoch, owner=controller("batch/v1", "Job", "js-0")),
        pod("own-0", epoch, owner=controller("example.com/v1", "Study", "own")),
        pod("notebook", epoch, namespace="default"),
    ]
    header(tmp_path, TEN, TEN)
    hyper = controller("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", "hp")
    kubernetes(
        tmp_path,
        SIX,
        nodes=[node()],
        pods=pods,
        replicasets=[
            owned("apps/v1", "ReplicaSet", "dep-1", controller("apps/v1", "Deployment", "dep"))
        ],
        deployments=[owned("apps/v1", "Deployment", "dep")],
        statefulsets=[owned("apps/v1", "StatefulSet", "ss")],
        pytorchjobs=[owned("kubeflow.org/v1", "PyTorchJob", "pt", hyper)],
        hyperpodpytorchjobs=[owned("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", "hp")],
        rayclusters=[owned("ray.io/v1", "RayCluster", "rc", ray)],
        rayjobs=[owned("ray.io/v1", "RayJob", "rj")],
        jobs=[
            owned("batch/v1", "Job", "js-0", controller("jobset.x-k8s.io/v1alpha2", "JobSet", "js"))
        ],
        jobsets=[owned("jobset.x-k8s.io/v1alpha2", "JobSet", "js")],
    )
    lines = []
    for one in pods:
        name, namespace = one["metadata"]["name"], one["metadata"]["namespace"]
        lines += series(f"GPU-{name}", name, minutes(SIX, TEN, 0), namespace=namespace)
    metrics(tmp_path, lines)
    told = run(tmp_path)
    assert sorted(findings(told, "subject", "team")) == [
        (research("Deployment", "dep"), "research"),
        (research("HyperPodPyTorchJob", "hp"), "research"),
        (research("JobSet", "js"), "research"),
        ("Pod/default/notebook", None),  # outside governance: no team
        (research("Pod", "bare"), "research"),
        (research("RayJob", "rj"), "research"),
        (research("StatefulSet", "ss"), "research"),
        (research("Study", "own"), "research"),
    ]
    assert set(findings(told, "since", "gpus", "gpu_hours", "cost_usd")) == {
        (iso(SIX), 1, SINCE_SIX, round(238 / 60 * 7.912, 2))
    }
    assert unknown(told) == []


def test_metric_files_are_merged_and_every_spelling_counts_once(tmp_path):
    header(tmp_path, TEN, TEN)
    kubernetes(tmp_path, SIX, nodes=[node()], pods=[pod(n, iso(SIX)) for n in "abcd"])
    exported = {
        "hostname": NODE,
        "uuid": "GPU-b",
        "pod": "dcgm-exporter-x1",
        "namespace": "monitoring",
        "exported_pod": "b",
        "exported_namespace": NAMESPACE,
        "cluster_name": "ml-shared-01-eks",  # the cluster's own other name
    }
    other = {"Hostname": NODE, "UUID": "GPU-c", "pod": "c", "namespace": NAMESPACE}
    idle = minutes(SIX, TEN, 0)
    metrics(tmp_path, series("GPU-a", "a", idle, milliseconds=True), "one.prom")
    metrics(tmp_path, series("GPU-a", "a", idle) + series("", "", idle, labels=exported), "two.om")
    metrics(tmp_path, series("", "", idle, labels=other | {"cluster_name": "another"}), "three.om")
    # One device, its labels renamed at 09:30: one stretch, not two.
    renamed = exported | {"uuid": "GPU-d", "exported_pod": "d"}
    late = series("GPU-d", "d", minutes(SIX, TEN - 30 * MINUTE, 0))
    late += series("", "", minutes(TEN - 30 * MINUTE, TEN, 0), labels=renamed)
    metrics(tmp_path, late, "four.om")
    told = run(tmp_path)
    assert findings(told, "subject", "since", "gpus", "gpu_hours") == [
        (research("Pod", name), iso(SIX), 1, SINCE_SIX) for name in "abd"
    ]
    # Sixty samples a window, not 120, although a's are there twice.
    samples = {"present": 60, "expected": 60, "invalid": 0}
    assert {json.dumps(e["samples"]) for (e,) in findings(told, "evidence")} == {
        json.dumps(samples)
    }
    assert unknown(told) == [(research("Pod", "c"), "no_telemetry", False)]


def test_slices_samples_and_sharers_are_judged_as_the_field_faults_say(tmp_path):
    header(tmp_path, TEN, TEN)
    mig = {"nvidia.com/mig-3g.40gb": "1"}
    names = ("bad", "spiky", "s1", "s2", "c48", "c47")
    kubernetes(
        tmp_path,
        SIX,
        nodes=[node()],
        pods=[pod(f"m{n}", iso(SIX), requests=mig) for n in (1, 2, 3)]
        + [pod(name, iso(SIX)) for name in names],
    )

    def part(number, metric, value):
        labels = {"Hostname": NODE, "UUID": "GPU-m", "GPU_I_PROFILE": "3g.40gb"}
        labels |= {"GPU_I_ID": str(number), "namespace": NAMESPACE, "pod": f"m{number}"}
        return series("", "", minutes(SIX, TEN, value), metric=metric, labels=labels)

    spiky = minutes(SIX, TEN, 0)
    for place, value in ((200, 31400), (210, "NaN"), (211, -1)):
        spiky[place] = (spiky[place][0], value)
    newest = [(TEN - (2 + n) * MINUTE, 0) for n in range(60)]
    metrics(
        tmp_path,
        part(1, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.61)
        + part(2, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0)
        + part(3, "DCGM_FI_DEV_GPU_UTIL", 0)  # under MIG this metric says nothing
        + series("GPU-bad", "bad", minutes(SIX, TEN, 2147483632))
        + series("GPU-spiky", "spiky", spiky)
        + series("GPU-s", "s1", minutes(SIX, TEN, 0))
        + series("GPU-s", "s2", minutes(SIX, TEN, 0))
        + series("GPU-48", "c48", newest[:48])
        + series("GPU-47", "c47", newest[:47]),
    )
    told = run(tmp_path)
    seventh = 3 / 7
    assert findings(told, "subject", "gpus", "gpu_hours") == [
        (research("Pod", "c48"), 1, round(47 / 60, 6)),  # 48 of 60 are 80 %
        (research("Pod", "m2"), round(seventh, 6), round(238 / 60 * seventh, 6)),
        (research("Pod", "spiky"), 1, SINCE_SIX),  # three impossible samples decide nothing
    ]
    (spikes,) = [
        e["samples"] for s, e in findings(told, "subject", "evidence") if s.endswith("spiky")
    ]
    assert spikes == {"present": 57, "expected": 60, "invalid": 3}
    assert unknown(told) == [
        (research("Pod", "bad"), "invalid_samples", False),
        (research("Pod", "c47"), "low_coverage", False),
        (research("Pod", "m3"), "no_telemetry", False),
        (research("Pod", "s1"), "shared_gpu", False),
        (research("Pod", "s2"), "shared_gpu", False),
    ]


def test_a_pod_restarted_under_its_name_is_another_holder_of_the_same_gpu(tmp_path):
    # Idle from 09:00; at 10:21 the StatefulSet's pod is made anew, on the same GPU, and idles on.
    end = TEN + 90 * MINUTE
    header(tmp_path, TEN, end, tick="10m")
    owner = controller("apps/v1", "StatefulSet", "ss")
    for at, uid, born in ((SIX, "u1", SIX), (TEN + 21 * MINUTE, "u2", TEN + 21 * MINUTE)):
        kubernetes(
            tmp_path,
            at,
            nodes=[node()],
            pods=[pod("ss-0", iso(born), uid=uid, owner=owner)],
            statefulsets=[owned("apps/v1", "StatefulSet", "ss")],
        )
    nine = TEN - 60 * MINUTE
    metrics(tmp_path, series("GPU-1", "ss-0", minutes(SIX, nine, 80) + minutes(nine, end, 0)))
    told = run(tmp_path)
    assert findings(told, "at", "status", "since", "gpu_hours", "resolution") == [
        ("2026-11-05T10:10:00Z", "firing", iso(nine), round(68 / 60, 6), None),
        # The old pod's hours end where the new one's begin: no minute of the GPU counts twice.
        ("2026-11-05T10:30:00Z", "resolved", iso(nine), round(81 / 60, 6), "released"),
        # A whole window of the new pod: 10:21 + 62 min, so at 11:30, with samples up to 11:28.
        ("2026-11-05T11:30:00Z", "firing", iso(TEN + 21 * MINUTE), round(67 / 60, 6), None),
    ]


def test_final_numbers_count_to_the_last_idle_sample_also_in_the_metric_delay(tmp_path):
    # The pod ends at 10:20 with samples up to 10:19; the tick's window ends at 10:18.
    header(tmp_path, TEN + 10 * MINUTE, TEN + 20 * MINUTE, tick="10m")
    kubernetes(tmp_path, SIX, nodes=[node()], pods=[pod("a", iso(SIX))])
    kubernetes(tmp_path, TEN + 20 * MINUTE, nodes=[node()])
    metrics(tmp_path, series("GPU-1", "a", minutes(SIX, TEN + 20 * MINUTE, 0)))
    assert findings(run(tmp_path), "at", "status", "gpu_hours", "resolution")[1:] == [
        ("2026-11-05T10:20:00Z", "resolved", round(259 / 60, 6), "released")
    ]


def test_one_gpu_that_takes_over_from_another_keeps_the_finding_and_its_beginning(tmp_path):
    # GPU-1 idles 09:00-10:59, GPU-2 10:06-11:29. At 11:05 the first is seen busy and the second has
    # 58 idle minutes; at 11:10 it is idle: five minutes without are no end.
    end = TEN + 105 * MINUTE
    header(tmp_path, TEN + 55 * MINUTE, end)
    kubernetes(
        tmp_path,
        SIX,
        nodes=[node()],
        pods=[pod("a", iso(SIX), requests={"nvidia.com/gpu": 2})],
    )
    nine, eleven = TEN - 60 * MINUTE, TEN + 60 * MINUTE
    other = (TEN + 6 * MINUTE, TEN + 90 * MINUTE)
    metrics(
        tmp_path,
        series(
            "GPU-1",
            "a",
            minutes(SIX, nine, 80) + minutes(nine, eleven, 0) + minutes(eleven, end, 80),
        )
        + series(
            "GPU-2",
            "a",
            minutes(SIX, other[0], 80) + minutes(*other, 0) + minutes(other[1], end, 80),
        ),
    )
    assert findings(run(tmp_path), "at", "status", "since", "gpu_hours", "resolution") == [
        ("2026-11-05T10:55:00Z", "firing", iso(nine), round(113 / 60, 6), None),
        ("2026-11-05T11:40:00Z", "resolved", iso(nine), round((119 + 83) / 60, 6), "active_again"),
    ]


def test_ticks_further_apart_than_the_window_hide_no_work_between_them(tmp_path):
    # Idle from 06:00, six busy minutes at 10:20, idle again: at 12:00 no window saw them, and still
    # it is idle since 10:26 and no longer.
    end = TEN + 120 * MINUTE
    header(tmp_path, TEN, end, tick="2h")
    kubernetes(tmp_path, SIX, nodes=[node()], pods=[pod("a", iso(SIX))])
    burst = TEN + 20 * MINUTE
    busy = minutes(burst, burst + 6 * MINUTE, 90)
    metrics(
        tmp_path,
        series("GPU-1", "a", minutes(SIX, burst, 0) + busy + minutes(burst + 6 * MINUTE, end, 0)),
    )
    (standing,) = run(tmp_path)[-1]["open"]
    assert (standing["since"], standing["gpu_hours"]) == (
        "2026-11-05T10:26:00Z",
        round(92 / 60, 6),
    )


def test_another_reason_is_a_pair_of_lines_at_the_same_tick(tmp_path):
    header(tmp_path, TEN + 10 * MINUTE, TEN + 15 * MINUTE)
    kubernetes(tmp_path, SIX, nodes=[node()], pods=[pod("a", iso(SIX))])
    grows = TEN + 10 * MINUTE  # from here on 1 GiB is held
    memory = minutes(SIX, grows, 1023) + minutes(grows, grows + 9 * MINUTE, 1024)
    metrics(
        tmp_path,
        series("GPU-1", "a", minutes(SIX, TEN + 20 * MINUTE, 0))
        + series("GPU-1", "a", memory, metric="DCGM_FI_DEV_FB_USED"),
    )
    assert findings(run(tmp_path), "at", "status", "reason", "resolution") == [
        ("2026-11-05T10:10:00Z", "firing", "idle", None),
        ("2026-11-05T10:15:00Z", "resolved", "idle", "reason_changed"),
        ("2026-11-05T10:15:00Z", "firing", "idle_held", None),
    ]


def test_owners_that_are_denied_half_way_change_no_subject(tmp_path):
    # Off the clock's fives, every ten minutes; the third folder has no pod any more.
    start = TEN + timedelta(minutes=3, seconds=7)
    header(tmp_path, start, start + 20 * MINUTE, tick="10m")
    owner = controller("apps/v1", "ReplicaSet", "dep-1")
    replica = owned("apps/v1", "ReplicaSet", "dep-1", controller("apps/v1", "Deployment", "dep"))
    pods = [pod("dep-1-a", iso(SIX), owner=owner)]
    kubernetes(tmp_path, SIX, nodes=[node()], pods=pods, replicasets=[replica])
    kubernetes(tmp_path, TEN + 10 * MINUTE, nodes=[node()], pods=pods, without=["replicasets"])
    kubernetes(tmp_path, TEN + 20 * MINUTE, nodes=[node()])
    metrics(tmp_path, series("GPU-1", "dep-1-a", minutes(SIX, TEN + 20 * MINUTE, 0)))
    told = run(tmp_path)
    subject = research("Deployment", "dep")
    assert findings(told, "at", "status", "subject", "gpu_hours") == [
        ("2026-11-05T10:03:07Z", "firing", subject, round(241 / 60, 6)),
        ("2026-11-05T10:23:07Z", "resolved", subject, round(259 / 60, 6)),
    ]
    assert unknown(told) == [
        ("kubernetes/replicasets", "denied", False),
        ("kubernetes/replicasets", "denied", True),
    ]


def test_a_recorded_error_is_that_error_and_kueue_has_the_version_of_its_queues(tmp_path):
    header(tmp_path, TEN, TEN)
    folder = tmp_path / "kubernetes" / f"{SIX:%Y%m%dT%H%M%SZ}"
    workload = owned("kueue.x-k8s.io/v1beta1", "Workload", "w", controller("batch/v1", "Job", "j"))
    workload["metadata"]["creationTimestamp"] = iso(SIX)
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "q"}, "spec": {}}
    kubernetes(
        tmp_path,
        SIX,
        pods=[pod("j-0", iso(SIX), owner=controller("batch/v1", "Job", "j"))],
        jobs=[owned("batch/v1", "Job", "j")],
        workloads=[workload],
        clusterqueues=[queue],
    )
    write(folder / "nodes.json", {"kind": "Status", "code": 500, "message": "boom"})
    error = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
    write(tmp_path / "sagemaker" / "ListClusterNodes.json", error)
    metrics(tmp_path, series("GPU-1", "j-0", minutes(SIX, TEN, 0)))
    told = run(tmp_path)
    ((evidence, cost),) = findings(told, "evidence", "cost_usd")
    assert evidence["workload"] == "w"
    assert cost is None  # nobody could say of what type the node is: no price, no dollars
    assert unknown(told) == [("kubernetes/nodes", "unreadable", False)]


def _without(item, *path):
    changed = json.loads(json.dumps(item))
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def odd(name, born=None, **changes):
    return pod(name, iso(SIX) if born is None else born, **changes)


IDLE = {
    "no-status-but-bound": _without(odd("no-status-but-bound"), "status"),
    "silent-node": odd("silent-node", phase="Unknown"),
    "before-1970": odd("before-1970", -5),
}
UNREADABLE = {
    "no-uid": _without(odd("no-uid"), "metadata", "uid"),
    "negative": odd("negative", requests={"nvidia.com/gpu": "-1"}),
    "half": odd("half", requests={"nvidia.com/gpu": "500m"}),
    "nine-million": odd("nine-million", requests={"nvidia.com/gpu": "9M"}),
    "eight": odd("eight", requests={"nvidia.com/gpu": "eight"}),
    "beyond-all-calendars": odd("beyond-all-calendars", 1e18),
    "before-all-calendars": odd("before-all-calendars", "0001-01-01T00:00:00+05:00"),
    "owner-without-version": odd("owner-without-version", owner={"kind": "Job", "name": "x"}),
}
SILENT = {
    "not-yet-started": odd("not-yet-started", iso(TEN + 60 * MINUTE)),
    "young": odd("young", iso(TEN - 61 * MINUTE)),
    "finished": odd("finished", phase="Succeeded"),
    "unbound": odd("unbound", phase="Pending", node_name=None),
    "no-gpu": odd("no-gpu", requests={"cpu": "4"}),
}
NAMELESS = [7, None, _without(odd("x"), "metadata", "name")]


def test_an_odd_pod_is_judged_or_said_to_be_unreadable_and_never_hides_another(tmp_path):
    # The good pod is listed twice, as two pages of a changing list may: it is one pod.
    good = pod("good", iso(SIX), requests={"nvidia.com/gpu": 1.0})
    pods = [good, *(IDLE | UNREADABLE | SILENT).values(), *NAMELESS, good]
    header(tmp_path, TEN, TEN)
    kubernetes(tmp_path, SIX, nodes=[{}, 3, node()], pods=pods)
    names = ("good", *IDLE, *UNREADABLE, *SILENT)
    metrics(tmp_path, [x for n in names for x in series(f"GPU-{n}", n, minutes(SIX, TEN, 0))])
    told = run(tmp_path)
    assert told[-1]["failures"] == 0
    assert findings(told, "subject", "reason", "gpus") == sorted(
        (research("Pod", name), "idle", 1) for name in ("good", *IDLE)
    )
    # What has no name is said of the list.
    expected = [research("Pod", name) for name in UNREADABLE] + ["kubernetes/pods"]
    assert sorted(unknown(told)) == sorted((name, "unreadable", False) for name in expected)


def test_slack_failures_change_slack_lines_and_no_others(tmp_path):
    def recorded(folder, end, script):
        header(folder, TEN, end)
        kubernetes(folder, SIX, nodes=[node()], pods=[pod("a", iso(SIX)), pod("b", iso(SIX))])
        kubernetes(folder, TEN + 10 * MINUTE, nodes=[node()], pods=[pod("b", iso(SIX))])
        until = TEN + 30 * MINUTE
        metrics(
            folder,
            series("GPU-1", "a", minutes(SIX, until, 0))
            + series("GPU-2", "b", minutes(SIX, TEN, 0)),  # then silence
        )
        if script:
            write(folder / "slack" / "script.json", script)
        return run(folder)

    limited = {"method": "chat.postMessage", "times": 1, "status": 429}
    script = [
        limited
        | {"headers": {"Retry-After": "400"}, "body": {"ok": False, "error": "ratelimited"}},
        {"from": iso(TEN + 5 * MINUTE), "to": iso(TEN + 10 * MINUTE), "status": 503, "body": "-"},
        {"method": "chat.update", "times": 1, "body": {"ok": False, "error": "invalid_blocks"}},
    ]
    end = TEN + 25 * MINUTE
    quiet = recorded(tmp_path / "quiet", end, None)
    failing = recorded(tmp_path / "failing", end, script)
    again = recorded(tmp_path / "again", end, script)
    assert failing == again
    said = [[x for x in told if x["type"] in {"finding", "unknown"}] for told in (quiet, failing)]
    assert said[0] == said[1]
    assert len(said[0]) > 3
    assert [x for x in quiet if x["type"] == "slack"] != [
        x for x in failing if x["type"] == "slack"
    ]
    stop = TEN + 15 * MINUTE
    half = recorded(tmp_path / "half", stop, script)
    assert half[:-1] == [x for x in failing[:-1] if x["at"] <= iso(stop)]


def test_an_event_at_a_ticks_time_comes_first_and_shows_the_same_once(tmp_path):
    header(tmp_path, TEN, TEN + 5 * MINUTE)
    kubernetes(tmp_path, SIX, nodes=[node()], pods=[pod("a", iso(SIX))])
    metrics(tmp_path, series("GPU-1", "a", minutes(SIX, TEN + 5 * MINUTE, 0)))
    asked = {"source": "gpu-steward", "detail-type": "Snapshot Requested", "detail": {}}
    times = (TEN - MINUTE, TEN.timestamp(), "2026-11-05T15:33:30+05:30", iso(TEN + 6 * MINUTE))
    events = [asked | {"time": iso(t) if isinstance(t, datetime) else t} for t in times]
    write(tmp_path / "events" / "asked.json", events)
    told = run(tmp_path)
    assert findings(told, "at", "status") == [(iso(TEN), "firing")]
    assert told[-1]["ticks"] == 2
    # 10:00 and the event at 10:03:30 (its offset taken off) and 10:05: the card is edited, not posted.
    assert told[-1]["slack"]["posts"] == 1


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("recording.yaml", "cluster: ml-shared-01\nnow: 1793872800\ntick: 30s\n", "tick"),
        ("metrics/z.om", 'm{a="b"} 1 1e30\n# EOF\n', "z.om:1"),
        ("metrics/z.om", "m 1 5\n", "# EOF"),
        ("kubernetes/20261105T060000Z/pods.json", "[]", "pods.json"),
        ("kubernetes/yesterday/pods.json", "{}", "yesterday"),
    ],
)
def test_what_cannot_be_read_stops_before_anything_is_replayed(tmp_path, capsys, name, text, named):
    header(tmp_path, TEN, TEN)
    write(tmp_path / "kubernetes" / "20261105T060000Z" / "nodes.json", listing([]))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert main([str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert named in err
