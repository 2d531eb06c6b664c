"""EKS' calls of one read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from steward.cluster.control_plane import AddOn
from steward.errors import NotInstalledError, StewardError
from steward.sources.control_plane.add_ons import KEPT, read_add_on
from steward.sources.control_plane.fields import MalformedError, listing, need
from steward.sources.control_plane.parts import asking

if TYPE_CHECKING:
    from types_boto3_eks import EKSClient

    from steward.cluster.policy import ClusterPolicy
    from steward.sources.control_plane.parts import Reads


class Eks:
    """EKS' answers of one cluster."""

    def __init__(self, client: EKSClient, cluster: ClusterPolicy) -> None:
        self._client = client
        self._cluster = cluster

    def cluster(self) -> Mapping[str, Any]:
        """Describe the Kubernetes cluster."""
        with self._asking("DescribeCluster"):
            answer = self._client.describe_cluster(name=self._cluster.eks_name)
        return need(answer, "cluster", dict)

    def installed(self, reads: Reads) -> tuple[str, ...]:
        """List the names of the installed add-ons that the product knows."""
        pages = self._client.get_paginator("list_addons").paginate(
            clusterName=self._cluster.eks_name
        )
        with self._asking("ListAddons"):
            answer = reads.merge(pages, "addons")
        names = reads.keep(listing(answer, "addons", _name, ""))
        return tuple(name for name in KEPT if name in names)

    def add_ons(self, names: Iterable[str], reads: Reads) -> tuple[AddOn, ...]:
        """Describe add-ons; one that may not be described is still installed."""
        found = []
        for name in names:
            try:
                reads.check_time()
                add_on, fault = self._add_on(name)
            except NotInstalledError:
                continue  # removed since the list was made
            except StewardError as error:
                reads.lost(error)
                found.append(undescribed(name))
                continue
            reads.note(fault)
            found.append(add_on)
        return tuple(found)

    def _add_on(self, name: str) -> tuple[AddOn, str]:
        def absent(code: str) -> bool:
            return code == "ResourceNotFoundException"

        with self._asking("DescribeAddon", absent):
            answer = self._client.describe_addon(clusterName=self._cluster.eks_name, addonName=name)
        try:
            return read_add_on(answer, name)
        except MalformedError as error:
            raise MalformedError(f"{name}: {error}") from error

    def _asking(
        self, operation: str, absent: Callable[[str], bool] = lambda _: False
    ) -> AbstractContextManager[None]:
        where = f"{self._cluster.eks_name} in {self._cluster.region}"
        return asking(f"eks:{operation}", where, absent)


def undescribed(name: str) -> AddOn:
    """Make an add-on of which only the name is known."""
    return AddOn(name=name, version=None, status=None, settings_known=False)


def _name(item: object) -> str:
    if not isinstance(item, str):
        raise MalformedError(f"not a name but {item!r:.40}")
    return item
