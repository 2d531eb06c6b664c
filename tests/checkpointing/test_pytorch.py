"""The PyTorch example, where PyTorch is installed; it is no part of this project's environment."""

import signal

import pytest

from tests.checkpointing.kit import EXAMPLE, checkpoints, until

torch = pytest.importorskip("torch", reason="PyTorch is not installed: its example is not run")

PYTORCH = EXAMPLE / "train_pytorch.py"


def weights(folder):
    saved = torch.load(checkpoints(folder)[-1] / "state.pt", weights_only=False)
    return saved["step"], saved["state"]["model"]


def test_a_preempted_pytorch_job_ends_with_the_same_weights_as_one_never_preempted(start, tmp_path):
    steps = ("--steps", 2000, "--every-steps", 50)
    assert start(PYTORCH, tmp_path / "undisturbed", *steps).ended() == 0
    folder = tmp_path / "job"
    training = start(PYTORCH, folder, *steps)
    until(lambda: checkpoints(folder), "the first checkpoint")
    training.send(signal.SIGTERM)
    assert training.ended() == 143, training.log()
    assert weights(folder)[0] < 2000
    assert start(PYTORCH, folder, *steps).ended() == 0
    step, ours = weights(folder)
    _, theirs = weights(tmp_path / "undisturbed")
    assert step == 2000
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
