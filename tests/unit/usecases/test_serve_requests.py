"""A batch of wishes: one snapshot a cluster, nothing malformed swallowed."""

import json
from datetime import timedelta

from local.twins import InMemoryObjects
from steward.clock import FixedClock
from steward.cluster.planning import SnapshotScope
from steward.errors import RetryableError
from steward.events import QueueRecord
from steward.stores.bucket import Snapshots
from steward.stores.claims import Claims
from steward.usecases.coalescing import LONGEST_SECONDS, SPACING, Turns
from steward.usecases.serve_requests import serve_requests
from steward.usecases.take_snapshot import Outcome
from tests.builders import NOON, a_cluster

CLUSTERS = (a_cluster(), a_cluster(name="ml-eu", eks_name="ml-eu-eks", region="eu-west-1"))


def record(name, body):
    return QueueRecord(message_id=name, body=body if isinstance(body, str) else json.dumps(body))


def wish(cluster, seconds_ago=0):
    when = NOON - timedelta(seconds=seconds_ago)
    return {"cluster": cluster, "requested_at": when.isoformat(), "reason": "tick"}


def turns_at(now=NOON, left=lambda: 600.0, objects=None, clock=None, owner="run"):
    objects = objects or InMemoryObjects()
    return Turns(
        Claims(objects), Snapshots(objects), clock or FixedClock(now), owner=owner, left=left
    )


def serve(*records, broken=(), left=lambda: 600.0, now=NOON, turns=None):
    taken = []

    def take(cluster, asked, scope):
        if cluster.name in broken:
            raise RetryableError("the bucket did not answer")
        taken.append(
            (cluster.name, asked) if scope is SnapshotScope.TICK else (cluster.name, asked, scope)
        )
        return Outcome(cluster=cluster.name, key="k", reason="taken")

    turns = turns or turns_at(now, left)
    return serve_requests(records, CLUSTERS, now, take, turns, left), taken


def test_many_wishes_for_a_cluster_are_one_snapshot_begun_now():
    served, taken = serve(
        record("1", wish("ml-shared-01", 50)),
        record("2", wish("ml-shared-01", 10)),
        record("3", wish("ml-eu", 5)),
    )
    # Whoever finishes one that began at that time or later, meanwhile, has answered them.
    assert taken == [("ml-shared-01", NOON), ("ml-eu", NOON)]
    assert (served.failed_messages, served.dropped) == ((), 0)


def test_a_health_event_asks_for_its_cluster():
    event = {
        "version": "0",
        "id": "e1",
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-11-05T11:59:58Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {"ClusterName": "ml-shared-01", "InstanceId": "i-0a", "HealthSummary": {}},
    }
    _, taken = serve(record("1", event))
    assert [name for name, _ in taken] == ["ml-shared-01"]


def test_a_cluster_event_names_its_cluster_in_the_nested_details():
    event = {
        "detail-type": "SageMaker HyperPod Cluster Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-11-05T11:59:58Z",
        "region": "eu-west-1",
        "detail": {"EventDetails": {"ClusterName": "ml-eu", "EventDetails": {}}},
    }
    _, taken = serve(record("1", event))
    assert [name for name, _ in taken] == ["ml-eu"]


def test_a_wish_for_an_audit_is_served_first_and_answers_the_ticks_that_came_with_it():
    served, taken = serve(
        record("1", wish("ml-eu", 5)),
        record("2", wish("ml-eu", 9) | {"scope": "audit"}),
    )
    assert taken == [("ml-eu", NOON, SnapshotScope.AUDIT)]
    assert served.failed_messages == ()


def test_an_audit_that_failed_answers_no_tick():
    served, taken = serve(
        record("1", wish("ml-eu", 5)),
        record("2", wish("ml-eu", 9) | {"scope": "audit"}),
        broken={"ml-eu"},
    )
    # Both were tried, and both messages come again.
    assert (taken, served.failed_messages) == ([], ("1", "2"))


def event_of(detail_type, **detail):
    return {
        "detail-type": detail_type,
        "source": "anybody",
        "time": "2026-11-05T11:59:58Z",
        "detail": {"cluster": "ml-eu"} | detail,
    }


def test_an_event_addressed_to_us_may_ask_for_an_audit():
    _, taken = serve(record("1", event_of("Snapshot Requested", scope="audit")))
    assert [scope for _, _, scope in taken] == [SnapshotScope.AUDIT]


def test_a_scope_that_does_not_exist_fails_its_message():
    served, taken = serve(record("1", event_of("Snapshot Requested", scope="everything")))
    assert (served.failed_messages, taken) == (("1",), [])


