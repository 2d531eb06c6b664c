"""A checkpoint has its name when all of it is on disk; what is damaged is never taken for whole."""

import errno
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steward_storage import PICKLE, Serializer, fault_of, find_whole, point_to, prepare, write_whole

from tests.checkpointing.kit import checkpoints, is_whole

STATE, MANIFEST = "state.pickle", "manifest.json"


def written(folder, *steps):
    for step in steps:
        point_to(write_whole(folder, step, {"step": step, "state": [step] * 50}, PICKLE))
    return checkpoints(folder)


def truncate(path):
    data = path / STATE
    data.write_bytes(data.read_bytes()[:-1])


def lengthen(path):
    data = path / STATE
    data.write_bytes(data.read_bytes() + b"\0")


def flip(path):
    """One bit in the middle; the length stays."""
    data = bytearray((path / STATE).read_bytes())
    data[len(data) // 2] ^= 1
    (path / STATE).write_bytes(data)


def take_anothers_manifest(path):
    other = path.with_name("step-000000000001")
    (path / MANIFEST).write_bytes((other / MANIFEST).read_bytes())


def take_anothers_place(path):
    """A whole checkpoint under a name of another step."""
    for name in (STATE, MANIFEST):
        (path / name).write_bytes((path.with_name("step-000000000001") / name).read_bytes())


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        lengthen,
        flip,
        take_anothers_manifest,
        take_anothers_place,
        lambda path: (path / STATE).unlink(),
        lambda path: (path / STATE).write_bytes(b""),
        lambda path: (path / MANIFEST).unlink(),
        lambda path: (path / MANIFEST).write_bytes(b""),
        lambda path: (path / MANIFEST).write_bytes(b"\xff\xfe{"),
        lambda path: (path / MANIFEST).write_text("[]"),
        lambda path: (path / MANIFEST).write_text("{}"),
        lambda path: (path / MANIFEST).write_text('{"step": "3", "serializer": "pickle"}'),
    ],
)
def test_a_damaged_newest_falls_back_to_the_one_before(tmp_path, damage):
    _, second, third = written(tmp_path, 1, 2, 3)
    assert find_whole(tmp_path) == (third, [])
    damage(third)
    assert find_whole(tmp_path) == (second, [third])


def test_each_damaged_one_is_passed_over(tmp_path):
    first, second, third = written(tmp_path, 1, 2, 3)
    flip(third)
    truncate(second)
    assert find_whole(tmp_path) == (first, [third, second])
    flip(first)
    assert find_whole(tmp_path) == (None, [third, second, first])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_changed_byte_is_taken_for_what_was_written(tmp_path_factory, data):
    """Any byte of either file: found out, or, in the manifest, without a meaning (a space)."""
    (path,) = written(tmp_path_factory.mktemp("job"), 7)
    file = path / data.draw(st.sampled_from([STATE, MANIFEST]))
    content = bytearray(file.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    if fault_of(path) is None:
        assert file.name == MANIFEST
        assert is_whole(path)


def test_storage_that_cannot_be_read_is_no_damage(tmp_path, monkeypatch):
    """EIO now says nothing about the checkpoint: to fall back would throw hours away."""
    (path,) = written(tmp_path, 1)

    def refuse(*args, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(OSError, match="Input/output"):
        fault_of(path)


def journal(monkeypatch, folder, fail_at=None):
    """Note what is put on disk and what is named, in order; the fail_at-th call fails."""
    notes = []
    sync, rename, replace = os.fsync, os.rename, os.replace

    def known(path):
        return "part" if path.name.startswith(".part-") else path.name

    def note(*words):
        notes.append(" ".join(words))
        if len(notes) - 1 == fail_at:
            raise OSError(errno.ENOSPC, "No space left on device")

    def named(descriptor):
        place = os.fstat(descriptor)
        found = [folder, *folder.rglob("*")]
        return next(path for path in found if os.path.samestat(path.stat(), place))

    def fsync(descriptor):
        path = named(descriptor)
        note("sync", "folder" if path == folder else known(path))
        sync(descriptor)

    def renaming(call):
        def rename(source, target, **kwargs):
            note("name", known(Path(target)))
            call(source, target, **kwargs)

        return rename

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", renaming(rename))
    monkeypatch.setattr(os, "replace", renaming(replace))
    return notes


ORDER = [
    f"sync {STATE}",
    f"sync {MANIFEST}",
    "sync part",  # the folder that holds both
    "name step-000000000002",
    "sync folder",
    "sync part",  # the new pointer
    "name latest",
    "sync folder",
]


def test_everything_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    written(tmp_path, 1)
    notes = journal(monkeypatch, tmp_path)
    written(tmp_path, 2)
    assert notes == ORDER


@pytest.mark.parametrize("fail_at", range(len(ORDER)))
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, fail_at):
    """Whichever call fails: the newest and what `latest` names are whole."""
    written(tmp_path, 1)
    with monkeypatch.context() as patched:
        journal(patched, tmp_path, fail_at)
        with pytest.raises(OSError, match="No space"):
            written(tmp_path, 2)
    newest = 2 if fail_at > ORDER.index("name step-000000000002") else 1
    path, damaged = find_whole(tmp_path)
    assert path is not None
    assert path.name == f"step-{newest:012d}"
    assert damaged == []
    latest = tmp_path / (tmp_path / "latest").read_text().strip()
    assert is_whole(latest)


def test_a_state_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    written(tmp_path, 1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        write_whole(tmp_path, 2, {"state": lambda: None}, PICKLE)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_serializer_writes_in_pieces_is_summed_as_one(tmp_path):
    """Bytes, memoryviews of wider items, nothing at all: length counts bytes."""

    def dump(payload, file):
        file.write(b"")
        file.write(memoryview(payload).cast("I"))
        file.flush()
        file.write(bytearray(b"end"))

    serializer = Serializer(name="raw", dump=dump, load=lambda file: file.read())
    path = write_whole(tmp_path, 1, b"12345678", serializer)
    assert fault_of(path) is None
    assert serializer.read(path) == b"12345678end"


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path):
    """Another process may still write here when a node was lost and the pod runs elsewhere."""
    write_whole(tmp_path, 1, {"step": 1, "by": "old"}, PICKLE)
    path = write_whole(tmp_path, 1, {"step": 1, "by": "new"}, PICKLE)
    assert checkpoints(tmp_path) == [path]
    assert PICKLE.read(path)["by"] == "new"
    assert is_whole(path)


def test_other_names_are_not_checkpoints(tmp_path):
    (path,) = written(tmp_path, 5)
    for name in ("step-6", "step-000000000007-old", "damaged-step-000000000008", "step-best"):
        (tmp_path / name).mkdir()
    assert find_whole(tmp_path) == (path, [])


def test_storage_that_cannot_rename_is_refused_at_the_start_and_not_at_the_first_save(
    tmp_path, monkeypatch
):
    """So does a bucket mounted as a file system answer."""

    def refuse(*args, **kwargs):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="not implemented"):
        prepare(tmp_path)


def test_preparing_removes_rests_and_nothing_else(tmp_path):
    (path,) = written(tmp_path, 5)
    (tmp_path / ".part-1").mkdir()
    (tmp_path / ".part-1" / STATE).write_bytes(b"torn")
    (tmp_path / ".part-2").write_bytes(b"torn pointer")
    prepare(tmp_path)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "latest", path]
