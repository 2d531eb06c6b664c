"""How severities compare."""

from steward.cluster.policy import Severity

_RANK = {Severity.INFO: 0, Severity.WARN: 1, Severity.PAGE: 2}


def rank(severity: Severity | str) -> int:
    """Give a severity a number: the higher, the louder."""
    return _RANK[Severity(severity)]
