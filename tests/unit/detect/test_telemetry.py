"""The telemetry detector: one finding a cluster and reason, and never for what could not be asked."""

from copy import replace
from datetime import timedelta

from steward.cluster.accelerators import Owner
from steward.cluster.control_plane import AddOn, ControlPlane
from steward.cluster.memory import Memory
from steward.cluster.policy import Severity
from steward.cluster.snapshot import InvalidSamples, PartStatus
from steward.detect.telemetry import detect
from tests.builders import (
    NOON,
    a_cluster,
    a_holder,
    a_part,
    a_snapshot,
    a_window,
    an_accelerator,
    at,
)

CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
DARK = {"windows": (a_window(None, present=0),), "last_sample": None}


def never_seen(name):
    return an_accelerator(None, holder=a_holder(name), ever_seen=False, **DARK)


def test_pods_without_any_series_are_one_finding_since_the_oldest_pod():
    older = replace(never_seen("old"), holder=a_holder("old", since=at("7:00")))
    newer = replace(never_seen("new"), holder=a_holder("new", since=at("9:00")))
    (finding,) = detect(a_snapshot(older, newer, an_accelerator()), EMPTY, CLUSTER).findings
    assert (finding.subject, finding.reason) == ("Cluster/ml-shared-01", "no_telemetry")
    assert (finding.severity, finding.gpus, finding.since) == (Severity.WARN, 2, at("7:00"))
    assert finding.damping_minutes == 10
    assert finding.evidence["share"] == round(2 / 3, 6)
    assert finding.evidence["workloads"] == [
        "PyTorchJob/hyperpod-ns-research/new",
        "PyTorchJob/hyperpod-ns-research/old",
    ]


def test_a_series_lost_everywhere_pages_and_lost_in_part_does_not():
    lost = [an_accelerator(f"GPU-{n}", **DARK) for n in (1, 2)]
    (finding,) = detect(a_snapshot(*lost), EMPTY, CLUSTER).findings
    assert (finding.reason, finding.severity) == ("telemetry_lost", Severity.PAGE)
    (finding,) = detect(a_snapshot(lost[0], an_accelerator("GPU-2")), EMPTY, CLUSTER).findings
    assert finding.severity is Severity.INFO


def test_pods_that_never_had_telemetry_do_not_make_a_total_loss_partial():
    found = detect(a_snapshot(an_accelerator(**DARK), never_seen("other")), EMPTY, CLUSTER)
    severities = {f.reason: f.severity for f in found.findings}
    assert severities == {"no_telemetry": Severity.WARN, "telemetry_lost": Severity.PAGE}


def test_lost_telemetry_dates_from_the_last_sample():
    seen = detect(a_snapshot(an_accelerator()), EMPTY, CLUSTER)  # newest sample 11:58
    lost = an_accelerator(**DARK)
    (finding,) = detect(a_snapshot(lost, at=at("13:30")), seen.memory, CLUSTER).findings
    assert finding.since == at("11:58")
    again = detect(
        a_snapshot(lost, at=at("13:35")),
        detect(a_snapshot(lost, at=at("13:30")), seen.memory, CLUSTER).memory,
        CLUSTER,
    )
    assert again.findings[0].since == at("11:58")


def test_dropped_samples_are_said_once_even_where_the_verdict_survived():
    invalid = (InvalidSamples(metric="DCGM_FI_DEV_GPU_UTIL", samples=2, accelerators=1),)
    (finding,) = detect(a_snapshot(an_accelerator(), invalid=invalid), EMPTY, CLUSTER).findings
    assert (finding.reason, finding.severity, finding.gpus) == ("invalid_samples", Severity.INFO, 1)
    assert finding.evidence["dropped"] == {"DCGM_FI_DEV_GPU_UTIL": 2}


def test_a_young_pod_without_series_is_no_finding():
    young = replace(never_seen("young"), holder=a_holder(since=NOON - timedelta(minutes=30)))
    assert detect(a_snapshot(young), EMPTY, CLUSTER).findings == ()


def test_what_could_not_be_asked_is_unknown_and_no_finding():
    for name in ("kubernetes/pods", "prometheus"):
        refused = {name: PartStatus.UNREADABLE}
        found = detect(a_snapshot(an_accelerator(windows=()), refused=refused), EMPTY, CLUSTER)
        assert found.findings == ()
        assert [(u.subject, u.blind) for u in found.unknown] == [(name, True)]


