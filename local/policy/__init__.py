"""The policy file: read with its line numbers, checked, resolved, compiled to JSON, and explained.

The document (`layers/policy/governance.yaml` is an example) becomes the nouns of
:mod:`steward.cluster.policy` when the project is built; none of this runs in Lambda. botocore checks
neither patterns nor maxima, so the shapes of SageMaker's API (ComputeQuota, ClusterSchedulerConfig)
are checked here.
"""

from local.policy.faults import Fault, KeyPath, PolicyError, key_path, suggest
from local.policy.reading import load
from local.policy.resolving import resolve
from local.policy.schema import json_schema
from local.policy.thresholds import OVERRIDDEN, ThresholdsDocument

__all__ = [
    "OVERRIDDEN",
    "Fault",
    "KeyPath",
    "PolicyError",
    "ThresholdsDocument",
    "json_schema",
    "key_path",
    "load",
    "resolve",
    "suggest",
]
