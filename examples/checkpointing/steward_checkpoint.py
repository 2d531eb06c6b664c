"""Training that survives preemption: save at intervals and on SIGTERM, restore, go on.

Python 3.11 and its standard library. Copy it into the image with steward_storage.py, beside the
training code::

    state = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "epoch": 0}
    with Checkpointer("/checkpoints/my-job", every_steps=500) as checkpointer:
        for step in range(checkpointer.restore(state), STEPS):
            train_one_step(state)
            checkpointer.step(step + 1, state)
        checkpointer.save(STEPS, state)
"""
# ruff: noqa: INP001 - it is copied as one file, not imported as a part of a package

import importlib
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from steward_storage import (
    PICKLE,
    NoWholeCheckpointError,
    Serializer,
    find_whole,
    point_to,
    prepare,
    prune,
    set_aside,
    torch_serializer,
    write_whole,
)

logger = logging.getLogger("steward.checkpoint")

EXIT_CODE = 143
"""128 + SIGTERM: Kubernetes and the training operators read it as "ended by a signal, run again"."""

GRACE_SECONDS = 30.0
"""Kubernetes' own default of terminationGracePeriodSeconds."""

SECONDS_FOR_LISTENERS = 5.0
"""After SIGTERM, if the grace period leaves so much; its last second is left alone."""


