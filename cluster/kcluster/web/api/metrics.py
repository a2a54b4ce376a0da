"""Metrics in Prometheus' text format.

Owns: these routes.  Never: counts (web/metrics/).
Kafka: the JMX exporter beside each broker.
"""

from __future__ import annotations

from typing import Final

from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.metrics.exposition import exposition
from kcluster.web.metrics.reading import EventCounts, Sample, read_samples
from kcluster.web.routes import PLAIN, route

FORMAT: Final = f"{PLAIN}; version=0.0.4; charset=utf-8"


@route("GET", "/metrics", answer=PLAIN)
def show_metrics(call: ApiCall) -> ApiAnswer:
    """The metrics of all clusters, under the names that Kafka's have in Prometheus."""
    found = {}
    for held in call.server.clusters.all():
        if isinstance(held.source, Cluster):
            try:
                found[held.id] = samples_of(held)
            except ClusterError:
                continue  # the cluster has just stopped
    return ApiAnswer(body=exposition(found), media_type=FORMAT)


@route("GET", "/v1/clusters/<id>/metrics", answer=PLAIN, errors=(404, 409))
def show_cluster_metrics(call: ApiCall) -> ApiAnswer:
    """The metrics of one cluster."""
    held = call.held
    return ApiAnswer(body=exposition({held.id: samples_of(held)}), media_type=FORMAT)


def samples_of(held: HeldCluster) -> list[Sample]:
    """The samples of a cluster now."""
    cluster = held.cluster
    counts = held.part(EventCounts, EventCounts)
    counts.count(cluster.events(counts.counted))
    return cluster.call(lambda: read_samples(cluster, counts))
