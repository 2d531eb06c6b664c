"""The recordings of queues themselves, and what holds for every line that they lead to."""

import filecmp
import json
import math
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from local.lines import dump
from local.recording import Recording
from tests.queues.every import EVERY
from tests.queues.scene import RECORDINGS, size
from tests.queues.told import lines, lines_of
from tests.recordings import iso

PAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "detectors"
NAMES = [one.folder for one in EVERY]
ONE_OF_EACH = [name for name in NAMES if not name.endswith(("-0.12", "-0.18"))]
"""Without those that tell the same in another version."""


FINDING = {
    "type", "at", "status", "cluster", "detector", "team", "subject", "reason", "severity",
    "since", "gpus", "gpu_hours", "cost_usd", "evidence", "action", "resolution",
}  # fmt: skip
UNKNOWN = {"type", "at", "cluster", "detector", "team", "subject", "reason"}

REASONS = {
    "borrowing": {"limit_binding", "at_limit", "cluster_full", "reclaim_blocked", "unbounded"},
    "preemptions": {"without_checkpoint", "with_checkpoint", "thrash"},
    "pending": {
        "missing_queue", "queue_inactive", "unknown_flavor", "exceeds_capacity",
        "waiting_for_quota", "borrow_limit", "waiting_for_preemption", "fragmentation",
        "behind_head", "not_evaluated", "reserved_without_pods", "no_priority_class",
    },
    "capacity": {"node_unhealthy", "provisioning_failed", "quota_above_capacity"},
}  # fmt: skip
WARN = {
    "limit_binding", "reclaim_blocked", "without_checkpoint", "missing_queue", "queue_inactive",
    "unknown_flavor", "exceeds_capacity", "node_unhealthy", "quota_above_capacity",
}  # fmt: skip
EVIDENCE = {
    "borrowing": {"limit", "borrowed", "lenders", "raise_by", "admits"},
    "preemptions": {"count", "causes", "preemptors", "lost_gpu_hours", "checkpoint"},
    "pending": {"message", "need", "available"},
    "capacity": set(),
}
SUBJECTS = {
    "borrowing": r"ClusterQueue/[^/]+/[^/]+/[^/]+(/[^/]+)?",  # a resource may be nvidia.com/gpu
    "preemptions": r"Job/[^/]+/[^/]+",
    "pending": r"Job/[^/]+/[^/]+",
    "capacity": r"(Node|ResourceFlavor|InstanceGroup)/[^/]+",
}
RESOLUTIONS = {
    "active_again", "released", "admitted", "finished", "quota_changed", "fixed", "exempted",
    "expired", "reason_changed",
}  # fmt: skip
PAGE_OF = {"preemptions": "preemption"}


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.fixture(params=NAMES)
def folder(request):
    return request.param


def ours(told):
    """Lines of the four detectors that queues are about."""
    return [line for line in told if line.get("detector") in REASONS]


def findings(told):
    return [line for line in ours(told) if line["type"] == "finding"]


# --- the recordings themselves -------------------------------------------------------------------


def test_no_recording_is_there_that_nobody_describes():
    assert {path.name for path in RECORDINGS.iterdir()} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.folder)
def test_a_recording_is_small_and_what_its_description_writes(tmp_path, one):
    """`python -m tests.queues` writes them; nobody edits one by hand."""
    written, kept = one.record(tmp_path), RECORDINGS / one.folder
    names = sorted(str(p.relative_to(written)) for p in written.rglob("*") if p.is_file())
    assert names == sorted(str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file())
    assert filecmp.cmpfiles(written, kept, names, shallow=False) == (names, [], [])
    assert size(kept) < 200_000
    assert "Right:" in Recording.open(kept).note


def test_every_reason_is_told_in_some_recording():
    told = {
        (line["detector"], line["reason"]) for name in NAMES for line in findings(lines_of(name))
    }
    assert told == {(detector, reason) for detector, every in REASONS.items() for reason in every}


