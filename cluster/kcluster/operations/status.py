"""The state of a cluster as values: brokers, partitions, notes.

Owns: the types that `Cluster.status()` and `Cluster.events()` return, and filling them.  Never:
changes anything.
Kafka: kafka-topics --describe, kafka-metadata-quorum; no single broker has this view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from kcluster.contract import Event, Note, NoteId
from kcluster.events.words import text_of
from kcluster.metadata.records import PartitionRegistration
from kcluster.network.fabric import Fabric
from kcluster.network.graph import parts_of
from kcluster.operations.controller import (
    controller_id,
    controller_image,
    metadata_log,
    partition_index,
)
from kcluster.operations.security_status import SecurityStatus, security_status
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher


class BrokerStatus(Struct, frozen=True):
    """One broker.  `state`: the state of its process: up, paused or down.  `fenced`: whether the
    controller has fenced it.  `kafka_version`: the release that it simulates."""

    id: int
    host: str
    port: int
    rack: str | None
    state: str
    fenced: bool
    kafka_version: str


class PartitionStatus(Struct, frozen=True):
    """One partition.  `leader`: None if it is offline.  `high_watermark`, `log_end_offset`: the
    leader's, None without a leader; `lag`: records behind the leader's log end, by follower."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    high_watermark: int | None
    log_end_offset: int | None
    lag: dict[int, int]


class ShapeStatus(Struct, frozen=True):
    """Links with equal impairments; `text`: the impairments."""

    links: tuple[tuple[int, int], ...]
    text: str


class ClusterStatus(Struct, frozen=True):
    """The cluster at one moment.  `sides`: groups of nodes that reach each other, a single one
    without cuts.  `shapes`: impaired links.  `clients`: names of nodes that are clients.
    `security`: null on a cluster without TLS, SASL and ACLs.  `controllers`: of a real Kafka, the
    state of each: `active`, `up`, `paused` or `down`; empty on a simulated cluster."""

    cluster_id: str
    at_ms: int
    controller_id: int
    metadata_offset: int
    brokers: list[BrokerStatus]
    partitions: list[PartitionStatus]
    cuts: tuple[tuple[int, int], ...]
    sides: list[tuple[int, ...]]
    shapes: list[ShapeStatus] = []
    clients: dict[int, str] = {}
    security: SecurityStatus | None = None
    controllers: dict[int, str] = {}


class NoteEntry(Struct, frozen=True):
    """A note with its place in the order of events; `sequence` counts from 1."""

    sequence: int
    note: Note

    @property
    def note_id(self) -> NoteId:
        return self.note.note_id

    @property
    def event(self) -> Event:
        """The event itself: one of the types in `kcluster.events`."""
        return self.note.event

    @property
    def kind(self) -> str:
        """The word for the event's type: `leader_elected`."""
        return self.note.event.kind

    @property
    def text(self) -> str:
        """The event and its cause in one line, for people."""
        return text_of(self.note.event)


def cluster_status(plan: Plan, dispatcher: Dispatcher) -> ClusterStatus:
    """The cluster's status, between two dispatches."""
    image = controller_image(dispatcher)
    partitions = [
        partition_status(name, registration, plan.disks, dispatcher)
        for name in sorted(image.topics)
        for registration in image.topics[name].partitions
    ]
    return ClusterStatus(
        cluster_id=plan.cluster_id,
        at_ms=dispatcher.now_ms,
        controller_id=controller_id(dispatcher),
        metadata_offset=image.offset,
        brokers=broker_statuses(plan, dispatcher),
        partitions=partitions,
        cuts=dispatcher.fabric.cuts,
        sides=parts_of(dispatcher.fabric),
        shapes=shapes_of(dispatcher.fabric),
        clients=dict(dispatcher.fabric.clients),
        security=security_status(plan, dispatcher, image, metadata_log(dispatcher).records),
    )


def broker_statuses(plan: Plan, dispatcher: Dispatcher) -> list[BrokerStatus]:
    """The brokers' part of the cluster's status."""
    image = controller_image(dispatcher)
    brokers = []
    for spec in sorted(plan.topology.brokers, key=lambda spec: spec.id):
        host, port = plan.addresses[spec.id]
        registration = image.brokers.get(spec.id)
        brokers.append(
            BrokerStatus(
                id=spec.id,
                host=host,
                port=port,
                rack=spec.rack,
                state=str(dispatcher.processes[spec.id].state),
                fenced=registration is None or registration.fenced,
                kafka_version=plan.releases[spec.id].name,
            )
        )
    return brokers


def partition_counts(dispatcher: Dispatcher) -> dict[str, int]:
    """The number of partitions of each topic, by name."""
    topics = controller_image(dispatcher).topics
    return {name: len(topics[name].partitions) for name in sorted(topics)}


def offline_partitions(dispatcher: Dispatcher) -> Iterator[tuple[str, PartitionRegistration]]:
    """(topic, partition) of each partition without a leader, by name and number."""
    image = controller_image(dispatcher)
    found = (
        (image.topic_names[topic_id], number)
        for topic_id, number in partition_index(dispatcher).leaderless
    )
    for topic, number in sorted(found):
        yield topic, image.topics[topic].partitions[number]


def shapes_of(fabric: Fabric) -> list[ShapeStatus]:
    """The impaired links, grouped by equal impairments."""
    links: dict[str, list[tuple[int, int]]] = {}
    for link in fabric.shaped:
        text = "; ".join(map(str, fabric.shapes_of(*link)))
        links.setdefault(text, []).append(link)
    return [ShapeStatus(tuple(found), text) for text, found in links.items()]


def partition_status(
    topic: str,
    registration: PartitionRegistration,
    disks: Mapping[int, Disk],
    dispatcher: Dispatcher,
) -> PartitionStatus:
    """A partition's status: offsets from the disks, the high watermark from the leader."""
    key = (registration.topic_id, registration.partition)
    leader = registration.leader if registration.leader >= 0 else None
    end_offset = high_watermark = None
    lag: dict[int, int] = {}
    if leader is not None and key in disks[leader].logs:
        end_offset = disks[leader].logs[key].log_end_offset
        high_watermark = _high_watermark(dispatcher.replica(leader, *key))
        for replica in registration.replicas:
            if replica != leader:
                log = disks[replica].logs.get(key)
                lag[replica] = max(0, end_offset - (0 if log is None else log.log_end_offset))
    return PartitionStatus(
        topic=topic,
        partition=registration.partition,
        leader=leader,
        leader_epoch=registration.leader_epoch,
        replicas=registration.replicas,
        isr=registration.isr,
        elr=registration.elr,
        high_watermark=high_watermark,
        log_end_offset=end_offset,
        lag=lag,
    )


def _high_watermark(leader: Replica | None) -> int | None:
    """The leader's high watermark; None while it is down or has not yet learned that it leads."""
    return leader.high_watermark if leader is not None and leader.is_leader else None
