"""Checkpoints that were told of, in the bucket: `checkpoints/<cluster>/<namespace>/<job>.json`."""

import re
from collections.abc import Iterable

import msgspec

from steward.cluster.checkpoints import Written, WrittenBy
from steward.errors import ConflictError, PermanentError
from steward.stores.bucket import Objects
from steward.stores.stored import decode, encode

SCHEMA = 1
"""Version of the stored form."""

KEPT = 128
"""Checkpoints of a job that are kept of each kind. A preemption is looked up at the next tick, and by
then the next run may have written: ten hours of one every five minutes."""

ATTEMPTS = 5
"""Writes that are tried before the conflict is the caller's."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class Checkpoints:
    """One object a job, written only over what was read."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def told(self, cluster: str, namespace: str, job: str) -> tuple[Written, ...]:
        """Return what was told of a job, oldest first."""
        return self._load(_key(cluster, namespace, job))[0]

    def record(self, cluster: str, namespace: str, job: str, *written: Written) -> None:
        """Add some in one write; what is known, or older than everything kept, changes nothing."""
        key = _key(cluster, namespace, job)
        for attempt in range(1, ATTEMPTS + 1):
            known, tag = self._load(key)
            told = _newest({*known, *written})
            if told == known:
                return
            data = encode(_Stored, _Stored(told=told), self._objects.url(key))
            try:
                self._objects.replace(key, data, tag)
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise
            else:
                return

    def _load(self, key: str) -> tuple[tuple[Written, ...], str | None]:
        found = self._objects.get(key)
        if found is None:
            return (), None
        return decode(_Stored, found.data, SCHEMA, self._objects.url(key)).told, found.tag


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = SCHEMA
    told: tuple[Written, ...]


def _newest(written: Iterable[Written]) -> tuple[Written, ...]:
    """Keep the newest few of each kind, oldest first."""
    ordered = sorted(written, key=_order)
    kept = (one for kind in WrittenBy for one in [o for o in ordered if o.by is kind][-KEPT:])
    return tuple(sorted(kept, key=_order))


def _order(one: Written) -> tuple[object, ...]:
    return one.at, one.by, one.uri, -1 if one.step is None else one.step


def _key(cluster: str, namespace: str, job: str) -> str:
    for what, name in (("namespace", namespace), ("job", job)):
        if not _NAME.fullmatch(name):
            raise PermanentError(
                f"checkpoints of {cluster}: {name!r:.80} is not the name of a {what}; "
                "Kubernetes' names are lower-case letters, digits, `-` and `.`"
            )
    return f"checkpoints/{cluster}/{namespace}/{job}.json"