def test_every_reason_of_a_wait_is_told_in_each_version():
    for version in ("0.12", "0.18", "0.19"):
        told = lines_of(f"pending-{version}")
        assert REASONS["pending"] <= {line["reason"] for line in findings(told)}


# --- the lines -----------------------------------------------------------------------------------


def test_lines_are_in_order_and_the_summary_is_the_last(folder):
    told = lines_of(folder)
    times = [line["at"] for line in told]
    assert times == sorted(times)
    assert [line["type"] == "summary" for line in told].index(True) == len(told) - 1
    assert told[-1]["failures"] == 0


def test_a_finding_line_has_every_member_and_no_other(folder):
    for line in findings(lines_of(folder)):
        assert set(line) == FINDING
        assert line["cluster"] == "ml-shared-01"
        assert line["reason"] in REASONS[line["detector"]]
        assert re.fullmatch(SUBJECTS[line["detector"]], line["subject"])
        assert line["team"] in {None, "research", "platform-mlops", "product-genai"}
        assert isinstance(line["action"], str)
        assert line["action"]
        ended = line["status"] == "resolved"
        assert (line["resolution"] in RESOLUTIONS) if ended else (line["resolution"] is None)


def test_severities_are_the_defaults(folder):
    for line in findings(lines_of(folder)):
        thrash = line["reason"] == "thrash"
        assert line["severity"] == (
            "page" if thrash else "warn" if line["reason"] in WARN else "info"
        )


def test_evidence_holds_what_every_reader_may_rely_on(folder):
    for line in findings(lines_of(folder)):
        evidence = line["evidence"]
        assert EVIDENCE[line["detector"]] <= set(evidence)
        for lender in evidence.get("lenders", ()):
            assert {"team", "idle", "since"} <= set(lender)


def test_every_key_of_the_evidence_is_on_the_detectors_page(folder):
    for line in findings(lines_of(folder)):
        page = (PAGES / f"{PAGE_OF.get(line['detector'], line['detector'])}.md").read_text()
        _, _, keys = page.partition("## Evidence keys")
        told = {key for item in _objects(line["evidence"]) for key in item}
        told -= set(line["evidence"].get("causes", ()))  # which are values: cause to number
        assert told <= set(re.findall(r"\w+", keys))


def _objects(value):
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def test_times_and_numbers_have_their_forms(folder):
    for line in ours(lines_of(folder)):
        text = json.dumps(line, allow_nan=False)  # NaN and infinity are no JSON
        assert json.loads(text) == line
        for name in {"at", "since"} & set(line):
            assert iso(datetime.fromisoformat(line[name])) == line[name]
            assert line[name] <= line["at"]
        for name in {"gpus", "gpu_hours", "cost_usd"} & set(line):
            number = line[name]
            assert number is None or (math.isfinite(number) and number >= 0)


def test_an_unknown_line_has_its_members(folder):
    for line in lines_of(folder):
        if line["type"] == "unknown":
            assert set(line) >= UNKNOWN
            assert line.get("ended", True) is True


def test_a_finding_opens_and_ends_once_and_what_is_open_is_in_the_summary(folder):
    told = lines_of(folder)
    standing = set()
    for line in findings(told):
        key = (line["detector"], line["subject"], line["reason"])
        assert (key in standing) is (line["status"] == "resolved")
        standing ^= {key}
    rest = {(line["detector"], line["subject"], line["reason"]) for line in ours(told[-1]["open"])}
    assert rest == standing


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_another_run_prints_the_same_bytes_also_with_every_list_turned_round(name, tmp_path):
    backwards = shutil.copytree(RECORDINGS / name, tmp_path / name)
    turned = 0
    for path in (backwards / "kubernetes").rglob("*.json"):
        document = json.loads(path.read_text())
        document["items"].reverse()
        turned += len(document["items"]) > 1
        path.write_text(json.dumps(document))
    assert turned
    again = [dump(line) for line in lines(backwards)]
    assert again == [dump(line) for line in lines_of(name)]
