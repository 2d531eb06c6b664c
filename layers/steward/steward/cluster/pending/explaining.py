"""Why each pending workload waits: Kueue's message and the objects, held against each other."""

from copy import replace
from typing import Any

import msgspec

from steward.cluster.figures import stamp
from steward.cluster.kueue import Workload
from steward.cluster.pending.messages import read_condition
from steward.cluster.pending.objects import Objects, evaluated
from steward.cluster.pending.queues import Place
from steward.cluster.pending.reasons import UNEXPLAINED, Reason, settle
from steward.cluster.pending.shown import Shown, by_message, quoted
from steward.cluster.snapshot import Snapshot
from steward.cluster.workloads import QUOTA_RESERVED, subject_of

_Shape = tuple[int, tuple[object, ...], tuple[object, ...]]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Why a workload waits.

    Attributes
    ----------
    shown : Shown
        What is told; without a reason where nothing can be.
    message : str or None
        Kueue's own text.
    message_reason, objects_reason : Reason or None
        What each says, where they contradict each other; else None.
    unread : str or None
        The part without which the objects say nothing.
    """

    shown: Shown
    message: str | None = None
    message_reason: Reason | None = None
    objects_reason: Reason | None = None
    contradiction: str | None = None
    cluster_queue: str | None = None
    place: Place | None = None
    unread: str | None = None

    def without(self, part: str) -> "Explained":
        """Take the reason back: a part that would show it exactly could not be read."""
        return replace(self, shown=Shown(unread=part))


class Explainer:
    """Explains the pending workloads of a snapshot, each once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._at = snapshot.at
        self._objects = Objects(snapshot)
        self._known: dict[str, Explained] = {}
        self._answered: dict[str, dict[_Shape, int]] = {}

    def explain(self, workload: Workload) -> Explained:
        """Say why a pending workload waits."""
        if workload.uid not in self._known:
            self._known[workload.uid] = self._explain(workload)
        return self._known[workload.uid]

    def _explain(self, workload: Workload) -> Explained:
        text = message_of(workload)
        reading = read_condition(workload.condition(QUOTA_RESERVED))
        objects = self._objects.show(workload)
        told = by_message(workload, reading, text or "", objects)
        reason, contradict = settle(told.reason, objects.reason)
        if objects.unplaceable and told.reason is Reason.FRAGMENTATION:
            reason, contradict = objects.reason, False
        queues = self._objects.queues
        place = None if queues.unread(workload) else queues.place(workload)
        shown = objects
        if told.reason is not None and told.reason is reason:
            shown = self._told(workload, told, objects, contradict=contradict)
        elif text and shown.reason in UNEXPLAINED and evaluated(workload):
            shown = replace(shown, sentence=f"{shown.sentence} {quoted(text)}")
        return Explained(
            shown=self._in_context(workload, shown, place),
            message=text,
            message_reason=told.reason if contradict else None,
            objects_reason=objects.reason if contradict else None,
            contradiction=_contradiction(told, objects) if contradict else None,
            cluster_queue=queues.cluster_queue(workload),
            place=place,
            unread=objects.unread,
        )

    def _told(self, workload: Workload, told: Shown, objects: Shown, *, contradict: bool) -> Shown:
        """Take the numbers from the message where it has some, and the rest from the objects."""
        same = told.resource in {None, objects.resource} and told.flavor in {None, objects.flavor}
        if same and objects.reason is told.reason:
            return objects
        evidence = told.evidence if contradict else objects.evidence | told.evidence
        if told.resource is None:
            # The text names no numbers: those of the objects are of the same request.
            return replace(
                told,
                resource=objects.resource,
                flavor=objects.flavor,
                need=objects.need,
                available=objects.available,
                evidence=evidence,
            )
        free = None
        if told.flavor is not None:
            free = self._objects.available(workload, told.flavor, told.resource)
        # A text that the objects contradict is told with its own number, not with one that denies it.
        first, second = (told.available, free) if contradict else (free, told.available)
        return replace(told, available=second if first is None else first, evidence=evidence)

    def _in_context(self, workload: Workload, shown: Shown, place: Place | None) -> Shown:
        """Add who is ahead and why they wait, and a back-off that runs."""
        later = workload.requeue.at if workload.requeue else None
        if shown.reason in UNEXPLAINED and later is not None and later > self._at:
            sentence = f"{shown.sentence} Kueue lets it wait until {stamp(later)} after its last failure (back-off)."
            shown = replace(shown, sentence=sentence)
        if shown.reason not in UNEXPLAINED or place is None or place.head is None:
            return shown
        head = self.explain(place.head)
        evidence: dict[str, Any] = {
            "head": {
                "subject": subject_of(place.head),
                "workload": place.head.name,
                "priority": place.head.priority,
                "reason": head.shown.reason.value if head.shown.reason else None,
            }
        }
        sentence = shown.sentence
        twin = self._twin(workload, place) if shown.reason is Reason.NOT_EVALUATED else None
        if twin is not None:
            evidence["same_as"] = {"subject": subject_of(twin), "message": message_of(twin)}
            sentence += f" {subject_of(twin)} is ahead with the same request and priority, and waits for the same: {self.explain(twin).shown.sentence}"
        elif head.shown.reason is not None:
            sentence += f" First is {subject_of(place.head)}: {head.shown.sentence}"
        return replace(shown, sentence=sentence, evidence={**shown.evidence, **evidence})

    def _twin(self, workload: Workload, place: Place) -> Workload | None:
        """Find a workload ahead that Kueue has answered, and that asks for the same."""
        queue = place.queue.name
        if queue not in self._answered:
            last_first = reversed(list(enumerate(place.line)))
            first = {_shape(one): index for index, one in last_first if evaluated(one)}
            self._answered[queue] = first
        index = self._answered[queue].get(_shape(workload), place.ahead)
        return place.line[index] if index < place.ahead else None


def message_of(workload: Workload) -> str | None:
    """Give Kueue's text of why a workload is not admitted."""
    reserved = workload.condition(QUOTA_RESERVED)
    return (reserved.message or None) if reserved and reserved.status is not True else None


def _shape(workload: Workload) -> _Shape:
    """Give what Kueue takes two workloads of a queue for the same by."""
    pod_sets = tuple((one.count, *sorted(one.per_pod.items())) for one in workload.pod_sets)
    return workload.priority, pod_sets, tuple(sorted(workload.requests.items()))


def _contradiction(told: Shown, objects: Shown) -> str:
    return (
        f"Kueue's message says {told.reason}, the objects say {objects.reason}: {objects.sentence}"
    )
