"""Makes the readers of a cluster from its policy; each client is built when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from steward.clock import SystemClock
from steward.cluster.policy import ClusterPolicy, MetricsBackend
from steward.settings import Settings
from steward.sources.assumed_role import client_limits, session_for
from steward.sources.control_plane.reader import ControlPlaneReader, EksEndpoint
from steward.sources.kubernetes.eks_token import EksToken
from steward.sources.kubernetes.reader import KubernetesApi

if TYPE_CHECKING:
    import boto3
    from types_boto3_s3 import S3Client

    from steward.ports import (
        CheckpointReader,
        Clock,
        ClusterReader,
        KubernetesReader,
        MetricsReader,
    )


class ClusterSources:
    """Readers of the clusters that the policy names.

    Parameters
    ----------
    session : boto3.Session
        The function's own; a cluster's role is assumed with it.
    clock : Clock
        Times of what was read.
    settings : Settings
        With `local_endpoint`, Kubernetes and metrics are read through the rig, unsigned.
    """

    def __init__(self, session: boto3.Session, clock: Clock, settings: Settings) -> None:
        self._session = session
        self._clock = clock
        self._settings = settings
        self._readers: dict[str, _Readers] = {}

    def cluster(self, cluster: ClusterPolicy) -> ClusterReader:
        """Return the SageMaker and EKS reader."""
        return self._of(cluster).control_plane

    def kubernetes(self, cluster: ClusterPolicy) -> KubernetesReader:
        """Return the Kubernetes reader."""
        return self._of(cluster).kubernetes

    def metrics(self, cluster: ClusterPolicy) -> MetricsReader:
        """Return the metrics reader."""
        return self._of(cluster).metrics

    def checkpoints(self, cluster: ClusterPolicy) -> CheckpointReader:
        """Return a checkpoint reader for one tick; its connections outlive it."""
        return self._of(cluster).checkpoints()

    def _of(self, cluster: ClusterPolicy) -> _Readers:
        """Keep a cluster's readers: a warm function reuses connections and tokens."""
        if cluster.name not in self._readers:
            self._readers[cluster.name] = _Readers(
                cluster, self._session, self._clock, self._settings
            )
        return self._readers[cluster.name]


class _Readers:
    def __init__(
        self, cluster: ClusterPolicy, session: boto3.Session, clock: Clock, settings: Settings
    ) -> None:
        self._cluster = cluster
        self._base = session
        self._clock = clock
        self._local = settings.local_endpoint

    @cached_property
    def _session(self) -> boto3.Session:
        return session_for(self._cluster, self._base)

    @cached_property
    def control_plane(self) -> ControlPlaneReader:
        return ControlPlaneReader(self._cluster, self._base, self._clock)

    @cached_property
    def kubernetes(self) -> KubernetesApi:
        # The token's age is real time, also under the rig: signing is nobody's tick.
        token = EksToken(self._session, self._cluster.region, self._cluster.eks_name, SystemClock())
        return KubernetesApi(
            self._rigs_endpoint if self._local else self.control_plane.kubernetes_endpoint,
            token,
            self._clock,
            plain_http=bool(self._local),
        )

    def _rigs_endpoint(self) -> EksEndpoint:
        url = f"{self._local}/kubernetes"
        return EksEndpoint(endpoint=url, ca_data="", name=self._cluster.eks_name)

    @cached_property
    def metrics(self) -> MetricsReader:
        # Each backend is imported where the policy names it: nobody pays for the other.
        if self._cluster.metrics.backend is MetricsBackend.CONTAINER_INSIGHTS:
            return self._container_insights()
        return self._prometheus()

    def checkpoints(self) -> CheckpointReader:
        # Only a tick that saw a new preemption looks for checkpoints: no other pays for the import.
        from steward.sources.checkpoints import S3Checkpoints  # noqa: PLC0415 - see above

        return S3Checkpoints(lambda: self._storage, self._clock)

    @cached_property
    def _storage(self) -> S3Client:
        return self._session.client("s3", region_name=self._cluster.region, config=client_limits())

    def _container_insights(self) -> MetricsReader:
        from steward.sources.container_insights.reader import (  # noqa: PLC0415 - see metrics
            ContainerInsightsMetrics,
        )
        from steward.sources.container_insights.readings import Need  # noqa: PLC0415 - see metrics

        return ContainerInsightsMetrics(
            self._cluster.eks_name,
            self._cluster.region,
            lambda: self._session,
            interval_seconds=self._cluster.metrics.scrape_interval_seconds,
            need=Need.of(self._cluster),
        )

    def _prometheus(self) -> MetricsReader:
        from steward.sources.prometheus.reader import PrometheusMetrics  # noqa: PLC0415 - see metrics

        source = self._cluster.metrics
        signed = source.sigv4 and not self._local
        return PrometheusMetrics(
            f"{self._local}/prometheus" if self._local else source.endpoint,
            sigv4_region=self._cluster.region if signed else None,
            credentials=self._session.get_credentials,
            cluster_label=source.cluster_label,
            scrape_interval_seconds=source.scrape_interval_seconds,
        )
