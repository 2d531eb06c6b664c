"""What a function is told by its environment; read once, when first asked for."""

import os
from collections.abc import Mapping
from datetime import datetime

import msgspec

from steward.errors import ConfigError


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Names of what the template made; empty where a function does not get one.

    Attributes
    ----------
    bus : str
        Name of the steward's bus; its ARN in a spoke, whose bus is the hub's.
    snapshot_requests_url : str
        The stack's own request queue; empty in a hub, which has none.
    spoke : bool
        Whether the stack is `take_snapshot` alone, deployed beside a cluster.
    local_endpoint : str
        Base URL of the local rig. Where set, Slack, Prometheus and Kubernetes are read through it
        and plain HTTP is accepted; empty in every deployment.
    local_now : datetime or None
        The rig's virtual time; honoured only with `local_endpoint`.
    """

    bucket: str = ""
    bus: str = ""
    state_table: str = ""
    snapshot_requests_url: str = ""
    spoke: bool = False
    evaluations_url: str = ""
    commands_url: str = ""
    slack_secret: str = ""
    policy_path: str = "/opt/policy/policy.json"
    region: str = ""
    local_endpoint: str = ""
    local_now: datetime | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read the settings.

        Raises
        ------
        ConfigError
            LOCAL_NOW is set and is not an ISO 8601 time with an offset.
        """
        local_endpoint = environment.get("LOCAL_ENDPOINT", "")
        return cls(
            bucket=environment.get("BUCKET", ""),
            bus=environment.get("BUS", ""),
            state_table=environment.get("STATE_TABLE", ""),
            snapshot_requests_url=environment.get("SNAPSHOT_REQUESTS_URL", ""),
            spoke=environment.get("ROLE", "") == "spoke",
            evaluations_url=environment.get("EVALUATIONS_URL", ""),
            commands_url=environment.get("COMMANDS_URL", ""),
            slack_secret=environment.get("SLACK_SECRET", ""),
            policy_path=environment.get("POLICY_PATH", "/opt/policy/policy.json"),
            region=environment.get("AWS_REGION", ""),
            local_endpoint=local_endpoint.rstrip("/"),
            local_now=_time(environment.get("LOCAL_NOW", "")) if local_endpoint else None,
        )


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"LOCAL_NOW: {text!r} is not an ISO 8601 time") from error
    if when.tzinfo is None:
        raise ConfigError(f"LOCAL_NOW: {text!r} lacks an offset; write 2026-11-02T12:00:00Z")
    return when
