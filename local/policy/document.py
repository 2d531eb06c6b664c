"""The document: what each key is called, holds, accepts, and means where it is left out.

The docstring below a key is its description in the JSON schema and in the faults about it.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from local.policy.alerting import USER_ID, AlertingDocument
from local.policy.forms import STRICT, duration
from local.policy.names import (
    ACCOUNT,
    CHANNEL,
    CHANNEL_ID,
    CLOCK,
    CLUSTER,
    DATE,
    DAY,
    EKS,
    EMAIL,
    ENDPOINT,
    INSTANCE_TYPE,
    INSTANT,
    LINE,
    LOCATION,
    MARKER,
    NAME,
    QUEUE,
    REGION,
    ROLE,
    ZONE,
)
from local.policy.thresholds import OverrideDocument, ThresholdsDocument


class _Document(BaseModel):
    model_config = STRICT


class ExemptionDocument(_Document):
    """A promise not to alert about a subject, made by somebody, for a reason, until a time."""

    detector: Literal[
        "idle_gpus",
        "borrowing",
        "preemptions",
        "pending",
        "governance",
        "telemetry",
        "capacity",
        "any",
        "*",
    ] = "any"
    """Detector that stays quiet; left out: any"""
    subject: Annotated[str, LINE]
    """Subject as the finding names it; * stands for any text: PyTorchJob/hyperpod-ns-research/*"""
    reason: Annotated[str, LINE]
    """Why, for whoever reads it next year"""
    author: Annotated[str, LINE]
    """Who decided it"""
    until: Annotated[str, INSTANT]
    """End, with an offset: 2026-12-31T17:00:00Z; no exemption is for ever"""


class SharingDocument(_Document):
    """SageMaker's ResourceSharingConfig of a team; docs/quota-mapping.md says what each does."""

    strategy: Literal["Lend", "DontLend", "LendAndBorrow"]
    """Lend, DontLend (which stops borrowing too) or LendAndBorrow"""
    borrow_limit_percent: Annotated[int, Field(ge=0, le=10_000)] | None = None
    """BorrowLimit: percent of the team's own quota, 0 to 10000; with LendAndBorrow only"""


class CheckpointsDocument(_Document):
    """A location of checkpoints, and what shows that one is whole."""

    location: Annotated[str, LOCATION]
    """s3://bucket/prefix/, or fsx://file-system/path/; may hold {team}, {namespace} and {job}"""
    marker: Annotated[str, MARKER] | None = None
    """Name of the object that is written last, * for any text; left out: any object counts"""


class _Plain:
    """A location written as text is one without a marker, for `Annotated`."""

    @staticmethod
    def _validate(value: object) -> object:
        return {"location": LOCATION.validate(value)} if isinstance(value, str) else value

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        plain = {"type": "string", "pattern": f"^(?:{LOCATION.pattern})$"}
        return {"anyOf": [handler(schema), plain]}


class TeamDocument(_Document):
    """A team: its quota, and whom to tell."""

    name: Annotated[str, NAME]
    """TeamName of its compute allocation"""
    namespaces: Annotated[list[Annotated[str, NAME]], Field(min_length=1)] | None = None
    """Its namespaces; left out: hyperpod-ns-<name>"""
    accelerators: Annotated[int, Field(ge=0, le=10_000_000)]
    """Guaranteed quota in accelerators"""
    sharing: SharingDocument
    """What it lends and borrows"""
    fair_share_weight: Annotated[int, Field(ge=0, le=100)] = 0
    """FairShareWeight, 0 to 100; SageMaker's default is 0"""
    owners: Annotated[list[Annotated[str, EMAIL]], Field(min_length=1)]
    """Addresses of who answers for it, at least one"""
    channel: Annotated[str, CHANNEL] | None = None
    """Name under slack.channels; left out: slack.platform_channel"""
    checkpoints: list[Annotated[CheckpointsDocument, _Plain()]] = []
    """Where its jobs write checkpoints: s3://bucket/prefix/, or location and marker"""
    exemptions: list[ExemptionDocument] = []
    """What not to alert about, and until when"""


class PriorityClassDocument(_Document):
    """A priority class of the cluster policy (ClusterSchedulerConfig)."""

    name: Annotated[str, NAME]
    """Name without -priority, which is how jobs name it: experimentation-priority"""
    weight: Annotated[int, Field(ge=0, le=100)]
    """Weight, 0 to 100: the higher is served first"""


class PriceDocument(_Document):
    """What an instance hour costs; without a price there are no dollars."""

    instance_type: Annotated[str, INSTANCE_TYPE]
    """Type of the instance, such as ml.p5.48xlarge"""
    usd_per_hour: Annotated[float, Field(gt=0, le=10_000)]
    """US dollars an instance hour"""
    source: Annotated[str, LINE]
    """Who says so: shown beside every cost"""
    date: Annotated[str, DATE]
    """Since when, YYYY-MM-DD"""


class InstanceGroupDocument(_Document):
    """Capacity that the policy counts on."""

    instance_type: Annotated[str, INSTANCE_TYPE]
    """Type of the instances, such as ml.p5.48xlarge"""
    count: Annotated[int, Field(ge=1, le=10_000)]
    """How many instances"""
    accelerators_per_instance: Annotated[int, Field(ge=1, le=64)]
    """Accelerators of one instance"""


class MetricsDocument(_Document):
    """Where accelerator metrics come from and how they arrive."""

    backend: Literal["prometheus", "container_insights"]
    """prometheus (Amazon's managed service, or one of your own) or container_insights (CloudWatch)"""
    endpoint: Annotated[str, ENDPOINT] | None = None
    """With prometheus, required: base URL of the query API, https, without /api/v1"""
    sigv4: bool | None = None
    """With prometheus, required: whether requests are signed (true for Amazon's) or plain"""
    cluster_label: Annotated[str, LINE] | None = None
    """With prometheus: value of cluster_name, where several clusters share the workspace"""
    scrape_interval: Annotated[str, duration("5s", "5m", "1s")] = "60s"
    """How often a series gets a sample, 5s to 5m; with container_insights at least 60s"""
    delay: Annotated[str, duration("0s", "30m", "1s")] | None = None
    """How late a sample may be, 0s to 30m; left out: 2m, or 5m with container_insights"""


class DigestDocument(_Document):
    """When the weekly digest is posted, in the cluster's time zone."""

    day: Annotated[str, DAY] = "Monday"
    """Day of the week: Monday, MON or mon"""
    time: Annotated[str, CLOCK] = "09:00"
    """Time of day, HH:MM"""


class ClusterDocument(_Document):
    """One HyperPod cluster and its governance."""

    name: Annotated[str, CLUSTER]
    """HyperPod cluster name"""
    eks_name: Annotated[str, EKS]
    """Name of the EKS cluster that orchestrates it"""
    region: Annotated[str, REGION]
    """AWS region, such as us-east-1"""
    account: Annotated[str, ACCOUNT] | None = None
    """Account id in quotes; left out: the account that the steward runs in"""
    role_arn: Annotated[str, ROLE] | None = None
    """Role to read the cluster with; left out: the function's own"""
    spoke_queue_url: Annotated[str, QUEUE] | None = None
    """Request queue of the spoke that reads the cluster; left out: the hub reads it"""
    time_zone: Annotated[str, ZONE]
    """IANA time zone of days, weeks and the digest: UTC, Europe/Madrid"""
    tick: Annotated[str, duration("5m", "24h", "5m")] | None = None
    """How often to look, 5m to 24h, a multiple of 5m; left out: see docs/policy.md"""
    digest: DigestDocument = DigestDocument()
    """When the weekly digest is posted"""
    alerting: AlertingDocument = AlertingDocument()
    """How loudly and when people are told"""
    metrics: MetricsDocument
    """Where accelerator metrics come from"""
    capacity: Annotated[list[InstanceGroupDocument], Field(min_length=1)]
    """Instances that the quotas share out"""
    prices: list[PriceDocument] = []
    """Prices of instance hours"""
    buffer_accelerators: Annotated[int, Field(ge=0, le=10_000_000)]
    """Accelerators that no team is promised, for spikes and onboarding"""
    fair_share: bool
    """FairShare of the cluster policy: true is Enabled"""
    priority_classes: Annotated[list[PriorityClassDocument], Field(max_length=10)]
    """Priority classes of the cluster policy, at most 10"""
    teams: list[TeamDocument]
    """Teams and their quotas"""
    thresholds: ThresholdsDocument = ThresholdsDocument()
    """Thresholds for everybody; left out: the defaults"""
    overrides: list[OverrideDocument] = []
    """Thresholds for some; of those that match, the later one wins, key by key"""


class SlackDocument(_Document):
    """Slack channels by name, the one that gets what no team owns, and who is who."""

    channels: Annotated[
        dict[Annotated[str, CHANNEL], Annotated[str, CHANNEL_ID]],
        Field(json_schema_extra={"additionalProperties": False}),
    ]
    """Channel name to channel id"""
    platform_channel: Annotated[str, CHANNEL]
    """Name of the channel for what has no team, and for a team without a channel"""
    users: Annotated[
        dict[Annotated[str, EMAIL], Annotated[str, USER_ID]],
        Field(json_schema_extra={"additionalProperties": False}),
    ] = {}
    """E-mail address to Slack user id, of people who are mentioned or may exempt"""
    lookup_users: bool = False
    """Whether addresses that users lacks are looked up in Slack (scope users:read.email)"""
    may_exempt: list[Annotated[str, EMAIL]] = []
    """Addresses of who may exempt anything in Slack; a team's owners may exempt what is theirs"""


class PolicyDocument(_Document):
    """The policy as code of GPU Steward."""

    schema_version: Annotated[Literal[1], Field(alias="schema")]
    """Version of this form: 1"""
    slack: SlackDocument
    """Where messages go"""
    clusters: Annotated[list[ClusterDocument], Field(min_length=1)]
    """The clusters to watch"""
