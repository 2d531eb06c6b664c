"""Overrides: whom they hold for, and what they must not say."""

from pathlib import Path

import pytest

from steward.cluster.policy import (
    BorrowingLimits,
    HangLimits,
    Override,
    PendingLimits,
    PreemptionLimits,
    Scope,
    Severity,
)
from tests.unit.policy.documents import edited, faults, resolved


@pytest.mark.parametrize(
    ("override", "key", "said"),
    [
        ("{teams: [resarch], idle: {window: 2h}}", "teams[0]", "did you mean research?"),
        (
            "{priority_classes: [experimentation-priority], idle: {window: 2h}}",
            "priority_classes[0]",
            "did you mean experimentation?",
        ),
        (
            "{namespaces: [hyperpod-ns-reserach], idle: {window: 2h}}",
            "namespaces[0]",
            "did you mean hyperpod-ns-research?",
        ),
        ("{owner_kinds: [pytorchjob], idle: {window: 2h}}", "owner_kinds[0]", "PyTorchJob"),
        ("{teams: research, idle: {window: 2h}}", "teams", "is not a list of names"),
        ("{teams: [any, research], idle: {window: 2h}}", "teams", "leave the key out"),
        ("{teams: [res*], idle: {window: 2h}}", "teams[0]", "is not a name"),
        ("{teams: [research], idle: {}}", "idle", "changes nothing"),
        ("{teams: [research], hang: {}}", "hang", "changes nothing"),
        ("{teams: [research], hang: {windw: 1h}}", "hang.windw", "did you mean window?"),
        ("{idle: {hang: 1h}}", "idle.hang", "is not a known key"),
        ("{team: [research], idle: {window: 2h}}", "team", "did you mean teams?"),
        # the same ranges as the thresholds have
        ("{idle: {window: 25h}}", "idle.window", "5m to 24h"),
        ("{idle: {coverage_min: 49%}}", "idle.coverage_min", "50% to 100%"),
        ("{idle: {activity_max: 11%}}", "idle.activity_max", "0% to 10%"),
        ("{idle: {held_memory: 2TiB}}", "idle.held_memory", "1MiB to 1024GiB"),
        ("{idle: {page_after: 8d}}", "idle.page_after", "0m to 168h"),
        ("{idle: {page_accelerators: -1}}", "idle.page_accelerators", "at most 10000"),
        ("{hang: {activity_min: 49%}}", "hang.activity_min", "50% to 100%"),
        ("{hang: {tensor_max: 11%}}", "hang.tensor_max", "0% to 10%"),
        ("{hang: {power_max: 61%}}", "hang.power_max", "0% to 60%"),
        ("{hang: {severity: loud}}", "hang.severity", "allowed are info, warn, page"),
        ("{teams: [research], borrowing: {}}", "borrowing", "changes nothing"),
        ("{borrowing: {share: 49%}}", "borrowing.share", "50% to 100%"),
        ("{preemptions: {count: 1}}", "preemptions.count", "2 to 1000"),
        ("{preemptions: {period: 91d}}", "preemptions.period", "1d to 90d"),
        ("{pending: {wait: 31d}}", "pending.wait", "0m to 30d"),
        # a cluster's own, not somebody's
        ("{capacity: {damping: 1h}}", "capacity", "is not a known key"),
        ("{telemetry: {damping: 1h}}", "telemetry", "is not a known key"),
        # 10 minutes are shorter than the grace of 15 that the thresholds have
        ("{idle: {window: 10m}}", "idle.window", "startup_grace of 15m is longer"),
    ],
)
def test_a_bad_override_is_refused(override: str, key: str, said: str, path: Path) -> None:
    text = edited("    overrides: []", f"    overrides:\n      - {override}")
    fault = next(line for line in faults(path, text) if f".overrides[0].{key}: " in line)
    assert said in fault
    assert fault.startswith(f"{path}:{text.count('\n')}: ")  # it is the file's last line


def test_an_override_that_names_no_threshold_is_refused(path: Path) -> None:
    text = edited("    overrides: []", "    overrides:\n      - {teams: [research]}")
    (fault,) = faults(path, text)
    remedy = "add idle, hang, borrowing, preemptions or pending, or drop the entry"
    assert f"clusters[0].overrides[0]: changes nothing; {remedy}" in fault


