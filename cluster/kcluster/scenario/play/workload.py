"""The workload's clients, from their specs in a scenario.

Owns: turning ProducerSpec and ConsumerSpec into clients.  Never: runs them (the stage does).
Kafka: the producer and consumer that a program would create with these configs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from msgspec import structs

from kcluster.clients.consumer.consumer import Consumer
from kcluster.clients.consumer.settings import NEVER, READ_COMMITTED, ConsumerPlan, ConsumerSettings
from kcluster.clients.ledger import Ledger, Partition
from kcluster.clients.processor import Processor
from kcluster.clients.producer.producer import Producer, TransactionalProducer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings, TransactionPlan
from kcluster.clients.share_consumer import ShareConsumer
from kcluster.config.topology.client_access import access_of
from kcluster.config.topology.model import Topology
from kcluster.scenario.language.client_configs import ClientSettings, defaults_of, pace_of, paced
from kcluster.scenario.language.model import (
    ConsumerSpec,
    ProcessorSpec,
    ProducerSpec,
    TransactionSpec,
    WorkloadSpec,
)
from kcluster.scenario.play.client_process import ProcessedClient
from kcluster.security.client_access import ClientAccess

_DIRECT: Final = {
    "idempotent": "enable_idempotence",
    "retries": "retries",
    "linger_ms": "linger_ms",
    "in_flight": "max_in_flight_requests_per_connection",
    "request_timeout_ms": "request_timeout_ms",
    "delivery_timeout_ms": "delivery_timeout_ms",
    "retry_backoff_ms": "retry_backoff_ms",
    "batch_size_bytes": "batch_size_bytes",
}
"""The settings that a producer's keys in a scenario file set, by key."""


class WorkloadConsumer(ProcessedClient, Protocol):
    """A consumer of the workload."""

    plan: ConsumerPlan
    settings: ConsumerSettings

    @property
    def failed(self) -> str:
        """The error that ended the consumer; "" for none."""

    @property
    def is_idle(self) -> bool:
        """Whether the application has nothing left to do with the records that it has read."""

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """The assigned partitions."""

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record; -1 if there is no position."""

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The newest leader epoch that the consumer has seen; NO_EPOCH if it has seen none."""


def make_clients(
    workload: WorkloadSpec, profile: str, ledger: Ledger
) -> tuple[list[Producer], list[WorkloadConsumer]]:
    """All clients of a workload."""
    producers: list[Producer] = [
        make_producer(spec, profile, ledger) for spec in workload.producers
    ]
    consumers: list[WorkloadConsumer] = [
        consumer for spec in workload.consumers for consumer in make_readers(spec, profile, ledger)
    ]
    for processor in workload.processors:
        consumers += make_processors(processor, profile, ledger)
    return producers, consumers


def client_accesses(workload: WorkloadSpec, topology: Topology) -> dict[str, ClientAccess]:
    """How each client comes in, by its name."""
    return {name: access_of_spec(spec, topology) for spec, name in _named(workload)}


def access_of_spec(
    spec: ProducerSpec | ConsumerSpec | ProcessorSpec, topology: Topology
) -> ClientAccess:
    """How a spec's clients come in."""
    return access_of(topology, spec.user, spec.listener)


def client_names(workload: WorkloadSpec) -> list[str]:
    """The names of all clients of a workload."""
    return [name for _, name in _named(workload)]


def _named(
    workload: WorkloadSpec,
) -> Iterator[tuple[ProducerSpec | ConsumerSpec | ProcessorSpec, str]]:
    """Each client's spec and name."""
    for producer in workload.producers:
        yield producer, producer.name
    readers: list[ConsumerSpec | ProcessorSpec] = [*workload.consumers, *workload.processors]
    for spec in readers:
        for name in names_of_members(spec.name, spec.members):
            yield spec, name


def producer_settings(spec: ProducerSpec, profile: str) -> ProducerSettings:
    """The profile's defaults, overridden by `config`, then by the producer's own keys."""
    values: ClientSettings = defaults_of(ProducerSettings, profile)
    if spec.transactions is not None:
        values["transactional_id"] = spec.transactions.id or spec.name
        if spec.transactions.timeout_ms is not None:
            values["transaction_timeout_ms"] = spec.transactions.timeout_ms
    values |= spec.config
    if "acks" not in spec.config:
        values["acks"] = -1 if spec.acks == "all" else int(spec.acks)
    for key, field in _DIRECT.items():
        value = getattr(spec, key)
        if value is not None:
            values[field] = value
    settings = structs.replace(ProducerSettings(), **values)
    shortest_ms = settings.linger_ms + settings.request_timeout_ms
    if "delivery_timeout_ms" not in spec.config and spec.delivery_timeout_ms is None:
        # Like Kafka for an unset value, raise it to the minimum.
        values["delivery_timeout_ms"] = max(settings.delivery_timeout_ms, shortest_ms)
    return paced(structs.replace(ProducerSettings(), **values), profile)


