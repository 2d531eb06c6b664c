"""The policy in force, as a recording holds it: one cluster, without addresses, ids and comments."""

from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from local.capture.names import Pseudonyms
from local.policy.reading import parse, read


def copy_policy(path: Path, cluster: str, names: Pseudonyms) -> str:
    """Write the policy file as text.

    Raises
    ------
    PolicyFileError
        A ConfigError: the file is wrong.
    """
    document = dict(read(path).document)
    document["clusters"] = [one for one in document["clusters"] if one.get("name") == cluster]
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
        return {key: _any(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_any(one, names) for one in value]
    return names.text(value) if isinstance(value, str) else value
