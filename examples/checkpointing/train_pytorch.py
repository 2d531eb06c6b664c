#!/usr/bin/env python3
"""Data-parallel training with PyTorch that can be preempted: torchrun train_pytorch.py FOLDER.

The model is small on purpose; what matters is in `train`. Not for state that is sharded over ranks
(FSDP, ZeRO, tensor parallelism): there state_dict() is a collective call, and rank 0 alone would
wait for ever. Use torch.distributed.checkpoint with the same order of things.
"""

import argparse
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from steward_announce import Announcer, Heartbeat
from steward_checkpoint import Checkpointer
from torch import nn


def join_ranks(device: torch.device) -> Callable[[bool], bool]:
    """Join the other ranks; gives the all-reduce by which they agree to stop."""
    if "WORLD_SIZE" not in os.environ:
        return bool
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    # On the CPU: the GPUs' queues need not be waited for at every step.
    group = dist.new_group(backend="gloo")

    def agree(mine: bool) -> bool:  # noqa: FBT001 - Checkpointer's form
        flag = torch.tensor([int(mine)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=group)
        return bool(flag.item())

    return agree


def batch(step: int, rank: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a batch from step and rank alone: nothing about the data needs to be saved."""
    generator = torch.Generator().manual_seed(step * 65536 + rank)
    points = torch.randn(64, 16, generator=generator)
    return points.to(device), points.sum(dim=1, keepdim=True).to(device)


def train(options: argparse.Namespace) -> None:
    """Train to the end, or until told to stop."""
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    agree = join_ranks(device)
    rank = int(os.environ.get("RANK", "0"))
    torch.manual_seed(1000 + rank)  # rank 0 goes on from its saved stream, the others from here
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    # The bare model: its names have no "module." in front, and other world sizes can load them.
    state: dict[str, Any] = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    announcer = Announcer(heartbeat=Heartbeat.from_env(), uri=os.environ.get("CHECKPOINT_URI"))
    with Checkpointer(
        options.folder,
        every_steps=options.every_steps,
        every_seconds=options.every_seconds,
        agree=agree,
        listeners=[announcer],
    ) as checkpointer:
        done = checkpointer.restore(state)
        refuse_different_steps(done)
        wrapped: nn.Module = model
        if dist.is_initialized():
            wrapped = nn.parallel.DistributedDataParallel(model)
        for step in range(done, options.steps):
            points, sums = batch(step, rank, device)
            loss = nn.functional.mse_loss(wrapped(points), sums)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            checkpointer.step(step + 1, state)
        checkpointer.save(options.steps, state)
    if dist.is_initialized():
        dist.barrier()  # the others wait for rank 0's last save
        dist.destroy_process_group()


def refuse_different_steps(done: int) -> None:
    """End the run where a rank's view of a shared file system is old: its weights would be too."""
    if not dist.is_initialized():
        return
    steps: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(steps, done)
    if len(set(steps)) > 1:
        raise RuntimeError(f"the ranks restored different steps: {steps}; start again")


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="data-parallel training that can be preempted")
    parser.add_argument("folder", type=Path, help="where this job's checkpoints lie")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--every-steps", type=int, default=None)
    parser.add_argument("--every-seconds", type=float, default=600.0)
    return parser.parse_args()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    train(read_options())
