#!/usr/bin/env python3
"""A training loop that can be preempted, in plain Python: a line fitted to noisy points.

It prints a line a step and, at the end, the final state as JSON. Interrupted and started again as
often as you like, it ends with the same state, to the last bit.
"""

import argparse
import json
import logging
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from steward_announce import Announcer, Heartbeat, S3Mirror
from steward_checkpoint import Checkpointer
from steward_storage import Serializer


class Line:
    """The model: y = weight * x + bias."""

    def __init__(self) -> None:
        self.weight = random.gauss(0, 1)
        self.bias = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Give what a checkpoint must hold."""
        return {"weight": self.weight, "bias": self.bias}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take what a checkpoint held."""
        self.weight, self.bias = saved["weight"], saved["bias"]


class Momentum:
    """The optimizer: gradient descent with momentum."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.rate = 0.05
        self.velocity = (0.0, 0.0)

    def descend(self, by_weight: float, by_bias: float) -> None:
        """Take one step against the gradient."""
        self.velocity = (0.9 * self.velocity[0] + by_weight, 0.9 * self.velocity[1] + by_bias)
        self.line.weight -= self.rate * self.velocity[0]
        self.line.bias -= self.rate * self.velocity[1]

    def state_dict(self) -> dict[str, Any]:
        """Give what a checkpoint must hold."""
        return {"rate": self.rate, "velocity": self.velocity}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take what a checkpoint held."""
        self.rate, self.velocity = saved["rate"], saved["velocity"]


class Decay:
    """The scheduler: the rate shrinks every 50 steps."""

    def __init__(self, optimizer: Momentum) -> None:
        self.optimizer = optimizer
        self.steps = 0

    def step(self) -> None:
        """Count a step."""
        self.steps += 1
        if self.steps % 50 == 0:
            self.optimizer.rate *= 0.9

    def state_dict(self) -> dict[str, Any]:
        """Give what a checkpoint must hold."""
        return {"steps": self.steps}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take what a checkpoint held."""
        self.steps = saved["steps"]


def train_one_step(state: dict[str, Any]) -> None:
    """Draw a point, descend, and keep an average of the loss."""
    line = state["model"]
    x = random.uniform(-1, 1)  # noqa: S311 - training data
    error = line.weight * x + line.bias - (3 * x + 1 + random.gauss(0, 0.1))
    state["optimizer"].descend(2 * error * x, 2 * error)
    state["scheduler"].step()
    state["loss"] = 0.99 * state["loss"] + 0.01 * error**2


def train(options: argparse.Namespace, serializer: Serializer | None = None) -> None:
    """Train to the end, or until told to stop."""
    random.seed(options.seed)
    line = Line()
    optimizer = Momentum(line)
    state: dict[str, Any] = {
        "model": line,
        "optimizer": optimizer,
        "scheduler": Decay(optimizer),
        "loss": 0.0,  # a plain value
    }
    mirror = os.environ.get("CHECKPOINT_MIRROR")
    announcer = Announcer(
        heartbeat=Heartbeat.from_env(),
        mirror=S3Mirror(mirror) if mirror else None,
        uri=os.environ.get("CHECKPOINT_URI"),
    )
    with Checkpointer(
        options.folder,
        every_steps=options.every_steps,
        every_seconds=options.every_seconds,
        serializer=serializer,
        listeners=[announcer],
    ) as checkpointer:
        for step in range(checkpointer.restore(state), options.steps):
            train_one_step(state)
            time.sleep(options.step_seconds)
            say(f"step {step + 1}")
            checkpointer.step(step + 1, state)
        checkpointer.save(options.steps, state)
    values = {**line.state_dict(), **optimizer.state_dict(), "loss": state["loss"]}
    say(json.dumps(values, sort_keys=True))


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="a training loop that can be preempted")
    parser.add_argument("folder", type=Path, help="where this job's checkpoints lie")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--every-steps", type=int, default=50)
    parser.add_argument("--every-seconds", type=float, default=60.0)
    parser.add_argument("--step-seconds", type=float, default=0.01, help="a step's length")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    train(read_options())
