"""A pod that holds accelerators: what the steward keeps of it."""

from datetime import datetime

import msgspec

from steward.cluster.accelerators import Owner


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


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """GPU pods outside governed namespaces, as the last list of every namespace showed them.

    Attributes
    ----------
    governed : tuple of str
        Namespaces that were governed then.
    strangers : tuple of (namespace, pod)
        Pods outside that telemetry named then, and that did not exist.
    """

    at: datetime
    governed: tuple[str, ...] = ()
    pods: tuple[GpuPod, ...] = ()
    strangers: tuple[tuple[str, str], ...] = ()
