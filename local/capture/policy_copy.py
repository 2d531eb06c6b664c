"""The policy in force, as a recording holds it: one cluster, without people, ids and comments."""

import re
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ruamel.yaml import YAML

from local.capture.kubernetes_kept import SILENCED
from local.capture.names import Pseudonyms, names_person
from local.policy.reading import parse, read

ELSEWHERE = "https://left-out.example.com"
"""Stands for a Prometheus of one's own: its name is its company's."""

_JOB = re.compile(r"([^/]+/[^/]+/)([^/*]+?)(-?\**)")


def copy_policy(path: Path, cluster: str, names: Pseudonyms) -> str:
    """Write the policy file as text.

    Raises
    ------
    PolicyFileError
        A ConfigError: the file is wrong.
    """
    document = dict(read(path).document)
    document["clusters"] = [one for one in document["clusters"] if one.get("name") == cluster]
    # An account stands alone in a key of its own, where nothing else gives it away.
    names.accounts |= {one["account"] for one in document["clusters"] if one.get("account")}
    copied: dict[str, Any] = _any(document, names)
    channels = (document.get("slack") or {}).get("channels") or {}
    if channels:
        copied["slack"]["channels"] = {name: names.channel(one) for name, one in channels.items()}
    text = StringIO()
    YAML(typ="safe", pure=True).dump(copied, text)
    # What a replay would refuse must not leave this machine as a recording.
    parse(text.getvalue(), path).resolve()
    return text.getvalue()


def _any(value: object, names: Pseudonyms) -> Any:
    if isinstance(value, dict):
        return {key: _member(key, one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_any(one, names) for one in value]
    return names.text(value) if isinstance(value, str) else value


def _member(key: str, value: object, names: Pseudonyms) -> Any:
    if not isinstance(value, str):
        return _any(value, names)
    if key == "reason":  # of an exemption: free text about somebody's job
        return SILENCED
    if key == "subject" and names.rename_jobs:
        return _subject(value, names)
    if key == "endpoint" and not (urlsplit(value).hostname or "").endswith(".amazonaws.com"):
        return ELSEWHERE
    return names.person(value) if names_person(key) else names.text(value)


def _subject(pattern: str, names: Pseudonyms) -> str:
    """Rename a job in the subject of an exemption; names with a common beginning keep one."""
    if found := _JOB.fullmatch(pattern):
        return f"{names.text(found[1])}{names.job(found[2])}{found[3]}"
    return names.text(pattern)
