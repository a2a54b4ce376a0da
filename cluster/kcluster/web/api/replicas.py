"""The replicas of a partition, and any moment of the past.

Owns: these routes.  Never: reads a log itself (operations/logs.py, runs/moment.py).
Kafka: kafka-dump-log on each broker, with kafka-topics --describe beside it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.operations.logs import PartitionLogs
from kcluster.operations.names import partition_in
from kcluster.runs.moment import ClusterMoment, moment_of
from kcluster.web.call import ApiCall
from kcluster.web.problems import not_found
from kcluster.web.routes import Runs, route


@route(
    "GET",
    "/v1/clusters/<id>/replicas/<partition>",
    answer=PartitionLogs,
    errors=(404, 409),
    runs=Runs.AT_ONCE,
)
def show_replicas(call: ApiCall) -> PartitionLogs:
    """The log of each replica of a partition, such as orders-0: where it ends, its leader epochs,
    how it compares with the leader's."""
    cluster = call.held.cluster
    try:
        return cluster.logs(*partition_in(call.named["partition"]))
    except ClusterError as error:
        raise not_found(str(error)) from None


class MomentParameters(Struct):
    """The moment to show."""

    ms: Annotated[int, Meta(description="On the cluster's clock; 0 or less: ms before now.")]


@route(
    "GET", "/v1/clusters/<id>/at", query=MomentParameters, answer=ClusterMoment, errors=(404, 409)
)
def show_moment(call: ApiCall) -> ClusterMoment:
    """A moment of the past: brokers, links, replicas, clients, groups and transactions."""
    held, at_ms = call.held, call.query.ms
    if at_ms <= 0:
        at_ms += held.source.clock().now_ms
    source = held.source
    return source.moment(at_ms) if isinstance(source, Cluster) else moment_of(source.record, at_ms)