def test_devices_are_remembered_while_their_pod_lives():
    seen = detect(a_snapshot(an_accelerator()), EMPTY, CLUSTER)
    (device,) = seen.memory.devices
    assert (device.uuid, device.pod_uid, device.seen) == ("GPU-1", "uid-sweep", at("11:58"))
    dark = detect(a_snapshot(an_accelerator(**DARK), at=at("13:30")), seen.memory, CLUSTER)
    assert dark.memory.devices[0].seen == at("11:58")
    gone = detect(a_snapshot(at=at("13:35")), dark.memory, CLUSTER)
    assert gone.memory.devices == ()


def test_a_bare_pod_is_its_own_workload():
    holder = a_holder("debug", owner=Owner(kind="Pod", namespace="default", name="debug"))
    gpu = an_accelerator(None, holder=holder, ever_seen=False, **DARK)
    (finding,) = detect(a_snapshot(gpu), EMPTY, CLUSTER).findings
    assert finding.evidence["workloads"] == ["Pod/default/debug"]


def test_dropped_samples_count_each_device_once_whatever_was_wrong_with_it():
    # One device with a bad engine sample, two with bad utilisation, one of them with bad power too.
    bad = a_window(0.5, invalid=1)
    gpus = (
        an_accelerator("GPU-1", windows=(bad,)),
        an_accelerator("GPU-2", windows=(bad,)),
        an_accelerator("GPU-3", windows=(bad,), power=(a_window(90.0, minutes=30, invalid=2),)),
        an_accelerator("GPU-4"),
    )
    dropped = (
        InvalidSamples(metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE", samples=1, accelerators=1),
        InvalidSamples(metric="DCGM_FI_DEV_GPU_UTIL", samples=2, accelerators=2),
        InvalidSamples(
            metric="DCGM_FI_DEV_POWER_USAGE", samples=2, accelerators=1, first=at("11:20")
        ),
    )
    (finding,) = detect(a_snapshot(*gpus, invalid=dropped), EMPTY, CLUSTER).findings
    assert (finding.reason, finding.gpus) == ("invalid_samples", 3)
    assert finding.since == at("11:20")  # the first of them, not when it was seen


OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
LEVEL = "metricsProvider.acceleratedComputeMetrics.level"


def checked(*add_ons, listed=True, **changes):
    plane = ControlPlane(add_ons=add_ons if listed else None)
    snapshot = a_snapshot(never_seen("new"), control_plane=plane, **changes)
    (finding,) = detect(snapshot, EMPTY, CLUSTER).findings
    return finding


def test_an_add_on_that_is_missing_switched_off_or_failing_is_named_as_the_cause():
    said = {
        "is not installed": checked(),
        "has metricsProvider.acceleratedComputeMetrics.level DISABLED": checked(
            AddOn(name=OBSERVABILITY, version="v1", status="ACTIVE", settings={LEVEL: "DISABLED"})
        ),
        "is DEGRADED": checked(AddOn(name=OBSERVABILITY, version="v1", status="DEGRADED")),
    }
    for words, finding in said.items():
        assert finding.evidence["what_to_check"].endswith(f"The add-on {OBSERVABILITY} {words}.")


def test_an_add_on_that_works_or_could_not_be_read_is_no_cause():
    well = AddOn(name=OBSERVABILITY, version="v1.2", status="ACTIVE", settings={LEVEL: "BASIC"})
    assert "add-on" not in checked(well).evidence["what_to_check"]
    assert checked(well).evidence["add_on"] == {
        "name": OBSERVABILITY,
        "version": "v1.2",
        "status": "ACTIVE",
        "settings": {LEVEL: "BASIC"},
    }
    dark = checked(listed=False)
    assert ("add-on" in dark.evidence["what_to_check"], dark.evidence["add_on"]) == (False, None)


def test_with_container_insights_the_add_on_is_looked_at_not_an_exporter():
    parts = tuple(a_part(name) for name in ("kubernetes/pods", "cloudwatch/GetMetricData"))
    finding = checked(parts=parts, metrics="cloudwatch/GetMetricData")
    assert finding.action == (
        "aws eks describe-addon --region us-east-1 --cluster-name ml-shared-01-eks "
        "--addon-name amazon-cloudwatch-observability"
    )
