"""When it saves, what it restores, who writes, and what it says about the grace period."""

import logging
import os
import random
import signal
import time

import pytest
from steward_checkpoint import EXIT_CODE, Checkpointer, Preempted
from steward_storage import PICKLE, NoWholeCheckpointError, Serializer

from tests.checkpointing.kit import checkpoints, newest_step


class Weights:
    def __init__(self, *values):
        self.values = list(values)

    def state_dict(self):
        return {"values": self.values}

    def load_state_dict(self, saved):
        self.values = saved["values"]


def steps_of(folder):
    return [int(path.name.removeprefix("step-")) for path in checkpoints(folder)]


def a_job(folder, **options):
    """A checkpointer past its first restore."""
    checkpointer = Checkpointer(folder, **options)
    checkpointer.restore({"n": 0})
    return checkpointer


def preempt():
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_fresh_start_is_step_0_and_leaves_the_state_alone(tmp_path):
    state = {"model": Weights(1.0), "n": 7}
    assert Checkpointer(tmp_path / "new" / "job").restore(state) == 0
    assert state["model"].values == [1.0]
    assert state["n"] == 7


def test_objects_are_given_their_part_and_plain_values_are_replaced(tmp_path):
    first = Checkpointer(tmp_path)
    first.restore({"model": Weights(), "n": 0})
    first.save(5, {"model": Weights(1.5, -2.5), "n": (9, "nine")})
    model = Weights()
    state = {"n": None, "model": model}
    assert Checkpointer(tmp_path).restore(state) == 5
    assert state["model"] is model  # the optimizer may hold on to it
    assert model.values == [1.5, -2.5]
    assert state["n"] == (9, "nine")


def test_the_random_stream_goes_on_where_it_was(tmp_path):
    random.seed(11)
    random.gauss(0, 1)  # leaves a second value behind, which is state too
    a_job(tmp_path).save(1, {"n": 0})
    expected = [random.gauss(0, 1) for _ in range(3)]
    random.seed(99)
    Checkpointer(tmp_path).restore({"n": 0})
    assert [random.gauss(0, 1) for _ in range(3)] == expected


def test_saves_when_enough_steps_have_passed_since_the_last_save(tmp_path):
    """Every 10 from wherever the last one was: after one at 13, the next is 23."""
    checkpointer = a_job(tmp_path, every_steps=10, keep=9)
    for done in range(1, 14):
        checkpointer.step(done, {"n": done})
    assert steps_of(tmp_path) == [10]
    checkpointer.save(13, {"n": 13})
    for done in range(14, 30):
        checkpointer.step(done, {"n": done})
    assert steps_of(tmp_path) == [10, 13, 23]


