"""Checkpoint locations of the policy: filled in for a job, and found again from an object's key."""

import re
from collections.abc import Iterator
from copy import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from steward.cluster.policy import CheckpointLocation, Policy, Team

S3 = "s3://"
TEAM, NAMESPACE, JOB = "{team}", "{namespace}", "{job}"

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"


class Job(NamedTuple):
    """Whose a checkpoint is: a name in a namespace of a cluster."""

    cluster: str
    namespace: str
    name: str


def of_namespace(location: CheckpointLocation, team: Team, namespace: str) -> CheckpointLocation:
    """Fill in everything but `{job}`."""
    uri = location.uri.replace(TEAM, team.name).replace(NAMESPACE, namespace)
    return replace(location, uri=uri)


def of_job(location: CheckpointLocation, job: str) -> str:
    """Name a location for people, once everything else is filled in."""
    return location.uri.replace(JOB, job)


class MarkedPlaces:
    """Every location with a marker, to tell whose checkpoint an object completes."""

    def __init__(self, policy: Policy) -> None:
        self._places = tuple(_places(policy))

    def jobs(self, bucket: str, key: str) -> tuple[Job, ...]:
        """Tell whose checkpoint an object marks as complete; nobody's where it is no marker.

        Several, where locations overlap, or where one without `{namespace}` is of a team with
        several namespaces: which of them the job is in cannot be told from the key.
        """
        uri = f"{S3}{bucket}/{key}"
        found = {
            Job(place.cluster, namespace, match["job"])
            for place in self._places
            if fnmatchcase(key.rpartition("/")[2], place.marker)
            and (match := place.pattern.fullmatch(uri))
            for namespace in place.namespaces
        }
        return tuple(sorted(found))


class _Place(NamedTuple):
    cluster: str
    namespaces: tuple[str, ...]
    marker: str
    pattern: re.Pattern[str]


def _places(policy: Policy) -> Iterator[_Place]:
    for cluster in policy.clusters:
        for team in cluster.teams:
            for location in team.checkpoints:
                if location.marker is None or not location.uri.startswith(S3):
                    continue
                named = NAMESPACE in location.uri
                for namespaces in (
                    [(one,) for one in team.namespaces] if named else [team.namespaces]
                ):
                    filled = of_namespace(location, team, namespaces[0])
                    yield _Place(cluster.name, namespaces, location.marker, _pattern(filled.uri))


def _pattern(uri: str) -> re.Pattern[str]:
    """Match the objects of a location; a job that it does not name is the folder below it."""
    folder = uri if uri.endswith("/") else f"{uri}/"
    first, *rest = (re.escape(part) for part in folder.split(JOB))
    if not rest:
        return re.compile(f"{first}(?P<job>{_NAME})/.+")
    return re.compile(f"{first}(?P<job>{_NAME}){'(?P=job)'.join(rest)}.+")
