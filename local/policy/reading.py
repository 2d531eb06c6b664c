"""A policy file as it was read: plain values, and the line of every key for the faults."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from local.policy.faults import Fault, KeyPath, PolicyError
from local.policy.resolving import resolve
from steward.cluster.policy import Policy
from steward.errors import ConfigError

_TAG = "tag:yaml.org,2002:"


class PolicyFileError(ConfigError):
    """A policy file that cannot be used: `lines` has one entry a fault, the message all in one."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(" ".join(line.split()) for line in lines)
        super().__init__(" | ".join(self.lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A policy file as it was read: plain values, and where each key stands.

    Attributes
    ----------
    lines : dict of key path to int
        Line (from 1) of every key and of every entry of a list.
    faults : list of (int, Fault)
        Line and fault of what YAML allows and a policy must not have: a key written twice.
    """

    path: Path
    document: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[tuple[int, Fault]] = field(default_factory=list)

    def line(self, path: KeyPath) -> int:
        """Line of a key; of the nearest key around it where it is missing."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def value(self, path: KeyPath) -> Any:
        """Value of a key that the file holds, as it is written there."""
        value: Any = self.document
        for step in path:
            value = value[step]
        return value

    def where(self, path: KeyPath) -> str:
        """Write a key's place as `file:line`."""
        return f"{self.path}:{self.line(path)}"

    def resolve(self) -> Policy:
        """Check and resolve what the file says.

        Raises
        ------
        PolicyFileError
            Something in it is wrong; names every fault, in the order of the lines.
        """
        faults = list(self.faults)
        try:
            policy = resolve(self.document)
        except PolicyError as error:
            faults += [(self.line(fault.path), fault) for fault in error.faults]
        if faults:
            faults.sort(key=lambda entry: entry[0])
            raise PolicyFileError([f"{self.path}:{line}: {fault}" for line, fault in faults])
        return policy


def load(path: Path) -> Policy:
    """Read and resolve a policy file.

    Raises
    ------
    PolicyFileError
        A ConfigError: the file cannot be read or something in it is wrong; names every fault.
    """
    return read(path).resolve()


def read(path: Path) -> Source:
    """Read a policy file into plain values.

    Raises
    ------
    PolicyFileError
        The file cannot be read, or :func:`parse` refuses it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyFileError([f"{path}: cannot be read: {error}; name a text file"]) from error
    return parse(text, path)


def parse(text: str, path: Path) -> Source:
    """Read the text of a policy file into plain values; times and dates stay text.

    Raises
    ------
    PolicyFileError
        The text is not one YAML document that holds keys.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        what = error.problem or error.context
        raise PolicyFileError([f"{path}:{line}: not YAML: {what}; correct the line"]) from error
    except YAMLError as error:
        raise PolicyFileError([f"{path}:1: not YAML: {error}; correct it"]) from error
    if not isinstance(root, MappingNode):
        raise PolicyFileError([f"{path}:1: holds no keys; begin with schema: 1"])
    source = Source(path=path)
    source.document.update(_Reader(source, yaml).mapping(root, (), ()))
    return source


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns nodes into plain values and notes the line of each; `around`: nodes being read."""

    source: Source
    yaml: YAML

    def value(self, node: Node, path: KeyPath, around: tuple[Node, ...]) -> Any:
        self.source.lines.setdefault(path, _line(node))
        if any(node is outer for outer in around):
            return self.refuse(path, "holds itself", "write it out without the alias")
        if isinstance(node, MappingNode):
            return self.mapping(node, path, (*around, node))
        if isinstance(node, SequenceNode):
            entries = enumerate(node.value)
            return [self.value(entry, (*path, n), (*around, node)) for n, entry in entries]
        tag = str(node.tag)
        if tag in {f"{_TAG}str", f"{_TAG}timestamp"}:
            return str(node.value)
        if tag in {f"{_TAG}{kind}" for kind in ("int", "float", "bool", "null")}:
            return self.yaml.constructor.construct_object(node)
        return self.refuse(path, f"has the tag {tag}", "write plain values only")

    def mapping(self, node: MappingNode, path: KeyPath, around: tuple[Node, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in node.value:
            where = (*path, str(key.value))
            if key.tag != f"{_TAG}str":
                remedy = "write text; merges are not read"
                self.refuse(where, "is not a plain key", remedy, _line(key))
            elif key.value in values:
                message = f"is already at line {self.source.line(where)}"
                self.refuse(where, message, "keep one of the two", _line(key))
            else:
                self.source.lines[where] = _line(key)
                values[key.value] = self.value(value, where, around)
        return values

    def refuse(self, path: KeyPath, message: str, remedy: str, line: int | None = None) -> None:
        fault = Fault(path, message, remedy)
        self.source.faults.append((line or self.source.line(path), fault))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
