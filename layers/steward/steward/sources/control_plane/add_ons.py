"""EKS add-ons that governance and telemetry rest on, and what is kept of their configuration."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from steward.cluster.control_plane import AddOn
from steward.sources.control_plane.fields import each, get, need

_KUBERNETES = "agent.config.logs.metrics_collected.kubernetes"

KEPT: Mapping[str, tuple[str, ...]] = {
    "amazon-sagemaker-hyperpod-taskgovernance": (),
    "amazon-sagemaker-hyperpod-observability": (
        "metricsProvider.*.level",
        "metricsProvider.*.scrapeInterval",
        "ampWorkspace.prometheusEndpoint",
    ),
    "amazon-cloudwatch-observability": (
        f"{_KUBERNETES}.kueue_container_insights",
        f"{_KUBERNETES}.enhanced_container_insights",
        f"{_KUBERNETES}.accelerated_compute_metrics",
        "containerInsights.enabled",
        "otelContainerInsights.enabled",
        "containerLogs.enabled",
    ),
    "eks-pod-identity-agent": (),
}
"""The add-ons that are described, and what is kept of the configuration of each: dotted paths, in
which `*` is one step. Everything else in a configuration may be secret, and ends here."""


def read_add_on(item: object, name: str) -> tuple[AddOn, str]:
    """Read the answer of DescribeAddon; beside the add-on, what is wrong with its configuration."""
    add_on = need(item, "addon", dict)
    health = get(add_on, "health", dict) or {}
    codes = each(health, "issues", lambda one: get(one, "code", str)) if "issues" in health else ()
    settings, fault = _settings(add_on.get("configurationValues") or "", KEPT.get(name, ()))
    read = AddOn(
        name=name,
        version=get(add_on, "addonVersion", str),
        status=get(add_on, "status", str),
        settings=settings or {},
        settings_known=settings is not None,
        issues=tuple(code for code in codes if code),
    )
    return read, f"{name}: {fault}" if fault else ""


def _settings(text: object, kept: tuple[str, ...]) -> tuple[dict[str, str] | None, str]:
    """Pick what is kept out of a configuration; None, and why, where it cannot be read.

    The reason shows nothing of it.
    """
    if not kept or text == "":
        return {}, ""
    if not isinstance(text, str):
        return None, "its configuration is no text, so its settings are not known"
    if not text.strip():
        return {}, ""
    try:
        values = msgspec.json.decode(text)
    except msgspec.DecodeError:
        # EKS takes YAML, too. Lambda has no parser of it, and guessing at it would be a lie.
        return None, "its configuration is not JSON, so its settings are not known"
    if not isinstance(values, dict):
        return None, "its configuration is no JSON object, so its settings are not known"
    found = _leaves(values, "", max(path.count(".") for path in kept) + 1)
    return {path: value for path, value in found if _matches(path, kept)}, ""


def _leaves(values: Mapping[str, object], above: str, depth: int) -> Iterator[tuple[str, str]]:
    """Walk the single values of a configuration, by their dotted path."""
    for key, value in values.items():
        path = f"{above}{key}"
        if "." in key:
            continue  # a path that can be read two ways names nothing
        if isinstance(value, dict) and depth > 1:
            yield from _leaves(value, f"{path}.", depth - 1)
        elif isinstance(value, str):
            yield path, value
        elif isinstance(value, bool | int | float):
            yield path, msgspec.json.encode(value).decode()


def _matches(path: str, kept: tuple[str, ...]) -> bool:
    # As many steps: `*` must not reach over a dot.
    return any(path.count(".") == one.count(".") and fnmatchcase(path, one) for one in kept)
