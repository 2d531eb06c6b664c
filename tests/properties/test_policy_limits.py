"""Which threshold holds for whom, whatever overrides a policy has."""

import json
from copy import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from local.policy import OVERRIDDEN, resolve
from local.policy.explaining import explain
from local.policy.reading import parse, read
from steward.cluster.policy import ClusterPolicy, Scope, Severity, Thresholds

EXAMPLE = read(Path(__file__).parents[2] / "layers/policy/governance.yaml").document

TEAMS = ("platform-mlops", "research", "product-genai")
CLASSES = ("inference-serving", "production-training", "experimentation")
NAMESPACES = ("hyperpod-ns-platform-mlops", "hyperpod-ns-research", "default")
KINDS = ("PyTorchJob", "Deployment", "RayCluster")

MINUTES = st.integers(15, 24 * 60)  # from the default grace on, so that any window goes with it
IDLE = st.fixed_dictionaries(
    {},
    optional={
        "activity_max": st.integers(0, 10).map(lambda n: f"{n}%"),
        "window": MINUTES.map(lambda n: f"{n}m"),
        "coverage_min": st.integers(50, 100).map(lambda n: f"{n}%"),
        "held_memory": st.integers(1, 512).map(lambda n: f"{n}GiB"),
        "severity": st.sampled_from(["info", "warn", "page"]),
        "page_after": st.integers(0, 168).map(lambda n: f"{n}h"),
        "page_accelerators": st.integers(0, 64),
    },
).filter(bool)
HANG = st.fixed_dictionaries(
    {},
    optional={
        "activity_min": st.integers(50, 100).map(lambda n: f"{n}%"),
        "tensor_max": st.integers(0, 10).map(lambda n: f"{n}%"),
        "power_max": st.integers(0, 60).map(lambda n: f"{n}%"),
        "window": MINUTES.map(lambda n: f"{n}m"),
        "severity": st.sampled_from(["info", "warn", "page"]),
    },
).filter(bool)
SEVERITY = st.sampled_from(["info", "warn", "page"])
BORROWING = st.fixed_dictionaries(
    {},
    optional={
        "share": st.integers(50, 100).map(lambda n: f"{n}%"),
        "window": MINUTES.map(lambda n: f"{n}m"),
        "severity": SEVERITY,
    },
).filter(bool)
PREEMPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "count": st.integers(2, 1000),
        "period": st.integers(1, 90).map(lambda n: f"{n}d"),
        "lost_gpu_hours": st.integers(0, 10_000),
        "startup": MINUTES.map(lambda n: f"{n}m"),
        "checkpoint_interval": MINUTES.map(lambda n: f"{n}m"),
        "severity": SEVERITY,
    },
).filter(bool)
PENDING = st.fixed_dictionaries(
    {},
    optional={
        "wait": MINUTES.map(lambda n: f"{n}m"),
        "without_pods": MINUTES.map(lambda n: f"{n}m"),
        "severity": SEVERITY,
    },
).filter(bool)


def some(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), max_size=2, unique=True)


OF_WORKLOADS = {"idle": IDLE, "hang": HANG, "preemptions": PREEMPTIONS, "pending": PENDING}
OVERRIDE = st.fixed_dictionaries(
    {},
    optional=OF_WORKLOADS
    | {
        "teams": some(TEAMS),
        "namespaces": some(NAMESPACES),
        "priority_classes": some(CLASSES),
        "owner_kinds": some(KINDS),
    },
) | st.fixed_dictionaries(
    {},
    optional=OF_WORKLOADS | {"borrowing": BORROWING, "teams": some(TEAMS)},  # for teams only
)
OVERRIDE = OVERRIDE.filter(lambda override: any(group in override for group in OVERRIDDEN))
OVERRIDES = st.lists(OVERRIDE, max_size=5)
SCOPE = st.builds(
    Scope,
    team=st.none() | st.sampled_from(TEAMS),
    namespace=st.none() | st.sampled_from(NAMESPACES),
    priority_class=st.none() | st.sampled_from(CLASSES),
    owner_kind=st.none() | st.sampled_from(KINDS),
)


def document(overrides: list[dict[str, Any]]) -> dict[str, Any]:
    (cluster,) = EXAMPLE["clusters"]
    return EXAMPLE | {"clusters": [cluster | {"overrides": overrides}]}


def resolved(overrides: list[dict[str, Any]]) -> ClusterPolicy:
    return resolve(document(overrides)).clusters[0]


def holds(override: dict[str, Any], scope: Scope) -> bool:
    """Definition: every dimension that the override names has the scope's value in it."""
    return all(
        not override.get(key) or value in override[key]
        for key, value in (
            ("teams", scope.team),
            ("namespaces", scope.namespace),
            ("priority_classes", scope.priority_class),
            ("owner_kinds", scope.owner_kind),
        )
    )


PERCENTAGES = {"activity_max", "coverage_min", "activity_min", "tensor_max", "power_max", "share"}
IN_MINUTES = {
    "window": "window_minutes",
    "startup_grace": "startup_grace_minutes",
    "startup": "startup_minutes",
    "checkpoint_interval": "checkpoint_minutes",
    "wait": "wait_minutes",
    "without_pods": "without_pods_minutes",
}