def test_saves_when_enough_seconds_have_passed_since_the_last_save(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkpointer = a_job(tmp_path, every_seconds=60, keep=9)
    for done in range(1, 10):
        now[0] += 25.0
        checkpointer.step(done, {"n": done})
    # 25, 50, 75 > 60: step 3; counted anew from there: 6 and 9.
    assert steps_of(tmp_path) == [3, 6, 9]


def test_without_an_interval_only_sigterm_saves(tmp_path):
    with a_job(tmp_path) as checkpointer:
        for done in range(1, 100):
            checkpointer.step(done, {"n": done})
        assert steps_of(tmp_path) == []
        preempt()
        with pytest.raises(Preempted) as ended:
            checkpointer.step(100, {"n": 100})
    assert steps_of(tmp_path) == [100]
    assert ended.value.code == EXIT_CODE == 128 + signal.SIGTERM


def test_sigterm_is_answered_as_before_once_the_context_is_left(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with a_job(tmp_path):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_newest_are_kept(tmp_path):
    checkpointer = a_job(tmp_path, keep=3)
    for done in range(1, 8):
        checkpointer.save(done, {"n": done})
    assert steps_of(tmp_path) == [5, 6, 7]
    assert (tmp_path / "latest").read_text() == "step-000000000007\n"
    with pytest.raises(ValueError, match="keep is 1"):
        Checkpointer(tmp_path, keep=1)


def test_ranks_other_than_0_read_and_never_write(tmp_path, monkeypatch, caplog):
    a_job(tmp_path).save(4, {"n": 44})
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("RANK", "3")
    state = {"n": 0}
    random.seed(5)
    stream = random.getstate()
    with Checkpointer(tmp_path, every_steps=1, grace_seconds=0) as checkpointer:
        assert checkpointer.restore(state) == 4
        assert state == {"n": 44}
        assert random.getstate() == stream  # rank 0's numbers on every rank would be one stream
        checkpointer.step(5, state)
        preempt()
        with pytest.raises(Preempted):
            checkpointer.step(6, state)
    assert sorted(tmp_path.rglob("*")) == before
    assert "grace period" not in caplog.text  # nor does it speak of saves


def test_when_any_rank_is_told_to_stop_rank_0_saves_before_anybody_leaves(tmp_path):
    """The first agreement decides; the second is passed only when rank 0 has saved."""
    asked = []

    def agree(mine):
        asked.append((mine, newest_step(tmp_path)))
        return len(asked) >= 3  # another rank was told during the third step

    checkpointer = a_job(tmp_path, agree=agree)
    checkpointer.step(1, {"n": 1})
    checkpointer.step(2, {"n": 2})
    with pytest.raises(Preempted):
        checkpointer.step(3, {"n": 3})
    assert asked == [(False, 0), (False, 0), (False, 0), (True, 3)]


def test_a_save_and_a_step_that_do_not_fit_the_grace_period_are_told_of(tmp_path, caplog):
    """0.2 s of saving against 0.1 s of grace; against 30 s there is nothing to say."""

    def dump(payload, file):
        time.sleep(0.2)
        PICKLE.dump(payload, file)

    slow = Serializer(name="pickle", dump=dump, load=PICKLE.load)
    with caplog.at_level(logging.WARNING):
        patient = a_job(tmp_path / "a", every_steps=1, serializer=slow)
        patient.step(1, {"n": 1})
        assert caplog.messages == []
        assert 0.2 <= patient.last_save_seconds < 10
        a_job(tmp_path / "b", every_steps=1, serializer=slow, grace_seconds=0.1).step(1, {"n": 1})
    assert len(caplog.messages) == 1
    assert "more than the grace period of 0.1 s" in caplog.messages[0]


def test_the_grace_period_is_what_the_pod_says(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("STEWARD_GRACE_SECONDS", "0")
    a_job(tmp_path, every_steps=1).step(1, {"n": 1})
    assert "grace period of 0.0 s" in caplog.text


def test_other_names_are_refused_and_nothing_is_changed(tmp_path):
    a_job(tmp_path).save(1, {"n": 1})
    state = {"n": 0, "m": 0}
    with pytest.raises(ValueError, match=r"holds \['n'\], the program asks for \['m', 'n'\]"):
        Checkpointer(tmp_path).restore(state)
    assert state == {"n": 0, "m": 0}


def test_another_serializers_checkpoint_is_refused(tmp_path):
    a_job(tmp_path).save(1, {"n": 1})
    other = Serializer(name="json", dump=PICKLE.dump, load=PICKLE.load)
    with pytest.raises(ValueError, match="not written by the serializer 'json'"):
        Checkpointer(tmp_path, serializer=other).restore({"n": 0})


def test_restore_comes_before_save_and_steps_only_grow(tmp_path):
    with pytest.raises(RuntimeError, match="restore"):
        Checkpointer(tmp_path).save(1, {"n": 1})
    checkpointer = a_job(tmp_path)
    checkpointer.save(3, {"n": 3})
    with pytest.raises(ValueError, match="step 2 comes after step 3"):
        checkpointer.save(2, {"n": 2})


def test_with_nothing_but_damaged_checkpoints_nobody_starts_over_in_silence(tmp_path):
    checkpointer = a_job(tmp_path)
    for done in (1, 2):
        checkpointer.save(done, {"n": done})
    for path in checkpoints(tmp_path):
        (path / "manifest.json").unlink()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NoWholeCheckpointError, match="all 2 checkpoints"):
        Checkpointer(tmp_path).restore({"n": 0})
    assert sorted(tmp_path.rglob("*")) == before  # still there for a person to look at


def test_a_damaged_checkpoint_is_set_aside_and_takes_nobodys_place(tmp_path):
    """After falling back from 3 to 2, keeping two means 2 and 3 anew, not the damaged 3."""
    checkpointer = a_job(tmp_path, keep=2)
    for done in (1, 2, 3):
        checkpointer.save(done, {"n": done})
    (tmp_path / "step-000000000003" / "state.pickle").write_bytes(b"")
    state = {"n": 0}
    again = Checkpointer(tmp_path, keep=2)
    assert again.restore(state) == 2
    assert state == {"n": 2}
    assert steps_of(tmp_path) == [2]
    assert (tmp_path / "latest").read_text() == "step-000000000002\n"
    assert len(list(tmp_path.glob("damaged-step-000000000003-*"))) == 1
    again.save(3, {"n": 33})
    assert Checkpointer(tmp_path).restore(state) == 3
    assert state == {"n": 33}


class Patience:
    """A listener that notes how long it may take to end."""

    def __init__(self):
        self.told, self.allowed = [], []

    def written(self, step, path):
        self.told.append((step, path.name))

    def close(self, seconds):
        self.allowed.append(seconds)


@pytest.mark.parametrize(
    ("grace", "least", "most"),
    [
        (30, 5, 5),  # never more than 5 s
        (4, 2, 3),  # a second is left alone, and some time has passed since the signal
        (0.5, 0, 0),
    ],
)
def test_after_sigterm_listeners_get_what_the_grace_period_leaves(tmp_path, grace, least, most):
    listener = Patience()
    with a_job(tmp_path, grace_seconds=grace, listeners=[listener]) as checkpointer:
        preempt()
        with pytest.raises(Preempted):
            checkpointer.step(1, {"n": 1})
    assert listener.told == [(1, "step-000000000001")]
    (allowed,) = listener.allowed
    assert least <= allowed <= most


def test_at_the_end_of_training_listeners_end_in_their_own_time(tmp_path):
    listener = Patience()
    with a_job(tmp_path, listeners=[listener]) as checkpointer:
        checkpointer.save(1, {"n": 1})
    assert listener.allowed == [None]
