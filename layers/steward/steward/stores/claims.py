"""Who takes a cluster's snapshot: `claims/<cluster>.json`, written only over what was read."""

from steward.cluster.claims import SCHEMA, Claim
from steward.errors import PermanentError
from steward.stores.bucket import Objects
from steward.stores.stored import decode, encode


class Claims:
    """The claim of each cluster; one that is gone, or that nobody can read, is as good as none."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def load(self, cluster: str) -> tuple[Claim | None, str | None]:
        """Return the claim and its tag; None and None where there is none.

        What another version wrote is written over: it spares a read, and must not prevent one.
        """
        key = f"claims/{cluster}.json"
        found = self._objects.get(key)
        if found is None:
            return None, None
        try:
            return decode(Claim, found.data, SCHEMA, self._objects.url(key)), found.tag
        except PermanentError:
            return None, found.tag

    def save(self, cluster: str, claim: Claim, tag: str | None) -> str:
        """Write on condition that the tag still holds."""
        key = f"claims/{cluster}.json"
        return self._objects.replace(key, encode(Claim, claim, self._objects.url(key)), tag)
