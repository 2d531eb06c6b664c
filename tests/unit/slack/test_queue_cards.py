"""Cards about queues and capacity: a first line for every reason, the numbers in words, names tamed."""

from typing import Any

import pytest

from local.standins.slack_blocks import check
from steward.alerts.model import Alert, AlertState
from steward.cluster.findings import Finding
from steward.cluster.policy import Severity
from steward.slack.cards import render, render_text
from tests.builders import at
from tests.unit.slack.test_cards import header, words
from tests.unit.slack.told import card_of

QUEUE = "ClusterQueue/hyperpod-ns-research-clusterqueue/ml.p5.48xlarge/nvidia.com/gpu"
JOB = "PyTorchJob/hyperpod-ns-research/pretrain"
REASONS = {
    "borrowing": ("limit_binding", "at_limit", "cluster_full", "reclaim_blocked", "unbounded"),
    "preemptions": ("without_checkpoint", "with_checkpoint", "thrash"),
    "pending": (
        "missing_queue",
        "queue_inactive",
        "unknown_flavor",
        "exceeds_capacity",
        "waiting_for_quota",
        "borrow_limit",
        "waiting_for_preemption",
        "fragmentation",
        "behind_head",
        "not_evaluated",
        "reserved_without_pods",
        "no_priority_class",
    ),
    "capacity": ("node_unhealthy", "provisioning_failed", "quota_above_capacity"),
}


def a_finding(detector: str, reason: str, subject: str = JOB, **changes: Any) -> Finding:
    given: dict[str, Any] = {
        "detector": detector,
        "subject": subject,
        "reason": reason,
        "severity": Severity.WARN,
        "team": "research",
        "since": at("09:00"),
        "gpus": 8,
        "gpu_hours": None,
        "cost_usd": None,
        "action": "kubectl get workloads",
    }
    return Finding(**(given | changes))


def content(finding: Finding) -> dict[str, Any]:
    seen = at("12:00")
    alert = Alert(
        finding=finding,
        state=AlertState.OPEN,
        first_seen=seen,
        last_seen=seen,
        held_until=seen,
        opened=seen,
        incident=seen,
    )
    return card_of(alert)


def card(finding: Finding) -> dict[str, Any]:
    message = render(content(finding))
    check(message)
    return message


def lines(finding: Finding) -> list[str]:
    return words(card(finding)).splitlines()


@pytest.mark.parametrize(
    ("detector", "reason"), [(name, reason) for name, each in REASONS.items() for reason in each]
)
def test_every_reason_has_a_first_line_of_its_own(detector, reason):
    finding = a_finding(detector, reason)
    story = header(card(finding)).removeprefix(":warning: ").partition(" · ")[0]
    # Not the reason's bare name, as for a reason that nobody gave words to.
    assert not story.lower().startswith(reason.replace("_", " ") + ":")
    assert "8 GPUs" in story
    assert "8 GPUs" in render_text(content(finding))


def test_a_finding_about_cores_names_no_gpus():
    subject = QUEUE.replace("nvidia.com/gpu", "cpu")
    told = header(card(a_finding("borrowing", "limit_binding", subject, gpus=0)))
    assert told == (
        ":warning: Borrowing limit binds while others leave quota idle · research · "
        "cpu on ml.p5.48xlarge"
    )


def test_a_limit_that_binds_names_lenders_and_what_a_higher_one_admits():
    evidence = {
        "limit": 6,
        "borrowed": 6,
        "raise_by": 4,
        "admits": [{"subject": JOB, "workload": "w", "need": 4, "missing": 4}],
        "lenders": [
            {"team": "platform-mlops", "queue": "q", "cohort": None, "idle": 5,
             "since": "2026-11-05T08:00:00Z", "at_least": True},
        ],
        "cohort_limits": [],
        "waiting": 2,
        "differs": ["SageMaker says 50 % of 12 = 6, Kueue's limit is 8"],
    }  # fmt: skip
    told = lines(a_finding("borrowing", "limit_binding", QUEUE, evidence=evidence))
    assert "• Borrows 6 of at most 6 `nvidia.com/gpu`" in told
    assert any(
        line.startswith("• Left idle by: `platform-mlops` 5 (at least since <!date^")
        for line in told
    )
    assert f"• Raising the limit by 4 admits `{JOB}`" in told
    assert "• 2 waiting workloads of the team" in told
    assert "• SageMaker says 50 % of 12 = 6, Kueue's limit is 8" in told


def test_memory_is_told_in_gib():
    subject = QUEUE.replace("nvidia.com/gpu", "memory")
    evidence = {"limit": 64 * 2**30, "borrowed": 48 * 2**30, "lenders": []}
    told = lines(a_finding("borrowing", "at_limit", subject, gpus=0, evidence=evidence))
    assert "• Borrows 48 GiB of at most 64 GiB `memory`" in told


def test_a_reclaim_names_who_borrows_and_why_nothing_is_given_back():
    evidence = {
        "limit": None,
        "borrowed": 0,
        "waits": {"subject": JOB, "workload": "w", "need": 64, "missing": 24},
        "borrowers": [{"team": "platform-mlops", "queue": "q", "borrowed": 24}],
        "why": "reclaimWithinCohort is Never",
    }
    told = lines(a_finding("borrowing", "reclaim_blocked", QUEUE, evidence=evidence))
    assert "• Borrowed by: `platform-mlops` 24" in told
    assert f"• First in line: `{JOB}`, 24 missing" in told
    assert "• reclaimWithinCohort is Never" in told


