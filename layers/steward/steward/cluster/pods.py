"""Pods that hold accelerators, and what of a cluster is carried from one hour to the next."""

from datetime import datetime

import msgspec

from steward.cluster.accelerators import Owner
from steward.cluster.control_plane import AddOn


class GpuPod(msgspec.Struct, frozen=True, kw_only=True):
    """A live pod that holds accelerators: bound to a node, not finished.

    Attributes
    ----------
    accelerators : int
        Whole accelerators or MIG slices that its containers request.
    resource : str
        For example `nvidia.com/gpu` or `nvidia.com/mig-3g.40gb`.
    since : datetime
        Start time of the pod, else its creation.
    owner : Owner
        Top owner, resolved through every controller that could be read; the pod itself if none.
    created_by : str or None
        Person or team that a label of the pod, else of one of its owners, names.
    """

    namespace: str
    name: str
    uid: str
    node: str
    accelerators: int
    resource: str
    since: datetime
    owner: Owner
    owner_chain: tuple[Owner, ...]
    labels: dict[str, str]
    created_by: str | None = None


class Hourly(msgspec.Struct, frozen=True, kw_only=True):
    """What only the last list of every namespace read, to be carried until the next.

    Attributes
    ----------
    governed : tuple of str
        Namespaces that were governed then.
    pods : tuple of GpuPod
        GPU pods outside of these.
    strangers : tuple of (namespace, pod)
        Pods outside that telemetry named then, and that did not exist.
    add_ons : tuple of AddOn, or None
        None where they could not be listed.
    """

    at: datetime
    governed: tuple[str, ...] = ()
    pods: tuple[GpuPod, ...] = ()
    strangers: tuple[tuple[str, str], ...] = ()
    add_ons: tuple[AddOn, ...] | None = None