def make_producer(spec: ProducerSpec, profile: str, ledger: Ledger) -> Producer:
    """A producer and its application."""
    plan = ProducerPlan(
        topics=(spec.topic,),
        partitions=() if spec.partition is None else (spec.partition,),
        rate_per_s=spec.rate_per_s,
        size_bytes=spec.size_bytes,
        keys=spec.keys,
        tombstone_share=spec.tombstones,
        count=-1 if spec.count is None else spec.count,
        start_ms=spec.start_ms * pace_of(profile),
        stop_ms=-1 if spec.stop_ms is None else spec.stop_ms * pace_of(profile),
        transactions=transaction_plan(spec.transactions),
    )
    settings = producer_settings(spec, profile)
    if plan.transactions is not None:
        return TransactionalProducer(spec.name, ledger, plan, settings)
    return Producer(spec.name, ledger, plan, settings)


def transaction_plan(spec: TransactionSpec | None) -> TransactionPlan | None:
    """The plan by which an application uses transactions; None if it uses none."""
    if spec is None:
        return None
    return TransactionPlan(every=spec.every, abort_share=spec.abort, max_version=int(spec.version))


def consumer_settings(spec: ConsumerSpec, profile: str) -> ConsumerSettings:
    """The profile's defaults, overridden by `config`, then by the spec's own keys."""
    values: ClientSettings = defaults_of(ConsumerSettings, profile)
    values |= {
        "group_id": spec.group or "",
        "auto_offset_reset": spec.reset,
        "isolation_level": spec.isolation,
        "client_rack": spec.rack or "",
        "group_protocol": spec.group_protocol,
    }
    return paced(structs.replace(ConsumerSettings(), **(values | spec.config)), profile)


def consumer_plan(spec: ConsumerSpec, settings: ConsumerSettings, profile: str) -> ConsumerPlan:
    """The plan of a consumer's application."""
    return ConsumerPlan(
        topics=spec.topics,
        by_pattern=spec.by_pattern,
        partitions=spec.partitions,
        commit=spec.commit if settings.group_id else NEVER,
        start_ms=spec.start_ms * pace_of(profile),
        stop_ms=-1 if spec.stop_ms is None else spec.stop_ms * pace_of(profile),
    )


def processor_plans(
    spec: ProcessorSpec, name: str, profile: str
) -> tuple[tuple[ConsumerPlan, ConsumerSettings], tuple[ProducerPlan, ProducerSettings]]:
    """A processor's plans and settings: for reading, and for writing."""
    reads: ClientSettings = defaults_of(ConsumerSettings, profile) | {
        "group_id": spec.group,
        "auto_offset_reset": "earliest",
        "isolation_level": READ_COMMITTED,
        "group_protocol": spec.group_protocol,
    }
    consumer_plan = ConsumerPlan(
        topics=(spec.topic,), commit=NEVER, start_ms=spec.start_ms * pace_of(profile)
    )
    writes: ClientSettings = defaults_of(ProducerSettings, profile) | {"transactional_id": name}
    if spec.timeout_ms is not None:
        writes["transaction_timeout_ms"] = spec.timeout_ms
    reader = structs.replace(ConsumerSettings(), **(reads | spec.consumer_config))
    writer = structs.replace(ProducerSettings(), **(writes | spec.producer_config))
    producer_plan = ProducerPlan(
        topics=(spec.to,),
        start_ms=spec.start_ms * pace_of(profile),
        transactions=TransactionPlan(abort_share=spec.abort, max_version=int(spec.version)),
    )
    return ((consumer_plan, paced(reader, profile)), (producer_plan, paced(writer, profile)))


def make_processors(spec: ProcessorSpec, profile: str, ledger: Ledger) -> list[Processor]:
    """The processors of a spec; several are called name-1, name-2, ..."""
    names = names_of_members(spec.name, spec.members)
    return [Processor(name, ledger, *processor_plans(spec, name, profile)) for name in names]


def make_readers(spec: ConsumerSpec, profile: str, ledger: Ledger) -> list[WorkloadConsumer]:
    """The consumers, or share consumers, of a spec."""
    if not spec.share:
        return [*make_consumers(spec, profile, ledger)]
    settings = consumer_settings(spec, profile)
    plan = consumer_plan(spec, settings, profile)
    return [
        ShareConsumer(name, ledger, plan, settings, spec.release, spec.renew)
        for name in names_of_members(spec.name, spec.members)
    ]


def names_of_members(name: str, members: int) -> list[str]:
    """The names of the members: a single member has the name itself; several are called name-1,
    name-2, ..."""
    if members == 1:
        return [name]
    return [f"{name}-{number}" for number in range(1, members + 1)]


def make_consumers(spec: ConsumerSpec, profile: str, ledger: Ledger) -> list[Consumer]:
    """The consumers of a spec; several are called name-1, name-2, ..."""
    settings = consumer_settings(spec, profile)
    plan = consumer_plan(spec, settings, profile)
    names = names_of_members(spec.name, spec.members)
    return [Consumer(name, ledger, plan, settings) for name in names]
