"""Which namespaces task governance governs, and which queues are a team's."""

from collections.abc import Collection, Mapping

MANAGED = "sagemaker.amazonaws.com/sagemaker-managed-queue"
ALLOCATION = "sagemaker.amazonaws.com/quota-allocation-id"


def governed(
    namespaces: Mapping[str, Mapping[str, str]] | None, policy: Collection[str]
) -> frozenset[str]:
    """Name the governed namespaces: the policy's, and those that HyperPod's labels mark.

    Parameters
    ----------
    namespaces : mapping of str to mapping, or None
        Name to labels; None where they could not be listed: then only the policy tells.
    policy : collection of str
        Namespaces of the policy's teams.
    """
    marked = (
        name
        for name, labels in (namespaces or {}).items()
        if labels.get(MANAGED) == "true" or labels.get(ALLOCATION)
    )
    return frozenset(policy) | frozenset(marked)
