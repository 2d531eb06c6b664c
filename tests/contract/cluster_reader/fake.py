"""The in-memory twin of the ClusterReader port: what there is, less what the answers refuse."""

from collections.abc import Mapping
from copy import replace
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from steward.cluster.control_plane import AddOn, ControlPlane
from steward.cluster.snapshot import Part, PartStatus
from steward.ports import ControlPlaneReading
from tests.contract.cluster_reader.answers import NOW


@dataclass(frozen=True)
class FakeReader:
    """Reads a cluster whose nouns are known from the same answers that the others are given."""

    whole: ControlPlane
    answers: Mapping[str, Any]

    TELLS: ClassVar = {
        "sagemaker/DescribeCluster": (
            *("status", "arn", "groups", "failure", "node_recovery", "provisioning_mode"),
        ),
        "sagemaker/ListClusterNodes": ("nodes",),
        "sagemaker/ListComputeQuotas": ("quotas",),
        "sagemaker/ListClusterSchedulerConfigs": ("scheduler",),
        "sagemaker/DescribeClusterSchedulerConfig": ("scheduler",),
        "sagemaker/ListClusterEvents": ("events",),
        "eks/DescribeCluster": ("kubernetes_version",),
        "eks/ListAddons": ("add_ons",),
        "eks/DescribeAddon": (),
    }

    def read(self, *, add_ons: bool = True) -> ControlPlaneReading:
        blank = {f.name: f.default for f in msgspec.structs.fields(ControlPlane)}
        seen, parts = self.whole, []
        if not add_ons:
            seen = replace(seen, add_ons=None)
        for name, told in self.TELLS.items():
            if name == "eks/ListAddons" and not add_ons:
                continue
            if name == "sagemaker/DescribeClusterSchedulerConfig" and seen.scheduler is None:
                continue
            if name == "eks/DescribeAddon" and not seen.add_ons:
                continue
            status = self._status(name)
            parts.append(Part(name=name, status=status, at=NOW))
            if status is not PartStatus.OK:
                seen = replace(seen, **{key: blank[key] for key in told})
            if name == "eks/DescribeAddon":
                seen = replace(seen, add_ons=tuple(map(self._described, seen.add_ons or ())))
        return ControlPlaneReading(control_plane=seen, parts=tuple(parts))

    def _described(self, add_on: AddOn) -> AddOn:
        if self._code(f"eks/DescribeAddon.{add_on.name}") is None:
            return add_on
        return AddOn(name=add_on.name, version=None, status=None, settings_known=False)

    def _status(self, part: str) -> PartStatus:
        """Worst of a part's calls."""
        codes = {self._code(name) for name in self.answers if name.partition(".")[0] == part}
        if "AccessDeniedException" in codes:
            return PartStatus.DENIED
        if codes == {"ValidationException"} and self.whole.provisioning_mode != "Continuous":
            return PartStatus.ABSENT
        return PartStatus.OK if codes <= {None} else PartStatus.UNREADABLE

    def _code(self, name: str) -> str | None:
        code: str | None = self.answers.get(name, {}).get("Error", {}).get("Code")
        return code
