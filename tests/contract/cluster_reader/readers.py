"""How the tests serve, stub and read a cluster."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore import xform_name
from botocore.parsers import create_parser
from botocore.session import get_session
from botocore.stub import Stubber
from werkzeug.serving import make_server

from local.recording import Recording
from steward.cluster.policy import ClusterPolicy
from steward.ports import ControlPlaneReading
from steward.sources.control_plane.reader import ControlPlaneReader
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
    for name, answer in answers.items():
        service, _, operation = name.partition("/")
        method = xform_name(operation.partition(".")[0])
        if "Error" in answer:
            fault = answer["Error"]
            stubbers[service].add_client_error(method, fault["Code"], fault["Message"])
            continue
        for page in pages(operation, answer):
            stubbers[service].add_response(method, parsed(service, operation, page))
    for stubber in stubbers.values():
        stubber.activate()
    return reader


def parsed(service: str, operation: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Parse an answer as botocore does: Stubber hands on what a parser would have made."""
    model = get_session().get_service_model(service)
    shape = model.operation_model(operation.partition(".")[0]).output_shape
    assert shape is not None
    response = {"status_code": 200, "headers": {}, "body": json.dumps(answer).encode()}
    made: dict[str, Any] = create_parser("json").parse(response, shape)
    del made["ResponseMetadata"]
    return made


def pages(operation: str, answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Cut a merged list up again; anything else is one page."""
    if not operation.startswith("List"):
        yield answer
        return
    token = "nextToken" if operation == "ListAddons" else "NextToken"
    ((key, items),) = ((key, items) for key, items in answer.items() if isinstance(items, list))
    for start in range(0, max(1, len(items)), 100):
        more = {token: str(start + 100)} if start + 100 < len(items) else {}
        yield {key: items[start : start + 100]} | more


def statuses(reading: ControlPlaneReading) -> dict[str, str]:
    return {part.name: part.status.value for part in reading.parts}


def details(reading: ControlPlaneReading) -> dict[str, str]:
    return {part.name: part.detail for part in reading.parts if part.detail}
