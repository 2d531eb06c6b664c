"""The example policy, edited: one change of its text, and what then becomes of it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.policy import load
from local.policy.reading import PolicyFileError
from steward.cluster.policy import ClusterPolicy

FOLDER = Path(__file__).parents[3] / "layers/policy"
EXAMPLE = FOLDER / "governance.yaml"
TEXT = EXAMPLE.read_text(encoding="utf-8")

# Key paths and lines of the example.
TEAM = "clusters[0].teams[1]"
IDLE = "clusters[0].thresholds.idle"
QUOTA = "        accelerators: 14\n"
BORROW = "          borrow_limit_percent: 50 # 7 accelerators"
DONT_LEND = "          strategy: DontLend # neither lends nor borrows"
CHANNELS = "  platform_channel: gpu-platform\n"
ZONE = "    time_zone: UTC # of days, weeks and the digest\n"
ENDPOINT = re.findall(r"https://aps\S+", TEXT)[0]


def edited(old: str, new: str, text: str = TEXT) -> str:
    assert text.count(old) == 1, f"{old!r} must name one place"
    return text.replace(old, new)


def alerting(body: str) -> str:
    """The example with a block of alerting."""
    return edited(ZONE, f"{ZONE}    alerting:\n{body}")


def slack(body: str) -> str:
    return edited(CHANNELS, CHANNELS + body)


def added(text: str) -> int:
    """The last line of a text that the example does not have, from 1."""
    known = set(TEXT.splitlines())
    return max(n for n, line in enumerate(text.splitlines(), 1) if line not in known)


def faults(path: Path, text: str) -> tuple[str, ...]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyFileError) as caught:
        load(path)
    return caught.value.lines


def resolved(path: Path, text: str) -> ClusterPolicy:
    path.write_text(text, encoding="utf-8")
    return load(path).clusters[0]


def exemption(**changes: str | None) -> str:
    keys = {
        "subject": "PyTorchJob/hyperpod-ns-research/sweep",
        "reason": "agreed",
        "author": "research-oncall@example.com",
        "until": "2026-12-31T17:00:00+01:00",
    } | changes
    body = ", ".join(f"{key}: {json.dumps(v)}" for key, v in keys.items() if v is not None)
    return f"{QUOTA}        exemptions: [{{{body}}}]\n"


@dataclass(frozen=True)
class Mistake:
    """One edit of the example and the one fault that it must give.

    The fault stands at the last line of the edit, `up` lines above it, or at the line `at`.
    """

    old: str
    new: str
    key: str
    message: str
    remedy: str
    at: str = ""
    up: int = 0

    def line(self) -> int:
        if self.at:
            return edited(self.old, self.new).splitlines().index(self.at) + 1
        before = TEXT[: TEXT.index(self.old)] + self.new.removesuffix("\n")
        return before.count("\n") + 1 - self.up
