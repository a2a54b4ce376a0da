"""What nodes make of the metadata log: their images, and the configs in force.

Owns: a replay of the log in plain tables, and the comparison of a node with it.  Never: changes a
node; decides when to look (watch.py).  Kafka: MetadataImage, BrokerMetadataPublisher,
DynamicBrokerConfig.

    metadata-differs    a node that has applied the whole log has another topic, partition, broker,
                        config, feature or quota than the log gives
    config-differs      a broker, a replica or the controller does not use the configs that its
                        metadata gives

A node that is behind the log is not compared until it has caught up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct, structs

from kcluster.broker.node_view import BrokerNodeView
from kcluster.config.kafka.definitions import TOPIC_CONFIGS, TopicConfig
from kcluster.config.kafka.values import known_configs
from kcluster.controller.node_view import ControllerNodeView
from kcluster.invariants.facts import HeldDiffers
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

_MIN_ISR: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"

Place = tuple[str, int]
"""(topic, partition)."""
Differing = tuple[str, HeldDiffers]
"""(name of the violation, what was observed)."""
K = TypeVar("K")
V = TypeVar("V")

MOST_PARTITIONS: Final = 2_000
"""In a larger cluster nothing is compared, because each look would take long."""


class ReplayedMetadata:
    """The cluster that the records of a metadata log give.  `offset`: of the last replayed
    record."""

    def __init__(self) -> None:
        self.offset = -1
        self._topic_ids: dict[bytes, str] = {}
        self.topics: dict[str, bytes] = {}
        self.partitions: dict[Place, PartitionRegistration] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.configs: dict[tuple[int, str, str], str] = {}
        """Values by (resource type, resource name, name of the config)."""
        self.features: dict[str, int] = {}
        self.quotas: dict[tuple[QuotaEntity, str], float] = {}
        self.next_producer_id = 0

    def follow(self, records: Sequence[MetadataRecord]) -> None:
        """Replay the records of the log that are new."""
        for record in records[self.offset + 1 :]:
            self._replay(record)
        self.offset = len(records) - 1

    def _replay(self, record: MetadataRecord) -> None:
        match record:
            case PartitionRecord(registration=one):
                self.partitions[self._topic_ids[one.topic_id], one.partition] = one
            case RegisterBrokerRecord(registration=one):
                self.brokers[one.broker_id] = one
            case BrokerRegistrationChangeRecord(broker_id=broker):
                self.brokers[broker] = _changed(self.brokers[broker], record)
            case UnregisterBrokerRecord(broker_id=broker):
                del self.brokers[broker]
            case TopicRecord(name=name, topic_id=topic_id):
                self._topic_ids[topic_id] = name
                self.topics[name] = topic_id
            case RemoveTopicRecord(topic_id=topic_id):
                self._remove(self._topic_ids.pop(topic_id))
            case ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value):
                _put(self.configs, (kind, resource, name), value)
            case FeatureLevelRecord(name=name, level=level):
                _put(self.features, name, level or None)
            case ClientQuotaRecord(entity=entity, key=key, value=quota):
                _put(self.quotas, (entity, key), quota)
            case ProducerIdsRecord(next_producer_id=next_producer_id):
                self.next_producer_id = next_producer_id
            case _:
                pass

    def _remove(self, topic: str) -> None:
        del self.topics[topic]
        for place in [place for place in self.partitions if place[0] == topic]:
            del self.partitions[place]
        for key in [key for key in self.configs if key[:2] == (TOPIC_RESOURCE, topic)]:
            del self.configs[key]

    def configs_of(self, kind: int, resource: str) -> dict[str, str]:
        """The configs that are set on a resource."""
        return {key[2]: text for key, text in self.configs.items() if key[:2] == (kind, resource)}


def _put(table: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _changed(
    registration: BrokerRegistration, change: BrokerRegistrationChangeRecord
) -> BrokerRegistration:
    named = {"fenced": change.fenced, "in_controlled_shutdown": change.in_controlled_shutdown}
    return structs.replace(registration, **{k: v for k, v in named.items() if v is not None})


def image_differences(image: MetadataImage, replayed: ReplayedMetadata) -> Iterator[Differing]:
    """The first difference between an image at the end of the log and what the log gives."""
    if image.offset != replayed.offset or len(replayed.partitions) > MOST_PARTITIONS:
        return
    for what, found in _compared(image, replayed):
        if found is not None:
            key, held, due = found
            yield "metadata-differs", _differs(f"{what} {_text(key)}", held, due)
            return


_OtherValue = tuple[object, object, object]
"""(key, held, due) of a table's entry that differs from the log; None for no entry."""


