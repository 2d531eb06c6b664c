"""How findings about capacity end."""

import msgspec

from steward.cluster.capacity.failures import ERROR, RECENT, FaultsJudged
from steward.cluster.capacity.findings import Reason
from steward.cluster.capacity.inventory import EVENTS, FAILED, LEAVING, Inventory, serves
from steward.cluster.capacity.nodes import NodesJudged
from steward.cluster.capacity.quota import QuotasJudged
from steward.cluster.control_plane import ClusterEvent
from steward.cluster.findings import Finding, Resolution
from steward.cluster.snapshot import Snapshot


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was judged of one snapshot."""

    nodes: NodesJudged
    failures: FaultsJudged
    quotas: QuotasJudged


class Ends:
    """Tells of findings that are found no more how they ended."""

    def __init__(self, snapshot: Snapshot, inventory: Inventory, judged: Judged) -> None:
        self._snapshot = snapshot
        self._inventory = inventory
        self._judged = judged

    def resolution(self, finding: Finding) -> Resolution | None:
        """Tell how a finding ended; None where that cannot be judged."""
        match finding.reason:
            case Reason.QUOTA_ABOVE_CAPACITY:
                return self._quota(finding)
            case Reason.PROVISIONING_FAILED:
                return self._failure(finding)
        return self._node(finding)

    def _node(self, finding: Finding) -> Resolution | None:
        name = finding.subject.removeprefix("Node/")
        evidence, inventory = finding.evidence, self._inventory
        if name in self._judged.nodes.undecided:
            # Gone from a list that was read, and nobody ever said that a group has it.
            unclaimed = inventory.nodes_whole and inventory.claimant(name) is None
            return Resolution.RELEASED if unclaimed else None
        if name in inventory.nodes and not inventory.unlisted(name):
            said = evidence.get("status") in {FAILED, *LEAVING}
            instance = inventory.instances.get(name)
            if said and instance is None and not inventory.instances_whole:
                return None
            left = instance is not None and instance.status in LEAVING
            return Resolution.RELEASED if left else Resolution.FIXED
        if name not in inventory.known and not inventory.instances_whole:
            return None  # an instance that was no node yet
        return self._absent(finding)

    def _absent(self, finding: Finding) -> Resolution | None:
        """Tell how it ended for what is not there any more: replaced, or not wanted."""
        group = finding.evidence.get("group")
        missing = self._inventory.missing(group)
        if missing is None:
            return None
        target, before = self._inventory.target(group), finding.evidence.get("group_target")
        kept = target is not None and (before is None or target >= before)
        return Resolution.FIXED if kept and missing == 0 else Resolution.RELEASED

    def _failure(self, finding: Finding) -> Resolution | None:
        inventory, evidence = self._inventory, finding.evidence
        name = finding.subject.removeprefix("Node/")
        if name in inventory.nodes or serves(inventory.instances.get(name)):
            return Resolution.FIXED
        if finding.subject in self._judged.failures.undecided:
            return None
        missing = inventory.missing(evidence.get("group"))
        if missing is None and not inventory.dark:
            return None
        if missing == 0:
            return self._absent(finding)
        part = self._snapshot.part(EVENTS)
        if self._snapshot.refused(EVENTS) or (part and part.left_out):
            return None
        # Still said and not found: given up for a newer instance, or told of an instance now.
        said = any(
            event.level == ERROR
            and event.at > inventory.at - RECENT
            and _about(event, evidence["instance_id"], evidence["group"])
            for event in self._snapshot.control_plane.events
        )
        return Resolution.RELEASED if said else Resolution.EXPIRED

    def _quota(self, finding: Finding) -> Resolution | None:
        flavor = finding.subject.removeprefix("ResourceFlavor/")
        quotas = self._judged.quotas
        if not quotas.exact or flavor in quotas.undecided:
            return None
        now = quotas.flavors.get(flavor)
        quota = now.quota if now else 0.0
        lowered = quota <= finding.evidence["usable"]
        return Resolution.QUOTA_CHANGED if lowered else Resolution.FIXED


def _about(event: ClusterEvent, instance_id: str | None, group: str | None) -> bool:
    if instance_id is None:
        return event.instance_id is None and event.group == group
    return event.instance_id == instance_id
