"""What the `capacity` detector carries from one evaluation to the next."""

from datetime import datetime

import msgspec

from steward.cluster.incidents import Told


class KnownNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with accelerators, as Kubernetes last showed it.

    Attributes
    ----------
    group : str or None
        Its HyperPod instance group; None for a node that is no HyperPod instance.
    labels : dict of str to str
        Those that ResourceFlavors go by.
    gone : datetime or None
        The first snapshot that no longer showed it; None while it is there.
    """

    name: str
    group: str | None
    instance_type: str | None
    accelerators: float
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    gone: datetime | None = None


class CapacityMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `capacity` detector's part of the memory.

    Attributes
    ----------
    nodes : tuple of KnownNode
        Those that are there, and those that are gone while their group still wants them; for a day
        also those of which nobody says so.
    joining : dict of str to datetime
        Node name to when its instance was first seen running without being a node.
    settled : dict of str to datetime
        Instance group to when it was last known to be complete: errors before that are over.
    """

    told: tuple[Told, ...] = ()
    nodes: tuple[KnownNode, ...] = ()
    joining: dict[str, datetime] = msgspec.field(default_factory=dict)
    settled: dict[str, datetime] = msgspec.field(default_factory=dict)