def _first(held: Mapping[K, V], due: Mapping[K, V]) -> _OtherValue | None:
    """The first entry that differs."""
    if held == due:
        return None
    key = next(key for key in (*held, *due) if held.get(key) != due.get(key))
    return key, held.get(key), due.get(key)


def _compared(
    image: MetadataImage, replayed: ReplayedMetadata
) -> Iterator[tuple[str, _OtherValue | None]]:
    topic_ids = {name: topic.topic_id for name, topic in image.topics.items()}
    yield "topic", _first(topic_ids, replayed.topics)
    partitions = {
        (name, number): one
        for name, topic in image.topics.items()
        for number, one in enumerate(topic.partitions)
    }
    yield "partition", _first(partitions, replayed.partitions)
    yield "broker", _first(image.brokers, replayed.brokers)
    yield "feature", _first(image.features, replayed.features)
    configs = {
        (kind, resource, name): text
        for (kind, resource), values in image.configs.items()
        for name, text in values.items()
    }
    yield "config", _first(configs, replayed.configs)
    quotas = {
        (entity, key): quota
        for entity, values in image.client_quotas.items()
        for key, quota in values.items()
    }
    yield "quota", _first(quotas, replayed.quotas)
    next_ids = {"next": image.next_producer_id}
    yield "producer id", _first(next_ids, {"next": replayed.next_producer_id})


def _text(key: object) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _differs(what: str, held: object, due: object) -> HeldDiffers:
    """The first field in which two values of one type differ; if there is none, the values."""
    if isinstance(held, Struct) and type(held) is type(due):
        for field in held.__struct_fields__:
            own, other = getattr(held, field), getattr(due, field)
            if own != other:
                return HeldDiffers(what, field, str(own), str(other))
    return HeldDiffers(what, "", "" if held is None else str(held), "" if due is None else str(due))


# ------------------------------------------------------------------------------- configs in force


def broker_differences(node: BrokerNodeView, replayed: ReplayedMetadata) -> Iterator[Differing]:
    """The first config of a broker, or of one of its replicas, that differs from the log."""
    view = node.view
    if node.image.offset != replayed.offset or len(replayed.partitions) > MOST_PARTITIONS:
        return
    due = view.static_config.override(
        replayed.configs_of(BROKER_RESOURCE, CLUSTER_DEFAULT),
        replayed.configs_of(BROKER_RESOURCE, str(node.node_id)),
        release=view.release.number,
    )
    if node.config not in (due, due.capped()):
        yield "config-differs", _differs(f"broker {node.node_id}", node.config, due)
        return
    of_topics: dict[str, TopicConfig] = {}
    for replica in node.replicas.all():
        topic = replica.topic
        if replayed.topics.get(topic) != replica.topic_id:
            continue
        config = of_topics.get(topic)
        if config is None:
            own = replayed.configs_of(TOPIC_RESOURCE, topic)
            own = known_configs(TOPIC_CONFIGS, own, view.release.number)
            config = of_topics[topic] = TopicConfig.resolve(node.config, own)
        if replica.config != config:
            yield "config-differs", _differs(replica.name, replica.config, config)
            return


def controller_differences(
    node: ControllerNodeView, replayed: ReplayedMetadata
) -> Iterator[Differing]:
    """The first topic whose min.insync.replicas, or unclean.leader.election.enable, the controller
    does not take from the log."""
    if node.image.offset != replayed.offset:
        return
    config = node.config.override(replayed.configs_of(BROKER_RESOURCE, CLUSTER_DEFAULT))
    for topic in replayed.topics:
        first = replayed.partitions.get((topic, 0))
        if first is None:
            continue
        own = replayed.configs.get((TOPIC_RESOURCE, topic, _MIN_ISR))
        wanted = config.min_insync_replicas if own is None else int(own)
        held, due = node.partitions.min_isr(topic), min(wanted, len(first.replicas))
        if held != due:
            what = f"{_MIN_ISR} of {topic} at the controller"
            yield "config-differs", HeldDiffers(what, "", str(held), str(due))
            return
        own = replayed.configs.get((TOPIC_RESOURCE, topic, _UNCLEAN))
        is_due = own.strip().lower() == "true" if own else config.unclean_leader_election_enable
        is_held = node.partitions.unclean_allowed(topic)
        if is_held != is_due:
            what = f"{_UNCLEAN} of {topic} at the controller"
            yield "config-differs", HeldDiffers(what, "", str(is_held), str(is_due))
            return