def test_an_override_may_change_hangs_alone(path: Path) -> None:
    form = "{owner_kinds: [PyTorchJob], hang: {window: 90m, power_max: 30%, severity: page}}"
    cluster = resolved(path, edited("    overrides: []", f"    overrides: [{form}]"))
    mine = cluster.limits(Scope(owner_kind="PyTorchJob"))
    assert mine.idle == cluster.thresholds.idle
    # By hand: 90 minutes and 30 % in place of 30 minutes and 25 %; the rest is the example's.
    assert mine.hang == HangLimits(window_minutes=90, power_max=0.3, severity=Severity.PAGE)
    assert cluster.limits(Scope(owner_kind="Job")).hang == HangLimits()
    # Activity is measured over all windows, the signals beside it over those of hangs alone.
    assert (cluster.windows(), cluster.hang_windows(), cluster.idle_windows()) == (
        (30, 60, 90),
        (30, 90),
        (60,),
    )


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("namespaces: [hyperpod-ns-research]", "namespaces"),
        ("priority_classes: [experimentation], teams: [research]", "priority_classes"),
        ("owner_kinds: [Job], namespaces: [default]", "namespaces and owner_kinds"),
    ],
)
def test_borrowing_can_be_overridden_for_teams_only(named: str, said: str, path: Path) -> None:
    # the borrowing limit is that of a team's queue, which has no namespace, class or owner
    form = f"    overrides: [{{{named}, borrowing: {{share: 80%}}}}]"
    (fault,) = faults(path, edited("    overrides: []", form))
    assert f"overrides[0].borrowing: never holds with {said}: " in fault
    assert "; move it to an entry that names teams only" in fault


def test_borrowing_preemptions_and_pending_may_be_overridden(path: Path) -> None:
    form = (
        "{teams: [research], namespaces: any, borrowing: {share: 80%, window: 2h},"
        " preemptions: {count: 5, period: 14d, lost_gpu_hours: 100.5, severity: page},"
        " pending: {wait: 1d, without_pods: 0m}}"
    )
    cluster = resolved(path, edited("    overrides: []", f"    overrides: [{form}]"))
    mine = cluster.limits(Scope(team="research"))
    # By hand: two hours are 120 minutes, two weeks 14 x 24 = 336 hours, a day 1440 minutes.
    assert mine.borrowing == BorrowingLimits(share=0.8, window_minutes=120)
    assert mine.preemptions == PreemptionLimits(
        count=5, period_hours=336, lost_gpu_hours=100.5, severity=Severity.PAGE
    )
    assert mine.pending == PendingLimits(wait_minutes=1440, without_pods_minutes=0)
    assert mine.capacity == cluster.thresholds.capacity
    assert cluster.limits(Scope(team="product-genai")) == cluster.thresholds


def test_a_namespace_outside_governance_may_have_an_override(path: Path) -> None:
    text = "    overrides: [{namespaces: [default], idle: {severity: info}}]"
    cluster = resolved(path, edited("    overrides: []", text))
    ungoverned = cluster.limits(Scope(namespace="default"))
    assert ungoverned.idle.severity is Severity.INFO


def test_an_override_holds_for_jobs_that_name_the_class_as_kubernetes_does(path: Path) -> None:
    # task governance makes the WorkloadPriorityClass <class>-priority
    text = "    overrides: [{priority_classes: [experimentation], idle: {window: 2h}}]"
    cluster = resolved(path, edited("    overrides: []", text))
    hours = {
        name: cluster.limits(Scope(priority_class=name)).idle.window_minutes
        for name in ("experimentation", "experimentation-priority", "production-training-priority")
    }
    assert hours == {
        "experimentation": 120,
        "experimentation-priority": 120,
        "production-training-priority": 60,
    }


@pytest.mark.parametrize(
    "form",
    [
        "",
        "teams: any,",
        "teams: '*',",
        "teams: [],",
        "teams: ['*'],",
        "teams: [any],",
        "teams: null,",
    ],
)
def test_any_has_one_form_however_it_is_written(form: str, path: Path) -> None:
    text = f"    overrides: [{{{form} idle: {{window: 2h}}}}]"
    (override,) = resolved(path, edited("    overrides: []", text)).overrides
    assert override == Override(idle={"window_minutes": 120})


def test_the_order_in_a_scope_means_nothing(path: Path) -> None:
    one, other = (
        resolved(
            path,
            edited("    overrides: []", f"    overrides: [{{teams: {t}, idle: {{window: 2h}}}}]"),
        )
        for t in ("[research, platform-mlops]", "[platform-mlops, research, research]")
    )
    assert one.overrides == other.overrides
