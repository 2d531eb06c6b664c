"""Real training processes, and a judgement of checkpoints that shares no code with the example."""

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "checkpointing"
PLAIN = EXAMPLE / "train_plain.py"
SLOW = Path(__file__).with_name("slow_training.py")
SECONDS = 30


def until(condition, what):
    """Wait for something to become true."""
    end = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {SECONDS} s for {what}"
        time.sleep(0.002)
    return found


class Training:
    """One process; what it says lies in files, so that it never waits for a reader."""

    def __init__(self, command, folder, env):
        self._said, self._logged = folder / "stdout", folder / "stderr"
        with self._said.open("wb") as said, self._logged.open("wb") as logged:
            self.process = subprocess.Popen(command, stdout=said, stderr=logged, env=env)

    def lines(self):
        """Lines said so far, without one that is not complete."""
        return self._said.read_text().rpartition("\n")[0].splitlines()

    def steps(self):
        return [int(line.split()[1]) for line in self.lines() if line.startswith("step ")]

    def log(self):
        return self._logged.read_text()

    def reach(self, step):
        def there():
            assert self.process.poll() is None, self.log()
            return self.steps()[-1:] >= [step]

        until(there, f"step {step}")
        return self

    def send(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def ended(self):
        """Its exit code, once it has ended by itself."""
        return self.process.wait(SECONDS)


class Starter:
    def __init__(self, tmp_path_factory):
        self._folders = tmp_path_factory
        self._trainings = []

    def __call__(self, script, *arguments, **env):
        command = [sys.executable, str(script), *map(str, arguments)]
        training = Training(
            command,
            self._folders.mktemp("training"),
            {**os.environ, "PYTHONPATH": str(EXAMPLE), **env},
        )
        self._trainings.append(training)
        return training

    def end_all(self):
        for training in self._trainings:
            if training.process.poll() is None:
                training.process.kill()
                training.process.wait()


def checkpoints(folder):
    """Everything that has a whole checkpoint's name, oldest first."""
    return sorted(folder.glob("step-*"))


def newest_step(folder):
    return max((int(path.name.removeprefix("step-")) for path in checkpoints(folder)), default=0)


def is_whole(path):
    """Judge a checkpoint from its bytes: sizes, sum, and that it can be unpickled to its step."""
    manifest = json.loads((path / "manifest.json").read_text())
    data = (path / "state.pickle").read_bytes()
    return (
        len(data) == manifest["bytes"]
        and hashlib.sha256(data).hexdigest() == manifest["sha256"]
        and pickle.loads(data)["step"] == int(path.name.removeprefix("step-"))  # noqa: S301
    )


def bytes_of_parts(folder):
    """How much data lies in checkpoints that are being written, or were when a process ended."""
    sizes = []
    for path in folder.glob(".part-*/state.pickle"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return sum(sizes)
