import logging
import sys
from collections.abc import Iterator

import pytest

from tests.checkpointing.kit import EXAMPLE, Starter

sys.path.insert(0, str(EXAMPLE))  # as in an image: the files lie beside the training code


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """What a developer's shell sets says nothing here."""
    for name in (
        "RANK",
        "WORLD_SIZE",
        "STEWARD_BUS",
        "STEWARD_CLUSTER",
        "STEWARD_GRACE_SECONDS",
        "POD_NAMESPACE",
        "JOB_NAME",
        "CHECKPOINT_URI",
        "CHECKPOINT_MIRROR",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _heard(caplog):
    """Warnings are heard, whatever another test in this process has set the root logger to."""
    caplog.set_level(logging.WARNING)


@pytest.fixture
def start(tmp_path_factory) -> Iterator[Starter]:
    """Starts trainings; those that still run when the test ends are ended."""
    starter = Starter(tmp_path_factory)
    yield starter
    starter.end_all()