class Preempted(SystemExit):
    """SIGTERM came and the checkpoint is written; not caught, it ends the process with 143."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


class Listener(Protocol):
    """Told of every whole checkpoint; must neither wait nor raise."""

    def written(self, step: int, path: Path) -> None:
        """Take note of a checkpoint."""

    def close(self, seconds: float | None) -> None:
        """End what still runs, within so many seconds; None: in its own time."""


class Checkpointer:
    """Saves at intervals and on SIGTERM, and restores the newest whole checkpoint.

    A context: SIGTERM is held back from entering to leaving it, in the main thread.

    Parameters
    ----------
    folder : str or Path
        Of this job alone, on storage that outlives the pod and can rename.
    every_steps, every_seconds : int or float or None
        Save when either has passed since the last save; None: not for that reason.
    keep : int
        So many of the newest are kept, 2 or more: a damaged one needs one before it.
    grace_seconds : float or None
        The pod's terminationGracePeriodSeconds; None: STEWARD_GRACE_SECONDS, else 30.
    rank : int or None
        Of this process: rank 0 writes, every rank reads; None: RANK, else 0.
    agree : callable
        Turns "I was told to stop" into "somebody was told to stop", the same on every rank, and
        waits for all of them: an all-reduce (maximum). Needed where there is more than one rank.
    serializer : Serializer or None
        None: torch's where the program has imported torch, else pickle.
    listeners : iterable of Listener
        Told of every whole checkpoint.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        every_steps: int | None = None,
        every_seconds: float | None = None,
        keep: int = 3,
        grace_seconds: float | None = None,
        rank: int | None = None,
        agree: Callable[[bool], bool] = bool,
        serializer: Serializer | None = None,
        listeners: Iterable[Listener] = (),
    ) -> None:
        if keep < 2:
            raise ValueError(f"keep is {keep}: with fewer than 2, one damaged checkpoint is all")
        env = os.environ
        self.folder = Path(folder)
        self.rank = int(env.get("RANK", "0")) if rank is None else rank
        self.last_save_seconds = 0.0
        self._every_steps = every_steps
        self._every_seconds = every_seconds
        self._keep = keep
        self._grace = (
            float(env.get("STEWARD_GRACE_SECONDS", GRACE_SECONDS))
            if grace_seconds is None
            else grace_seconds
        )
        self._agree = agree
        self._serializer = serializer
        self._listeners = tuple(listeners)
        self._told_to_stop: float | None = None
        self._previous: Any = signal.SIG_DFL
        self._process = os.getpid()
        self._saved_step: int | None = None
        self._saved_at = self._step_began = time.monotonic()

    def __enter__(self) -> Self:
        self._process = os.getpid()
        self._previous = signal.signal(signal.SIGTERM, self._on_sigterm)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for listener in self._listeners:
            listener.close(self._seconds_left())
        signal.signal(signal.SIGTERM, self._previous)

    def restore(self, state: MutableMapping[str, Any]) -> int:
        """Fill the state from the newest whole checkpoint.

        What has load_state_dict is given its part; any other value is replaced in the mapping. The
        random streams (random, numpy, torch) go on where they were, on rank 0.

        Returns
        -------
        int
            The steps that are done, which is the one to go on with when counting from 0; 0 when
            there is no checkpoint.

        Raises
        ------
        NoWholeCheckpointError
            All that are there are damaged.
        OSError
            The folder cannot be used as this needs it, for example because it cannot rename.
        ValueError
            The checkpoint is whole and holds other names, or was written by another serializer.
        """
        if self.rank == 0:
            prepare(self.folder)
        path, damaged = find_whole(self.folder)
        if path is None and damaged:
            raise NoWholeCheckpointError(
                f"all {len(damaged)} checkpoints in {self.folder} are damaged; mend the storage, "
                "or move them away to start from step 0"
            )
        if self.rank == 0 and path and damaged:
            set_aside(damaged)
            point_to(path)
        self._saved_step = self._load(path, state) if path else 0
        self._saved_at = self._step_began = time.monotonic()
        return self._saved_step

    def step(self, done: int, state: Mapping[str, Any]) -> None:
        """Take note that a step is done; save when it is time to, and when told to stop.

        Parameters
        ----------
        done : int
            Steps done since the very first start.

        Raises
        ------
        Preempted
            SIGTERM had come; the state is saved.
        """
        step_seconds = time.monotonic() - self._step_began
        stop = self._agree(self._told_to_stop is not None)
        if self.rank == 0 and (stop or self._is_due(done)):
            self.save(done, state)
            self._warn_if_too_slow(step_seconds)
        if stop:
            self._agree(True)  # noqa: FBT003 - nobody leaves before rank 0 has saved
            logger.warning("told to stop: the state of step %d is saved", done)
            raise Preempted
        self._step_began = time.monotonic()

    def save(self, done: int, state: Mapping[str, Any]) -> None:
        """Save now, unless this step is saved already; only rank 0 writes.

        Raises
        ------
        OSError
            It could not be written; what was there before is untouched.
        """
        if self._saved_step is None:
            raise RuntimeError("restore() comes first: else older checkpoints could win over newer")
        if self.rank != 0 or done == self._saved_step:
            return
        if done < self._saved_step:
            raise ValueError(f"step {done} comes after step {self._saved_step}")
        began = time.monotonic()
        parts = {name: _part_of(value) for name, value in state.items()}
        payload = {"step": done, "state": parts, "random": random_states()}
        path = write_whole(self.folder, done, payload, self._chosen_serializer())
        point_to(path)
        prune(self.folder, self._keep)
        self._saved_step, self._saved_at = done, time.monotonic()
        self.last_save_seconds = self._saved_at - began
        for listener in self._listeners:
            listener.written(done, path)

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked worker ends as if this were not here
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        elif self._told_to_stop is None:
            self._told_to_stop = time.monotonic()

    def _warn_if_too_slow(self, step_seconds: float) -> None:
        if step_seconds + self.last_save_seconds > self._grace:
            logger.warning(
                "a step took %.1f s and the last save %.1f s, together more than the grace period "
                "of %.1f s: a preemption can cost what came after the save before; raise "
                "terminationGracePeriodSeconds, and STEWARD_GRACE_SECONDS with it",
                step_seconds,
                self.last_save_seconds,
                self._grace,
            )

    def _seconds_left(self) -> float | None:
        if self._told_to_stop is None:
            return None
        left = self._grace - (time.monotonic() - self._told_to_stop) - 1
        return max(0.0, min(SECONDS_FOR_LISTENERS, left))

    def _is_due(self, done: int) -> bool:
        steps = self._every_steps is not None and (
            done - (self._saved_step or 0) >= self._every_steps
        )
        seconds = self._every_seconds is not None and (
            time.monotonic() - self._saved_at >= self._every_seconds
        )
        return steps or seconds

    def _chosen_serializer(self) -> Serializer:
        if self._serializer is None:
            self._serializer = torch_serializer() if "torch" in sys.modules else PICKLE
        return self._serializer

    def _load(self, path: Path, state: MutableMapping[str, Any]) -> int:
        payload = self._chosen_serializer().read(path)
        if payload["state"].keys() != state.keys():
            raise ValueError(
                f"{path} holds {sorted(payload['state'])}, the program asks for {sorted(state)}"
            )
        for name, part in payload["state"].items():
            if hasattr(state[name], "load_state_dict"):
                state[name].load_state_dict(part)
            else:
                state[name] = part
        if self.rank == 0:
            restore_random_states(payload["random"])
        return int(payload["step"])


def _part_of(value: Any) -> Any:
    return value.state_dict() if hasattr(value, "state_dict") else value


def random_states() -> dict[str, Any]:
    """Take down where the random streams are: Python's, and those of libraries that are in use."""
    states: dict[str, Any] = {"random": random.getstate()}
    if numpy := sys.modules.get("numpy"):
        states["numpy"] = numpy.random.get_state()
    if torch := sys.modules.get("torch"):
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Let the random streams go on from where they were."""
    random.setstate(states["random"])
    if "numpy" in states:
        importlib.import_module("numpy").random.set_state(states["numpy"])
    if "torch" in states:
        importlib.import_module("torch").set_rng_state(states["torch"])
    if "cuda" in states:
        importlib.import_module("torch").cuda.set_rng_state(states["cuda"])
