"""Queues, cohorts and rows for the tests of quota: GPUs of one flavor where nothing else is said."""

from steward.cluster.kueue import ClusterQueue, Cohort, QuotaRow
from steward.cluster.quota import QuotaTree

P5, GPU = "ml.p5.48xlarge", "nvidia.com/gpu"


def row(nominal, borrow=None, lend=None, *, flavor=P5, resource=GPU, **changes):
    given = {"reserved": None, "used": None, "borrowed": None}
    return QuotaRow(
        flavor=flavor,
        resource=resource,
        nominal=nominal,
        borrowing_limit=borrow,
        lending_limit=lend,
        **(given | changes),
    )


def queue(name, *rows, cohort="pool", **changes):
    return ClusterQueue(name=name, cohort=cohort, rows=rows, **({"conditions": ()} | changes))


def cohort(name, *rows, parent=None):
    return Cohort(name=name, parent=parent, rows=rows)


def tree(*nodes, **usage):
    return QuotaTree(
        [node for node in nodes if isinstance(node, ClusterQueue)],
        [node for node in nodes if isinstance(node, Cohort)],
        P5,
        GPU,
        usage,
    )
