"""The metadata log's records, and the image that a node builds by applying them.

Owns: what a record is and what it does to an image.  Never: decides anything (elections.py,
placement.py do), knows a broker's runtime state.  Read by brokers (each applies the same records to
an image of its own, at its own offset), written by the controller alone.
Kafka: metadata/src/main/resources/common/metadata/*.json, MetadataImage, MetadataDelta.

Values inside an image (BrokerRegistration, PartitionRegistration) are frozen and shared by all
images, so ten thousand partitions on three brokers cost one set of them.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.contract import NoteId
from kcluster.protocol.features import ELR_VERSION

NO_LEADER: Final = -1

BROKER_RESOURCE: Final = 4
TOPIC_RESOURCE: Final = 2
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
"""Kafka's ConfigResource.Type codes."""

CLUSTER_DEFAULT: Final = ""
"""Resource name of cluster-wide dynamic broker configs."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whose a quota is: (`user`, `client-id` or `ip`, its name); None stands for all others."""


class BrokerRegistration(Struct, frozen=True):
    """A broker as the controller knows it.  Kafka: BrokerRegistration."""

    broker_id: int
    epoch: int
    """Offset of the registration record; a restarted broker gets a greater one."""
    host: str
    port: int
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    incarnation_id: bytes = b""
    """Drawn by the broker's process at its start: another one means that it was restarted."""

    @property
    def is_active(self) -> bool:
        """May be in an ISR and be elected (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown


class PartitionRegistration(Struct, frozen=True):
    """A partition as the controller knows it.  Kafka: PartitionRegistration."""

    topic_id: bytes
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """Broker id or NO_LEADER."""
    leader_epoch: int
    """One up at each change of leader, to another broker or to none.  An ISR shrink alone has not
    bumped it since 3.6 (KAFKA-15021)."""
    partition_epoch: int
    """One up at each change of anything."""
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False
    """LeaderRecoveryState.RECOVERING: elected unclean and not yet recovered (KIP-704)."""
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class TopicImage(Struct):
    """One topic of an image: `partitions[i]` is the registration of partition i."""

    name: str
    topic_id: bytes
    partitions: list[PartitionRegistration]


# ---------------------------------------------------------------------------------- records


class RegisterBrokerRecord(Struct, frozen=True):
    """A broker's process has registered; it is fenced until it has caught up."""

    registration: BrokerRegistration
    cause: NoteId | None = None


class BrokerRegistrationChangeRecord(Struct, frozen=True):
    """Fenced, unfenced, or going down in a controlled way.  None: no change."""

    broker_id: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    cause: NoteId | None = None


class UnregisterBrokerRecord(Struct, frozen=True):
    broker_id: int
    broker_epoch: int
    cause: NoteId | None = None


class TopicRecord(Struct, frozen=True):
    name: str
    topic_id: bytes
    cause: NoteId | None = None


class PartitionRecord(Struct, frozen=True):
    """A partition's whole state after creation or change.  Kafka writes only the changed fields
    (PartitionChangeRecord); the whole frozen value is shared here, so it costs less than a diff."""

    registration: PartitionRegistration
    cause: NoteId | None = None


class RemoveTopicRecord(Struct, frozen=True):
    topic_id: bytes
    cause: NoteId | None = None


class ConfigRecord(Struct, frozen=True):
    """`value` None removes the config."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None
    cause: NoteId | None = None


class ProducerIdsRecord(Struct, frozen=True):
    """Producer ids below `next_producer_id` have been handed out to brokers in blocks."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int
    cause: NoteId | None = None


class FeatureLevelRecord(Struct, frozen=True):
    """`level` 0: the feature is off."""

    name: str
    level: int
    cause: NoteId | None = None


class ClientQuotaRecord(Struct, frozen=True):
    """`value` None removes the quota `key` of `entity`."""

    entity: QuotaEntity
    key: str
    value: float | None
    cause: NoteId | None = None


class UserScramCredentialRecord(Struct, frozen=True):
    """What a user's password is checked against (RFC 5802); the password itself is never known."""

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    cause: NoteId | None = None


class RemoveUserScramCredentialRecord(Struct, frozen=True):
    name: str
    mechanism: int
    cause: NoteId | None = None


MetadataRecord = (
    RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
)


class Envelope(Struct, gc=False):
    """A client's request to the controller, where it matters whose it is.  Kafka: KIP-590.

    `is_strict`: new enough to be refused for its client's controller_mutation_rate.
    """

    body: Any
    client_id: str
    is_strict: bool


# ------------------------------------------------------------- brokers pull the log with these


