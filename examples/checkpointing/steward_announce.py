"""Tells GPU Steward of whole checkpoints, in the background: training neither waits nor fails.

Optional, and beside steward_checkpoint.py in the image. Needs boto3 where it is configured::

    announcer = Announcer(heartbeat=Heartbeat.from_env(), uri=os.environ.get("CHECKPOINT_URI"))
    with Checkpointer(folder, every_steps=500, listeners=[announcer]) as checkpointer:
"""
# ruff: noqa: INP001 - it is copied as one file, not imported as a part of a package

import importlib
import json
import logging
import os
from functools import cached_property, partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

logger = logging.getLogger("steward.announce")

SOURCE = "gpu-steward.training"
DETAIL_TYPE = "Checkpoint Written"
MARKER = "_SUCCESS"
ENV = ("STEWARD_BUS", "STEWARD_CLUSTER", "POD_NAMESPACE", "JOB_NAME")
RETRIED = frozenset({429, 500, 502, 503, 504})


class Heartbeat:
    """Puts one event a checkpoint on the steward's bus.

    Parameters
    ----------
    bus : str
        Its name; of a bus of another account or region, its ARN.
    cluster : str
        The HyperPod cluster's name, as in the steward's policy.
    job : str
        Name of the object that was submitted (Job, PyTorchJob, ...), not of the pod.
    """

    def __init__(self, bus: str, cluster: str, namespace: str, job: str) -> None:
        self._bus = bus
        self._place = {"cluster": cluster, "namespace": namespace, "job": job}

    @classmethod
    def from_env(cls) -> "Heartbeat | None":
        """Read STEWARD_BUS, STEWARD_CLUSTER, POD_NAMESPACE, JOB_NAME; None without a bus."""
        if not os.environ.get("STEWARD_BUS"):
            return None
        if missing := [name for name in ENV if not os.environ.get(name)]:
            logger.warning("no heartbeat: STEWARD_BUS is set, and %s is not", ", ".join(missing))
            return None
        return cls(*(os.environ[name] for name in ENV))

    @cached_property
    def _client(self) -> Any:
        # A bus answers in its own region only: an ARN names it (arn:aws:events:<region>:...).
        region = self._bus.split(":")[3] if self._bus.startswith("arn:") else None
        return _client("events", connect_timeout=2, read_timeout=3, attempts=2, region=region)

    def put(self, step: int, uri: str) -> None:
        """Put the event; raises whatever stands in the way."""
        answer = self._client.put_events(
            Entries=[
                {
                    "Source": SOURCE,
                    "DetailType": DETAIL_TYPE,
                    "Detail": json.dumps({**self._place, "step": step, "uri": uri}),
                    "EventBusName": self._bus,
                }
            ]
        )
        if answer["FailedEntryCount"]:
            raise RuntimeError(f"the bus did not take the event: {answer['Entries'][0]}")


class S3Mirror:
    """Copies whole checkpoints to S3, the marker last: where it lies, all before it lies too.

    Parameters
    ----------
    uri : str
        `s3://bucket/prefix/` of this job alone, with the job's name in it.
    """

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme != "s3" or not parts.netloc:
            raise ValueError(f"{uri!r} is not s3://bucket/prefix/")
        self._bucket = parts.netloc
        self._prefix = parts.path.strip("/")

    @cached_property
    def _client(self) -> Any:
        return _client("s3", connect_timeout=5, read_timeout=60, attempts=5)

    def upload(self, path: Path) -> str:
        """Copy a checkpoint's files, then the marker; gives its URI."""
        folder = f"{self._prefix}/{path.name}".lstrip("/")
        for file in sorted(path.iterdir()):
            self._client.upload_file(str(file), self._bucket, f"{folder}/{file.name}")
        self._client.put_object(Bucket=self._bucket, Key=f"{folder}/{MARKER}", Body=b"")
        return f"s3://{self._bucket}/{folder}/"


class Announcer:
    """A Checkpointer's listener: copies, then tells; a failure is logged once and counted.

    One checkpoint at a time. Of those that come meanwhile, the newest is next and the others are
    passed over.

    Parameters
    ----------
    uri : str or None
        How the checkpoints' folder is called outside the pod (`fsx://<file system>/path/`); None:
        by its path. With a mirror, the copy is told of.
    patience_seconds : float
        How long the end of training waits for what is still under way; with a mirror, as long as
        the copy of one checkpoint takes. After SIGTERM it is what the grace period leaves.
    """

    def __init__(
        self,
        *,
        heartbeat: Heartbeat | None = None,
        mirror: S3Mirror | None = None,
        uri: str | None = None,
        patience_seconds: float = 10.0,
    ) -> None:
        self.failures = 0
        self._heartbeat = heartbeat
        self._mirror = mirror
        self._uri = uri
        self._patience = patience_seconds
        self._lock = Lock()
        self._next: tuple[int, Path] | None = None
        self._thread: Thread | None = None

    def written(self, step: int, path: Path) -> None:
        """Take note of a checkpoint, at once."""
        if self._heartbeat is None and self._mirror is None:
            return
        with self._lock:
            self._next = (step, path)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="announcer", daemon=True)
                self._thread.start()

    def close(self, seconds: float | None) -> None:
        """Wait for what is under way; what does not end in time is left."""
        thread = self._thread
        if thread is not None:
            thread.join(self._patience if seconds is None else seconds)

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._next is None:
                    self._thread = None
                    return
                step, path = self._next
                self._next = None
            try:
                self._announce(step, path)
            except Exception as error:  # noqa: BLE001 - nothing here may end training
                self.failures += 1
                if self.failures == 1:
                    logger.warning(
                        "step %d could not be announced (%s); training goes on, and further "
                        "failures are only counted",
                        step,
                        error,
                    )

    def _announce(self, step: int, path: Path) -> None:
        uri = f"{self._uri.rstrip('/')}/{path.name}/" if self._uri else path.absolute().as_uri()
        if self._mirror is not None:
            uri = self._mirror.upload(path)
        if self._heartbeat is not None:
            self._heartbeat.put(step, uri)


def _client(
    service: str,
    *,
    connect_timeout: int,
    read_timeout: int,
    attempts: int,
    region: str | None = None,
) -> Any:
    boto3 = importlib.import_module("boto3")
    config = importlib.import_module("botocore.config").Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    client = boto3.session.Session().client(service, region_name=region, config=config)
    # botocore's own retries draw their delays from `random`, which is the training's stream.
    client.meta.events.register_first("needs-retry.*.*", partial(_delay, attempts))
    return client


def _delay(limit: int, attempts: int, response: Any, caught_exception: Any, **_: Any) -> Any:
    """Say how long to wait before the next attempt; None: there is none."""
    passes = caught_exception is not None or (
        response is not None and response[0].status_code in RETRIED
    )
    return 0.5 * 2 ** (attempts - 1) if passes and attempts < limit else None