def test_a_pending_job_has_its_sentence_and_kueues_own_words():
    evidence = {
        "sentence": "Needs 8 GPUs of ml.p5.48xlarge; 4 are free.",
        "message": "couldn't assign flavors to pod set main: insufficient unused quota",
        "position": 3,
        "ahead": 2,
    }
    told = lines(a_finding("pending", "waiting_for_quota", evidence=evidence))
    assert "• Needs 8 GPUs of ml.p5.48xlarge; 4 are free." in told
    quoted = "• Kueue says: `couldn't assign flavors to pod set main: insufficient unused quota`"
    assert quoted in told
    assert "• Position 3 in its queue, 2 ahead" in told


def test_without_a_message_the_card_says_that_kueue_has_said_nothing():
    said = "• Kueue has said nothing of it yet"
    evidence = {"sentence": "Not looked at yet.", "message": None}
    assert said in lines(a_finding("pending", "not_evaluated", evidence=evidence))
    # A workload that is admitted has nothing to be told.
    assert said not in lines(a_finding("pending", "reserved_without_pods", evidence=evidence))


def test_preemptions_tell_the_rule_the_preemptor_and_the_loss():
    evidence = {
        "count": 3,
        "period_hours": 168,
        "at_least": True,
        "lost_at_least": True,
        "causes": {"InCohortReclamation": 2, "InClusterQueue": 1},
        "preemptors": [{"subject": "Job/hyperpod-ns-platform-mlops/urgent", "count": 2}],
        "lost_gpu_hours": 36,
        "checkpoint": "declared",
        "advice": ["Nothing was written in a run."],
    }
    told = lines(
        a_finding(
            "preemptions", "without_checkpoint", gpu_hours=36, cost_usd=284.83, evidence=evidence
        )
    )
    assert "• Preempted at least 3 times in 7 days" in told
    assert "• Rule: InCohortReclamation 2, InClusterQueue 1" in told
    assert "• Made room for: `Job/hyperpod-ns-platform-mlops/urgent` 2" in told
    assert "• Lost: at least 36.0 GPU-h, from run start or last checkpoint to preemption" in told
    assert "• Checkpoints: declared, but no write was found" in told
    assert "• May be more: some of it nobody saw" in told
    assert any("$284.83" in line for line in told)


def test_two_jobs_in_circles_are_both_named():
    jobs = [{"subject": JOB, "count": 5}, {"subject": f"{JOB}-2", "count": 4}]
    told = lines(
        a_finding(
            "preemptions", "thrash", severity=Severity.PAGE, evidence={"jobs": jobs, "count": 9}
        )
    )
    assert f"• Each preempts the other: `{JOB}` and `{JOB}-2`" in told


def test_a_node_tells_what_is_wrong_and_what_runs_on_it():
    evidence = {
        "why": ["not Ready", "health UnschedulablePendingReplacement"],
        "status": "Failure",
        "message": "GPU fell off the bus",
        "workloads": [{"subject": JOB, "gpus": 8}],
    }
    told = lines(a_finding("capacity", "node_unhealthy", "Node/hyperpod-i-0a", evidence=evidence))
    for line in (
        "• not Ready",
        "• health UnschedulablePendingReplacement",
        "• SageMaker says: Failure",
        "• GPU fell off the bus",
        f"• Runs on it: `{JOB}`",
    ):
        assert line in told


def test_quotas_above_capacity_tell_both_sums():
    evidence = {
        "quota": 28,
        "usable": 24,
        "capacity": 32,
        "missing": 4,
        "not_usable": [{"node": "hyperpod-i-0a", "why": "not Ready", "accelerators": 8}],
    }
    told = lines(
        a_finding(
            "capacity",
            "quota_above_capacity",
            "ResourceFlavor/ml.p5.48xlarge",
            gpus=4,
            evidence=evidence,
        )
    )
    assert "• Quotas promise 28, usable are 24 of 32" in told
    assert "• Not usable: `hyperpod-i-0a` (not Ready)" in told


@pytest.mark.parametrize("detector", REASONS)
def test_foreign_names_mention_nobody(detector):
    hostile = "<!channel> *bold* `code` a&b<c"
    evidence = {
        "sentence": hostile,
        "message": hostile,
        "why": hostile if detector == "borrowing" else [hostile],
        "status": hostile,
        "differs": [hostile],
        "advice": [hostile],
        "contradiction": hostile,
        "causes": {hostile: 1},
        "preemptors": [{"subject": hostile, "count": 1}],
        "jobs": [{"subject": hostile}],
        "lenders": [{"team": hostile, "idle": 1, "since": None}],
        "admits": [{"subject": hostile}],
        "raise_by": 1,
        "workloads": [{"subject": hostile}],
        "events": [{"description": hostile}],
        "not_usable": [{"node": hostile, "why": hostile}],
    }
    subject = f"Node/{hostile}" if detector == "capacity" else JOB
    told = words(card(a_finding(detector, REASONS[detector][0], subject, evidence=evidence)))
    assert "<!channel>" not in told
    assert "&lt;!channel&gt;" in told