def test_other_events_may_mean_anything_by_scope():
    served, taken = serve(record("1", event_of("Something Else", scope="everything")))
    assert (served.failed_messages, len(taken)) == ((), 1)


def alert(cluster, sent):
    return QueueRecord(
        message_id="1",
        body=json.dumps({"cluster": cluster}),
        attributes={"SentTimestamp": str(round(sent.timestamp() * 1000))},
    )


def test_an_alert_that_a_topic_sent_was_made_when_it_was_sent():
    _, taken = serve(alert("ml-eu-eks", NOON - timedelta(seconds=3)))
    assert taken == [("ml-eu", NOON)]
    served, taken = serve(alert("ml-eu-eks", NOON - timedelta(minutes=16)))
    assert (served.dropped, taken) == (1, [])


def test_a_message_that_says_nothing_of_its_time_fails():
    served, _ = serve(record("1", {"cluster": "ml-eu"}))
    assert served.failed_messages == ("1",)


def test_the_tick_of_one_cluster_does_not_wait_behind_the_events_of_another():
    clock, objects = FixedClock(NOON), InMemoryObjects()
    turns = turns_at(objects=objects, clock=clock)
    serve(record("1", event_of("Something Happened")), turns=turns)
    clock.sleep(10)
    later = NOON + timedelta(seconds=5)
    again = event_of("Something Happened") | {"time": later.isoformat()}
    tick = wish("ml-shared-01", -5)
    _, taken = serve(record("1", again), record("2", tick), turns=turns, now=clock.now())
    # ml-eu had its snapshot at noon: the next that events ask for is a minute later.
    assert taken == [("ml-shared-01", NOON + timedelta(seconds=10)), ("ml-eu", NOON + SPACING)]


def test_events_that_come_with_their_clusters_tick_are_served_with_it_at_once():
    clock = FixedClock(NOON)
    turns = turns_at(clock=clock)
    serve(record("1", event_of("Something Happened")), turns=turns)
    clock.sleep(10)
    soon = (NOON + timedelta(seconds=5)).isoformat()
    again = event_of("Something Happened") | {"time": soon}
    _, taken = serve(record("1", again), record("2", wish("ml-eu", -5)), turns=turns)
    assert taken == [("ml-eu", NOON + timedelta(seconds=10))]


def test_what_another_run_answers_is_counted():
    clock, objects = FixedClock(NOON), InMemoryObjects()
    serve(record("1", wish("ml-eu")), turns=turns_at(objects=objects, clock=clock, owner="a"))
    clock.sleep(5)
    served, taken = serve(
        record("1", wish("ml-eu")), turns=turns_at(objects=objects, clock=clock, owner="b")
    )
    assert (served.answered, served.outcomes, served.failed_messages, taken) == (1, (), (), [])


def test_a_malformed_message_fails_alone():
    served, taken = serve(record("1", "{"), record("2", wish("ml-eu")))
    assert served.failed_messages == ("1",)
    assert [name for name, _ in taken] == ["ml-eu"]


def test_a_cluster_that_could_not_be_stored_fails_its_own_messages():
    served, taken = serve(
        record("1", wish("ml-eu")), record("2", wish("ml-shared-01")), broken={"ml-eu"}
    )
    assert served.failed_messages == ("1",)
    assert [name for name, _ in taken] == ["ml-shared-01"]


def test_an_old_wish_and_one_for_a_stranger_are_dropped_and_counted():
    served, taken = serve(record("1", wish("ml-eu", 16 * 60)), record("2", wish("nobody")))
    assert (taken, served.dropped, served.failed_messages) == ([], 2, ())


def test_a_snapshot_that_might_be_cut_off_is_not_begun_and_its_wish_is_dropped():
    # A first snapshot may always try; the second finds less time than one may take.
    both = record("1", wish("ml-eu")), record("2", wish("ml-shared-01"))
    served, taken = serve(*both, left=lambda: LONGEST_SECONDS - 1)
    assert (len(taken), served.dropped, served.failed_messages) == (1, 1, ())
    served, taken = serve(*both, left=lambda: LONGEST_SECONDS)
    assert (len(taken), served.dropped) == (2, 0)


def test_it_is_not_always_the_same_cluster_that_no_time_is_left_for():
    wishes = record("1", wish("ml-eu")), record("2", wish("ml-shared-01"))
    # By chance, which is in the microsecond that a run begins in; the minute is the schedule's.
    runs = [NOON.replace(microsecond=n) for n in (418_336, 418_337)]
    first = [serve(*wishes, left=lambda: 0.0, now=now)[1][0][0] for now in runs]
    assert first == ["ml-shared-01", "ml-eu"]
