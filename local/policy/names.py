"""Names and other short texts of the document, each with the form that its owner prescribes."""

from datetime import date, datetime
from functools import cache
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import BeforeValidator, WithJsonSchema

from local.policy.forms import Text, refusal

ANY = ("any", "*")
"""What may be written for "any" beside leaving the key out; resolved, all are one form."""

OPEN = (None, *ANY, [], *([form] for form in ANY))
"""Every way to write "any" where names are listed."""

NAMESPACE_PREFIX = "hyperpod-ns-"
"""Task governance makes the namespace of a team with this before the team's name."""

DAYS = {
    spelling.casefold(): day
    for day, *short in (
        ("Monday", "mon"),
        ("Tuesday", "tue", "tues"),
        ("Wednesday", "wed", "weds"),
        ("Thursday", "thu", "thur", "thurs"),
        ("Friday", "fri"),
        ("Saturday", "sat"),
        ("Sunday", "sun"),
    )
    for spelling in (day, *short)
}
"""Every usual spelling of a day to the one that the resolved policy has."""


@cache
def _zones() -> set[str]:
    # localtime is whatever the machine says and Factory that nobody set it: neither is a place.
    return available_timezones() - {"localtime", "Factory"}


def _is_endpoint(text: str) -> bool:
    url = urlsplit(text)
    host = url.hostname or ""
    plain = url.port != 0 and url.username is None and not url.query and not url.fragment
    safe = url.scheme == "https" or host == "localhost" or ip_address(host).is_loopback
    return bool(host) and plain and safe and not url.path.rstrip("/").endswith("/api/v1")


# SageMaker's own pattern for team and priority class names has no maximum that binds; 63 is
# Kubernetes' for the labels and namespaces that carry them.
NAME = Text(
    r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?",
    "a name that SageMaker and Kubernetes accept",
    "write 1 to 63 lower-case letters, digits and hyphens (any has a meaning of its own)",
    lambda text: text not in ANY,
)
CLUSTER = Text(
    r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}",
    "a HyperPod cluster name",
    "write 1 to 63 letters, digits and hyphens, such as ml-shared-01",
)
EKS = Text(
    r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}",
    "an EKS cluster name",
    "write 1 to 100 letters, digits, hyphens and underscores",
)
REGION = Text(r"[a-z]{2}(?:-[a-z]+)+-[0-9]", "an AWS region", "write one such as us-east-1")
ACCOUNT = Text(r"[0-9]{12}", "an account id", 'write twelve digits in quotes: "012345678901"')
ROLE = Text(
    r"arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+",
    "the ARN of an IAM role",
    "write one such as arn:aws:iam::012345678901:role/gpu-steward-reader",
)
QUEUE = Text(
    r"https://sqs\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?/[0-9]{12}/[A-Za-z0-9_-]{1,80}",
    "the URL of a standard SQS queue",
    "copy it from the output SnapshotRequestsUrl of the spoke's stack",
)
ZONE = Text(
    r"[A-Za-z0-9_+/-]+",
    "an IANA time zone",
    "write UTC or a name such as Europe/Madrid, in this case",
    lambda text: text in _zones(),
)
INSTANCE_TYPE = Text(
    r"ml\.[a-z0-9-]+\.[a-z0-9]+", "a HyperPod instance type", "write one such as ml.p5.48xlarge"
)
CHANNEL = Text(
    r"[a-z0-9][a-z0-9_-]{0,79}", "a Slack channel name", "write it in lower case and without #"
)
CHANNEL_ID = Text(
    r"[CG][A-Z0-9]{8,}",
    "a Slack channel id",
    "copy it from the channel's details: C or G, then eight or more capitals and digits",
)
EMAIL = Text(r"[^@\s]+@[^@\s]+\.[^@\s]+", "an address", "write one such as team@example.com")
LOCATION = Text(
    r"(?:s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|fsx://[A-Za-z0-9][A-Za-z0-9._-]{0,62})/(?:[^/\s]+/)*",
    "a checkpoint location",
    "write s3://bucket/prefix/ or fsx://file-system/path/ with the slash at the end: without it, "
    "ab/ lies below a",
)
UNLISTED = "fsx://"
"""What begins a location that nothing here can list."""

PLACEHOLDERS = ("{team}", "{namespace}", "{job}")
"""What a checkpoint location may leave to be filled in."""

MARKER = Text(
    r"[^/\s]+",
    "the name of an object",
    "write the last part of its key, without a slash; * stands for any text: *.metadata",
)
KIND = Text(r"[A-Z][A-Za-z0-9]{0,62}", "a Kubernetes kind", "write one such as PyTorchJob")
DAY = Text(
    r"[A-Za-z]+",
    "a day of the week",
    "write Monday, MON or mon",
    lambda text: text.casefold() in DAYS,
)
CLOCK = Text(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]", "a time of day", 'write "HH:MM", such as "09:00"')
DATE = Text(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "a date",
    "write YYYY-MM-DD",
    lambda text: bool(date.fromisoformat(text)),
)
INSTANT = Text(
    r"[0-9]{4}-.+",
    "a time with an offset",
    "write date, time and offset, such as 2026-12-31T17:00:00Z",
    lambda text: datetime.fromisoformat(text).tzinfo is not None,
)
ENDPOINT = Text(
    r"https?://\S+",
    "an https URL (http only to this machine) without credentials, query, fragment or /api/v1",
    "write one such as https://prometheus.example.com",
    _is_endpoint,
)
LINE = Text(r"\S(?:.*\S)?", "a line of text", "write at least a word, without spaces around")


def _scope(value: object) -> object:
    """Bring every way to write "any" to the empty list, and names into one order."""
    if value in OPEN:
        return []
    names = value if isinstance(value, list) else []
    if not names or any(not isinstance(name, str) or name in ANY for name in names):
        raise refusal(value, "a list of names", "name some, or leave the key out")
    return sorted(set(names))


_SCOPE = (
    BeforeValidator(_scope),
    WithJsonSchema(
        {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"enum": [*ANY, None]}]}
    ),
)
AnyNames = Annotated[list[Annotated[str, NAME]], *_SCOPE]
AnyKinds = Annotated[list[Annotated[str, KIND]], *_SCOPE]