class MetadataFetch(Struct, gc=False):
    """A broker asks the controller for records from `offset` on; the answer waits until there
    are some, `max_wait_ms` at most.  Kafka: Fetch of __cluster_metadata by an observer."""

    broker_id: int
    offset: int
    max_wait_ms: int


class MetadataFetchResponse(Struct, gc=False):
    """`records[i]` has offset `first_offset + i`.  Empty when the wait ended without news."""

    first_offset: int
    records: list[MetadataRecord]


# -------------------------------------------------------------------------------------- image


class MetadataImage:
    """The cluster as of metadata offset `offset` (of the last record applied; -1 for none)."""

    __slots__ = (
        "brokers", "client_quotas", "configs", "features", "next_producer_id", "offset",
        "scram_credentials", "topic_names", "topics",
    )  # fmt: skip

    def __init__(self) -> None:
        self.offset = -1
        self.brokers: dict[int, BrokerRegistration] = {}
        self.topics: dict[str, TopicImage] = {}
        self.topic_names: dict[bytes, str] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        """By (resource type, resource name): only what was set, as strings."""
        self.next_producer_id = 0
        self.features: dict[str, int] = {}
        """By name, the level in force; a feature that is off (level 0) is not in it."""
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        """By user and mechanism."""

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def is_active(self, broker_id: int) -> bool:
        """Registered, unfenced and not in controlled shutdown: may lead and be in an ISR."""
        registration = self.brokers.get(broker_id)
        return registration is not None and registration.is_active

    @property
    def elr_enabled(self) -> bool:
        """Whether ELRs are kept: eligible.leader.replicas.version is 1 (KIP-966)."""
        return ELR_VERSION in self.features

    def partition(self, topic: str, partition: int) -> PartitionRegistration | None:
        image = self.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        return image.partitions[partition]

    def topic_configs(self, topic: str) -> dict[str, str]:
        """The configs set on the topic itself, by Kafka's names."""
        return self.configs.get((TOPIC_RESOURCE, topic), {})

    def apply(self, record: MetadataRecord) -> None:
        """Apply the record at offset `self.offset + 1`."""
        self.offset += 1
        match record:
            case PartitionRecord(registration=new):
                partitions = self.topics[self.topic_names[new.topic_id]].partitions
                if new.partition == len(partitions):
                    partitions.append(new)
                else:
                    partitions[new.partition] = new
            case RegisterBrokerRecord(registration=registration):
                self.brokers[registration.broker_id] = registration
            case BrokerRegistrationChangeRecord():
                self._change_broker(record)
            case UnregisterBrokerRecord(broker_id=broker_id):
                del self.brokers[broker_id]
            case TopicRecord(name=name, topic_id=topic_id):
                self.topics[name] = TopicImage(name, topic_id, [])
                self.topic_names[topic_id] = name
            case RemoveTopicRecord(topic_id=topic_id):
                name = self.topic_names.pop(topic_id)
                del self.topics[name]
                self.configs.pop((TOPIC_RESOURCE, name), None)
            case ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value):
                self._set_config((kind, resource), name, value)
            case ProducerIdsRecord(next_producer_id=next_producer_id):
                self.next_producer_id = next_producer_id
            case FeatureLevelRecord(name=name, level=level):
                self.features.pop(name, None)
                if level:
                    self.features[name] = level
            case ClientQuotaRecord(entity=entity, key=key, value=quota):
                self._set_quota(entity, key, quota)
            case UserScramCredentialRecord(name=name, mechanism=mechanism):
                self.scram_credentials[name, mechanism] = record
            case RemoveUserScramCredentialRecord(name=name, mechanism=mechanism):
                del self.scram_credentials[name, mechanism]

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        old = self.brokers[record.broker_id]
        assert old.epoch == record.broker_epoch, (old, record)
        self.brokers[record.broker_id] = replace(
            old,
            fenced=old.fenced if record.fenced is None else record.fenced,
            in_controlled_shutdown=old.in_controlled_shutdown
            if record.in_controlled_shutdown is None
            else record.in_controlled_shutdown,
        )

    def _set_config(self, resource: tuple[int, str], name: str, value: str | None) -> None:
        configs = self.configs.setdefault(resource, {})
        if value is None:
            configs.pop(name, None)
            if not configs:
                del self.configs[resource]
        else:
            configs[name] = value

    def _set_quota(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        quotas = self.client_quotas.setdefault(entity, {})
        if value is None:
            quotas.pop(key, None)
            if not quotas:
                del self.client_quotas[entity]
        else:
            quotas[key] = value
