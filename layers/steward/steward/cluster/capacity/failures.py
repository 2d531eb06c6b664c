"""Instances that SageMaker tries to provide and cannot, from its own events."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from steward.cluster.capacity.inventory import LEAVING, Inventory, node_name, serves
from steward.cluster.control_plane import ClusterEvent

ERROR = "Error"
RECENT = timedelta(hours=24)
"""How long an error is news; SageMaker's events are read so far back."""

TOGETHER = timedelta(minutes=5)
"""An error that names no instance belongs to one of its group's within this time."""


class ProvisioningFault(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that does not come, or a group's that nobody names.

    Attributes
    ----------
    events : tuple of ClusterEvent
        Every error that tells of it, by time.
    """

    subject: str
    instance_id: str | None
    group: str | None
    events: tuple[ClusterEvent, ...]


class FaultsJudged(msgspec.Struct, frozen=True, kw_only=True):
    """What fails to be provided.

    Attributes
    ----------
    faults : dict of str to ProvisioningFault
        By subject.
    undecided : frozenset of str
        Subjects of which the lists do not say enough.
    settled : dict of str to datetime
        For the memory.
    """

    faults: dict[str, ProvisioningFault]
    undecided: frozenset[str]
    settled: dict[str, datetime]


def judge_failures(
    inventory: Inventory, events: Iterable[ClusterEvent], settled: Mapping[str, datetime]
) -> FaultsJudged:
    """Gather the errors about instances that still do not run.

    Parameters
    ----------
    inventory : Inventory
        Of the snapshot.
    events : iterable of ClusterEvent
        As SageMaker lists them; one may be there more than once.
    settled : mapping of str to datetime
        As in the memory.
    """
    told = _errors(inventory, events, settled)
    by_subject: dict[str, ProvisioningFault] = {}
    undecided: set[str] = set()
    removed: dict[str, list[ProvisioningFault]] = defaultdict(list)
    for fault in _gathered(inventory, told):
        listed = fault.instance_id is not None and (
            node_name(fault.instance_id) in inventory.instances
        )
        verdict = _fails(inventory, fault)
        if verdict is None:
            undecided.add(fault.subject)
        elif verdict and (listed or inventory.dark or fault.instance_id is None):
            by_subject[fault.subject] = fault
        elif verdict:
            removed[fault.group or ""].append(fault)
    for group, faults in removed.items():
        # Of those that were given up, the newest are as many as the group still lacks.
        newest = sorted(faults, key=_newest_first)[: inventory.vacancies(group)]
        by_subject.update({fault.subject: fault for fault in newest})
    return FaultsJudged(
        faults={subject: by_subject[subject] for subject in sorted(by_subject)},
        undecided=frozenset(undecided),
        settled=_settled(inventory, settled),
    )


def _errors(
    inventory: Inventory, events: Iterable[ClusterEvent], settled: Mapping[str, datetime]
) -> list[ClusterEvent]:
    """Keep the errors that may still matter, each once, by time."""
    once = {event.id: event for event in sorted(events, key=_order)}
    kept = []
    for event in sorted(once.values(), key=_order):
        name = node_name(event.instance_id or "")
        group = event.group or inventory.group_of(name)
        over = settled.get(group) if group and name not in inventory.instances else None
        if (
            event.level == ERROR
            and (event.instance_id or event.group)
            and event.at > inventory.at - RECENT
            and (over is None or event.at > over)
        ):
            kept.append(event)
    return kept


def _order(event: ClusterEvent) -> tuple[datetime, str]:
    return event.at, event.id


def _newest_first(fault: ProvisioningFault) -> tuple[float, str]:
    return -fault.events[-1].at.timestamp(), fault.subject


def _gathered(inventory: Inventory, errors: Sequence[ClusterEvent]) -> list[ProvisioningFault]:
    """Bring the errors of one fault together: of one instance, or of a group that names none."""
    of_instance: dict[str, list[ClusterEvent]] = defaultdict(list)
    of_group: dict[str, list[ClusterEvent]] = defaultdict(list)
    for event in errors:
        if event.instance_id:
            of_instance[event.instance_id].append(event)
    named = [event for event in errors if event.instance_id]
    for event in errors:
        if event.instance_id or not event.group:
            continue
        near = _nearest(event, named)
        if near and near.instance_id:
            of_instance[near.instance_id].append(event)
        else:
            of_group[event.group].append(event)
    faults = []
    for instance_id, together in of_instance.items():
        name = node_name(instance_id)
        group = next((event.group for event in together if event.group), None)
        faults.append(
            ProvisioningFault(
                subject=f"Node/{name}",
                instance_id=instance_id,
                group=inventory.group_of(name) or group,
                events=tuple(sorted(together, key=_order)),
            )
        )
    faults += [
        ProvisioningFault(
            subject=f"InstanceGroup/{group}",
            instance_id=None,
            group=group,
            events=tuple(together),
        )
        for group, together in of_group.items()
    ]
    return sorted(faults, key=lambda fault: fault.subject)


def _nearest(event: ClusterEvent, named: Iterable[ClusterEvent]) -> ClusterEvent | None:
    """Find the error of an instance of the same group that is nearest in time."""
    near = [
        other
        for other in named
        if other.group == event.group and abs(other.at - event.at) <= TOGETHER
    ]
    return min(near, key=lambda other: (abs(other.at - event.at), _order(other)), default=None)


def _fails(inventory: Inventory, fault: ProvisioningFault) -> bool | None:
    """Tell whether what the errors are about still does not run; None where nobody says."""
    missing = inventory.missing(fault.group)
    if fault.instance_id is None:
        return None if missing is None else missing > 0
    name = node_name(fault.instance_id)
    instance = inventory.instances.get(name)
    if name in inventory.nodes or name in inventory.known or serves(instance):
        return False  # what fails once it has been a node is the node
    if instance and instance.status not in LEAVING:
        return True
    if not inventory.nodes_whole:
        return None
    if inventory.dark:
        return True  # it failed, and is no node
    return None if missing is None else missing > 0


def _settled(inventory: Inventory, before: Mapping[str, datetime]) -> dict[str, datetime]:
    """Note which groups are complete now; keep the others' newest time for as long as it matters."""
    found = {}
    for group in sorted({*before, *inventory.groups}):
        if group in inventory.groups and inventory.missing(group) == 0:
            found[group] = inventory.at
        elif group in before and before[group] > inventory.at - RECENT:
            found[group] = before[group]
    return found
