"""The compiled policy, as the build left it in its layer."""

from functools import cached_property
from pathlib import Path

from steward.cluster.policy import Policy
from steward.errors import ConfigError, PermanentError
from steward.stores.stored import decode

SCHEMA = 1
"""Version of the compiled policy."""

_REMEDY = "compile it with `make policy` and build again"


class PolicyFile:
    """The policy in a file: a layer's file never changes, so it is read once."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    @cached_property
    def _policy(self) -> Policy:
        where = f"policy {self._path}"
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{where}: {error.strerror}; {_REMEDY}") from error
        return read_policy(data, where)

    def load(self) -> Policy:
        """Load the compiled policy.

        Raises
        ------
        ConfigError
            The file is missing, unreadable, of another version, or no policy.
        """
        return self._policy


def read_policy(data: bytes, where: str) -> Policy:
    """Read a compiled policy.

    Raises
    ------
    ConfigError
        It is no policy, or one of another version; names the place, the fault and the remedy.
    """
    try:
        return decode(Policy, data, SCHEMA, where, remedy="it is not of this build")
    except PermanentError as error:
        raise ConfigError(f"{error}; {_REMEDY}") from error
