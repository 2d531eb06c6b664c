"""How the tests serve, stub and read a cluster."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.stub import Stubber
from werkzeug.serving import make_server

from local.recording import Recording
from steward.cluster.policy import ClusterPolicy
from steward.ports import ControlPlaneReading
from steward.sources.control_plane import ControlPlaneReader
from tests.contract.cluster_reader.answers import CLUSTER, NOW

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

type Serve = Callable[..., str]
type ReaderOf = Callable[..., ControlPlaneReader]


@dataclass
class StepClock:
    """A clock that moves by `step` whenever it is read."""

    at: datetime = NOW
    step: timedelta = timedelta()
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        at, self.at = self.at, self.at + self.step
        return at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@contextmanager
def served(app: "WSGIApplication") -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


def record(folder: Path, answers: Mapping[str, Any], cluster: ClusterPolicy = CLUSTER) -> Recording:
    header = f"cluster: {cluster.name}\nnow: {NOW.isoformat()}\n"
    (folder / "recording.yaml").write_text(header)
    for name, answer in answers.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(answer))
    return Recording.open(folder)


def stub(reader: ControlPlaneReader, answers: Mapping[str, Any]) -> ControlPlaneReader:
    """Answer from memory, in pages of 100, in the order in which the adapter calls."""
    stubbers = {"sagemaker": Stubber(reader._sagemaker), "eks": Stubber(reader._eks)}
    names = {"DescribeCluster": "describe_cluster", "ListClusterNodes": "list_cluster_nodes"}
    names |= {"ListComputeQuotas": "list_compute_quotas"}
    names |= {"ListClusterSchedulerConfigs": "list_cluster_scheduler_configs"}
    names |= {"DescribeClusterSchedulerConfig": "describe_cluster_scheduler_config"}
    for name, answer in answers.items():
        service, _, operation = name.partition("/")
        if "Error" in answer:
            fault = answer["Error"]
            stubbers[service].add_client_error(names[operation], fault["Code"], fault["Message"])
            continue
        lists = {k: v for k, v in answer.items() if k.endswith("Summaries")}
        if not lists:
            stubbers[service].add_response(names[operation], answer)
        for key, items in lists.items():
            for start in range(0, max(1, len(items)), 100):
                more = {"NextToken": str(start + 100)} if start + 100 < len(items) else {}
                page = {key: items[start : start + 100]} | more
                stubbers[service].add_response(names[operation], page)
    for stubber in stubbers.values():
        stubber.activate()
    return reader


def statuses(reading: ControlPlaneReading) -> dict[str, str]:
    return {part.name: part.status.value for part in reading.parts}


def details(reading: ControlPlaneReading) -> dict[str, str]:
    return {part.name: part.detail for part in reading.parts if part.detail}
