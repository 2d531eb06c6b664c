"""Real processes, real signals: what a preempted job loses, and how it goes on."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.checkpointing.kit import (
    EXAMPLE,
    PLAIN,
    SLOW,
    bytes_of_parts,
    checkpoints,
    is_whole,
    newest_step,
    until,
)

STEPS = 300
ONLY_WHEN_TOLD = ("--every-steps", 10**6, "--every-seconds", 10**6)


@pytest.fixture
def uninterrupted(start, tmp_path):
    """The last line of a run that nobody disturbed."""
    training = start(PLAIN, tmp_path / "undisturbed", "--steps", STEPS, "--step-seconds", 0)
    assert training.ended() == 0, training.log()
    assert training.steps() == list(range(1, STEPS + 1))
    return training.lines()[-1]


def test_a_job_preempted_three_times_ends_with_the_same_bits_as_one_never_preempted(
    start, tmp_path, uninterrupted
):
    """Floats print so that they read back exactly: equal lines are equal states.

    Model, velocity, rate, average loss and the random stream must all come back: each takes part
    in the last line. No interval is due, so that every checkpoint is one that SIGTERM asked for.
    """
    folder, done = tmp_path / "job", 0
    for stop_at in (40, 110, 200):
        training = start(
            PLAIN, folder, "--steps", STEPS, "--step-seconds", 0.005, *ONLY_WHEN_TOLD
        ).reach(stop_at)
        training.send()
        told = time.monotonic()
        assert training.ended() == 143, training.log()
        assert time.monotonic() - told < 30  # Kubernetes' default grace period
        assert training.steps()[0] == done + 1
        done = training.steps()[-1]
        assert stop_at <= done < STEPS
        assert newest_step(folder) == done  # of the very step that it was at
        assert all(map(is_whole, checkpoints(folder)))
        assert (folder / "latest").read_text() == f"step-{done:012d}\n"
    training = start(PLAIN, folder, "--steps", STEPS, "--step-seconds", 0)
    assert training.ended() == 0
    assert training.steps() == list(range(done + 1, STEPS + 1))
    assert training.lines()[-1] == uninterrupted


def test_a_finished_job_that_is_started_again_trains_no_further(start, tmp_path, uninterrupted):
    training = start(PLAIN, tmp_path / "undisturbed", "--steps", STEPS)
    assert training.ended() == 0
    assert training.steps() == []
    assert training.lines() == [uninterrupted]


def test_killed_in_the_middle_of_a_write_the_next_start_finds_a_whole_checkpoint(
    start, tmp_path, uninterrupted
):
    """SIGKILL at random moments; a checkpoint is being written nearly all the time, for 0.3 s.

    Every other kill comes at most 0.15 s after the first bytes of one: those writes are torn for
    certain. Two of three let one or two checkpoints be finished before.
    """
    folder = tmp_path / "job"
    moments = random.Random()
    before, torn = 0, 0
    for kill in range(8):
        training = start(
            SLOW, folder, "--steps", STEPS, "--every-steps", 1, "--step-seconds", 0.01
        ).reach(before + 1 + kill % 3)
        if kill % 2:
            until(lambda: not bytes_of_parts(folder), "a write to end")
            until(lambda: bytes_of_parts(folder), "a write to begin")
        time.sleep(moments.uniform(0, 0.15 if kill % 2 else 0.5))
        training.send(signal.SIGKILL)
        assert training.ended() == -signal.SIGKILL, training.log()
        assert training.steps()[0] == before + 1  # went on from the newest whole one
        torn += bytes_of_parts(folder) > 0
        assert all(map(is_whole, checkpoints(folder)))
        assert newest_step(folder) >= before
        before = newest_step(folder)
    assert torn >= 4
    assert before >= 7  # 0 + 1 + 2 + 0 + 1 + 2 + 0 + 1
    training = start(PLAIN, folder, "--steps", STEPS, "--step-seconds", 0)
    assert training.ended() == 0, training.log()
    assert training.lines()[-1] == uninterrupted
    assert list(folder.glob(".part-*")) == []  # what the killed ones left is gone


def test_a_second_sigterm_does_not_cut_a_save_short(start, tmp_path):
    folder = tmp_path / "job"
    training = start(SLOW, folder, *ONLY_WHEN_TOLD, "--step-seconds", 0.01).reach(5)
    training.send()
    until(lambda: bytes_of_parts(folder), "the save to begin")
    assert checkpoints(folder) == []
    for _ in range(3):
        training.send()
        time.sleep(0.01)
    assert training.ended() == 143, training.log()
    assert [is_whole(path) for path in checkpoints(folder)] == [True]
    assert newest_step(folder) == training.steps()[-1]


def test_a_forked_worker_can_still_be_terminated(tmp_path):
    """Data loaders end their workers with SIGTERM; one that only took note would never end."""
    program = f"""
import multiprocessing, sys, time
sys.path.insert(0, {str(EXAMPLE)!r})
from steward_checkpoint import Checkpointer
with Checkpointer({str(tmp_path)!r}):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    worker = context.Process(target=lambda: (ready.set(), time.sleep(60)))
    worker.start()
    ready.wait(20)
    worker.terminate()
    worker.join(20)
    print(worker.exitcode)
    worker.kill()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "-15\n"