def number(key: str, text: Any) -> tuple[str, Any]:
    """By hand: what a key of the document is called and measured in by the detectors."""
    if key in PERCENTAGES:
        return key, float(text.removesuffix("%")) / 100
    if key in IN_MINUTES:
        each = 60 if text.endswith("h") else 1  # the example's 2h
        return IN_MINUTES[key], int(text.rstrip("mh")) * each
    if key == "period":
        return "period_hours", int(text.removesuffix("d")) * 24
    if key == "held_memory":
        return "held_bytes", int(text.removesuffix("GiB")) * 1024 * 1024 * 1024
    if key == "page_after":
        return "page_after_hours", float(text.removesuffix("h"))
    return key, Severity(text) if key == "severity" else text


def exact(text: str) -> str | int:
    """A count is a number; everything else that `explain` prints has a unit."""
    return int(text) if text.isdecimal() else text


@given(OVERRIDES, SCOPE)
def test_of_the_overrides_that_hold_the_last_one_that_names_a_key_wins(
    overrides: list[dict[str, Any]], scope: Scope
) -> None:
    limits = resolved(overrides).limits(scope)
    for group in OVERRIDDEN:
        expected = asdict(getattr(Thresholds(), group))  # the example writes the defaults out
        for override in overrides:
            if holds(override, scope):
                expected |= dict(number(key, text) for key, text in override.get(group, {}).items())
        assert asdict(getattr(limits, group)) == expected
    # a cluster's own, which no override may change
    assert limits.telemetry == Thresholds().telemetry
    assert limits.capacity == Thresholds().capacity


@given(OVERRIDES, SCOPE)
def test_a_scope_that_no_override_matches_has_the_defaults(
    overrides: list[dict[str, Any]], scope: Scope
) -> None:
    others = [override for override in overrides if not holds(override, scope)]
    assert resolved(others).limits(scope) == Thresholds()


@given(st.data(), OVERRIDES, SCOPE)
def test_overrides_that_do_not_hold_may_stand_anywhere(
    data: st.DataObject, overrides: list[dict[str, Any]], scope: Scope
) -> None:
    relevant = [override for override in overrides if holds(override, scope)]
    mixed = list(relevant)
    for override in overrides:
        if not holds(override, scope):
            mixed.insert(data.draw(st.integers(0, len(mixed))), override)
    assert resolved(mixed).limits(scope) == resolved(relevant).limits(scope)


@given(OVERRIDES, SCOPE)
def test_an_unknown_dimension_matches_only_what_is_open_in_it(
    overrides: list[dict[str, Any]], scope: Scope
) -> None:
    # not knowing the owner must never be taken for knowing it
    cluster = resolved(overrides)
    blind = replace(scope, owner_kind=None)
    closed = replace(cluster, overrides=tuple(o for o in cluster.overrides if not o.owner_kinds))
    assert cluster.limits(blind) == closed.limits(blind)


@given(OVERRIDES)
def test_every_window_that_a_holder_may_need_is_measured(overrides: list[dict[str, Any]]) -> None:
    cluster = resolved(overrides)
    held = [
        cluster.limits(
            Scope(team=team, namespace=namespace, priority_class=priority, owner_kind=kind)
        )
        for team in TEAMS
        for namespace in NAMESPACES
        for priority in CLASSES
        for kind in KINDS
    ]
    idle = {limits.idle.window_minutes for limits in held}
    hang = {limits.hang.window_minutes for limits in held}
    assert idle <= set(cluster.idle_windows())
    assert hang <= set(cluster.hang_windows())
    assert idle | hang <= set(cluster.windows())


@given(
    st.sampled_from(["teams", "namespaces", "priority_classes", "owner_kinds"]),
    st.sampled_from(["any", "*", None, [], ["any"], ["*"]]),
    OVERRIDE,
)
def test_any_is_one_form_in_every_dimension(
    key: str, form: object, override: dict[str, Any]
) -> None:
    open_ = {name: value for name, value in override.items() if name != key}
    assert resolved([open_ | {key: form}]) == resolved([open_])


@settings(max_examples=25)  # each one reads a whole file
@given(
    OVERRIDES, st.sampled_from(TEAMS), st.none() | st.sampled_from(CLASSES), st.sampled_from(KINDS)
)
def test_explain_says_what_the_detectors_are_told(
    overrides: list[dict[str, Any]], team: str, priority_class: str | None, kind: str
) -> None:
    # JSON is YAML: the same reader, with lines of its own
    path = Path("policy.json")
    text = json.dumps(document(overrides), indent=1)
    source = parse(text, path)
    policy = resolve(source.document)
    scope = Scope(team=team, priority_class=priority_class, owner_kind=kind)
    rows = [line.split() for line in explain(source, "ml-shared-01", scope)]
    full = replace(scope, namespace=f"hyperpod-ns-{team}")  # a team's only namespace is known
    limits = policy.clusters[0].limits(full)
    for group in OVERRIDDEN:
        prefix = f"thresholds.{group}."
        said = dict(
            number(r[0].removeprefix(prefix), exact(r[1])) for r in rows if r[0].startswith(prefix)
        )
        assert said == asdict(getattr(limits, group))
    lines = text.splitlines()
    for row in rows:
        if row[0].startswith("thresholds.") and row[2] != "default":
            line = lines[int(row[-1].removeprefix("policy.json:")) - 1]
            assert f'"{row[0].rpartition(".")[2]}": ' in line
            assert row[1] in line


@given(OVERRIDES)
def test_resolving_leaves_the_document_as_it_was(overrides: list[dict[str, Any]]) -> None:
    before = json.dumps(document(overrides))
    resolved(overrides)
    assert json.dumps(document(overrides)) == before
