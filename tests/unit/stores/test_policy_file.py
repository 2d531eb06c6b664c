from pathlib import Path

import pytest

from steward import codec
from steward.cluster.policy import Policy
from steward.errors import ConfigError
from steward.stores.policy_file import PolicyFile


def written(folder: Path, data: bytes) -> Path:
    path = folder / "policy.json"
    path.write_bytes(data)
    return path


def test_a_compiled_policy_is_read_once(tmp_path: Path) -> None:
    # A layer's file never changes: every later load of the same environment costs nothing.
    path = written(tmp_path, codec.dump(Policy(schema=1, clusters=())))
    store = PolicyFile(str(path))

    first = store.load()
    path.unlink()

    assert first == Policy(schema=1, clusters=())
    assert store.load() is first


def test_a_missing_policy_is_a_configuration_error_with_path_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"

    with pytest.raises(ConfigError) as missing:
        PolicyFile(str(path)).load()

    assert str(missing.value) == (
        f"policy {path}: No such file or directory; compile it with `make policy` and build again"
    )


def test_a_folder_in_the_place_of_the_policy_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory; compile it with `make policy`"):
        PolicyFile(str(tmp_path)).load()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "Input data was truncated"),
        (b'{"schema":2,"clusters":[]}', "has schema 2, this version reads schema 1"),
        (b'{"schema":1}', "missing required field `clusters`"),
        (b'{"clusters":[]}', "missing required field `schema`"),
    ],
)
def test_an_invalid_policy_is_a_configuration_error_with_path_fault_and_remedy(
    tmp_path: Path, data: bytes, fault: str
) -> None:
    path = written(tmp_path, data)

    with pytest.raises(ConfigError) as invalid:
        PolicyFile(str(path)).load()

    text = str(invalid.value)
    assert str(path) in text
    assert fault in text
    assert "make policy" in text
    assert "delete it" not in text  # the remedy of stored state; the policy is built, not deleted


def test_a_policy_that_appears_later_is_found(tmp_path: Path) -> None:
    # A failure is not remembered: the rig compiles the policy while a function is warm.
    path = tmp_path / "policy.json"
    store = PolicyFile(str(path))
    with pytest.raises(ConfigError):
        store.load()

    written(tmp_path, codec.dump(Policy(schema=1, clusters=())))

    assert store.load() == Policy(schema=1, clusters=())
