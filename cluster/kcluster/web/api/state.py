"""The present state of clusters: the list of all, and the state of one.

Owns: these routes, the answer about a cluster.  Never: changes one (clusters.py, actions.py).
Kafka: kafka-topics --describe.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, structs

from kcluster.events.words import effect_text
from kcluster.handle.cluster import Cluster
from kcluster.operations.security_status import SecurityStatus
from kcluster.operations.status import BrokerStatus, PartitionStatus, ShapeStatus
from kcluster.web.call import ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.problems import PlacedProblem, wrong_parameters
from kcluster.web.routes import Runs, route
from kcluster.web.topics import topic_problem


class RuleInForce(Struct, frozen=True):
    """A rule of protocol faults.  `calls`: the requests that it was tested on; `hits`: the requests
    that it changed."""

    name: str
    text: str
    calls: int
    hits: int


class ClockBrief(Struct, frozen=True):
    """How a cluster's clock runs."""

    paused: bool
    speed: float


class ClusterAnswer(Struct, frozen=True):
    """A cluster and its state.  `lease`: None if it stays until it is deleted; `page`: empty if
    none is served; `without_effect`: configs in its topology that have no effect here;
    `controllers`: of a real Kafka, the state of each."""

    id: str
    name: str
    bootstrap: str
    seed: int
    lease: str | None
    cluster_id: str
    at_ms: int
    controller_id: int
    metadata_offset: int
    brokers: list[BrokerStatus]
    partitions: list[PartitionStatus]
    cuts: tuple[tuple[int, int], ...]
    sides: list[tuple[int, ...]]
    shapes: list[ShapeStatus]
    clients: dict[int, str]
    security: SecurityStatus | None
    controllers: dict[int, str]
    rules: list[RuleInForce]
    clock: ClockBrief
    page: str
    without_effect: tuple[str, ...]


class ClusterBrief(Struct, frozen=True):
    """A cluster in the list."""

    id: str
    name: str
    bootstrap: str
    lease: str | None


class ClusterList(Struct, frozen=True):
    """All clusters of the server."""

    clusters: list[ClusterBrief]


class ClusterParameters(Struct):
    """The part of a cluster to show."""

    topic: Annotated[
        str | None, Meta(description="Only the partitions of this topic; without it, all.")
    ] = None


@route("GET", "/v1/clusters", answer=ClusterList, runs=Runs.AT_ONCE)
def list_clusters(call: ApiCall) -> ClusterList:
    """The clusters of this server."""
    return ClusterList(
        [
            ClusterBrief(held.id, held.source.name, held.source.bootstrap, lease_text(held))
            for held in call.server.clusters.all()
            if isinstance(held.source, Cluster)
        ]
    )


@route(
    "GET",
    "/v1/clusters/<id>",
    query=ClusterParameters,
    answer=ClusterAnswer,
    errors=(404,),
    runs=Runs.AT_ONCE,
)
def show_cluster(call: ApiCall) -> ClusterAnswer:
    """The state of a cluster at this moment."""
    topic = call.query.topic
    if topic is not None and (problem := topic_problem(call.held.cluster, topic)):
        raise wrong_parameters([PlacedProblem("topic", problem)])
    return cluster_answer(call, call.held, topic)


def lease_text(held: HeldCluster) -> str | None:
    """The lease in a cluster's answer: `60s`."""
    return None if held.lease_s is None else f"{held.lease_s:g}s"


def cluster_answer(call: ApiCall, held: HeldCluster, topic: str | None = None) -> ClusterAnswer:
    """The answer about a cluster.  `topic`: the topic to whose partitions the answer is limited."""
    cluster = held.cluster
    status, clock = cluster.status(), cluster.driver.clock
    if topic is not None:
        of_topic = [one for one in status.partitions if one.topic == topic]
        status = structs.replace(status, partitions=of_topic)
    return ClusterAnswer(
        **structs.asdict(status),
        clock=ClockBrief(clock.is_paused, clock.speed),
        id=held.id,
        name=cluster.name,
        bootstrap=cluster.bootstrap,
        seed=cluster.seed,
        lease=lease_text(held),
        rules=[
            RuleInForce(rule.name, effect_text(rule.effect), rule.calls, rule.hits)
            for rule in cluster.rules()
        ],
        page=call.server.page_url(held.id),
        without_effect=cluster.topology.without_effect,
    )
