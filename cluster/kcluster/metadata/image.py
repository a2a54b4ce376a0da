"""The metadata image: the state of the cluster that a node builds by applying records.

Owns: the effect of each record on an image.  Never: decides anything (controller/ does), knows a
broker's runtime state.  Every broker applies the same records to its own image, up to its own
offset. Kafka: MetadataImage, MetadataDelta.

Values inside an image (BrokerRegistration, PartitionRegistration) are frozen and shared by all
images, so ten thousand partitions on three brokers cost one set of them.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kcluster.metadata.records import (
    TOPIC_RESOURCE,
    AccessControlEntryRecord,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from kcluster.protocol.features import ELR_VERSION
from kcluster.security.acls import AclIndex


class TopicImage(Struct):
    """One topic of an image: `partitions[i]` is the registration of partition i."""

    name: str
    topic_id: bytes
    partitions: list[PartitionRegistration]


class MetadataImage:
    """The cluster as of metadata offset `offset` (of the last record applied; -1 for none)."""

    __slots__ = (
        "acls", "brokers", "client_quotas", "configs", "delegation_tokens", "features",
        "next_producer_id", "offset",
        "scram_credentials", "topic_names", "topics",
    )  # fmt: skip

    def __init__(self) -> None:
        self.offset = -1
        self.acls = AclIndex()
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.topics: dict[str, TopicImage] = {}
        self.topic_names: dict[bytes, str] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        """The configs that were set, as strings, by (resource type, resource name)."""
        self.next_producer_id = 0
        self.features: dict[str, int] = {}
        """The levels in force by name; a feature that is off (level 0) is not listed."""
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        """SCRAM credentials by user and mechanism."""

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker is registered, unfenced and not in controlled shutdown: it may lead
        and be in an ISR."""
        registration = self.brokers.get(broker_id)
        return registration is not None and registration.is_active

    def supports(self, feature: str) -> bool:
        """Whether a feature is on.  True, too, while no metadata has arrived, so that a broker that
        has just started does not deny an API."""
        return feature in self.features or not self.features

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
            case DelegationTokenRecord(token_id=token_id):
                self.delegation_tokens[token_id] = record
            case RemoveDelegationTokenRecord(token_id=token_id):
                del self.delegation_tokens[token_id]
            case AccessControlEntryRecord(acl_id=acl_id, acl=acl):
                self.acls.add(acl_id, acl)
            case RemoveAccessControlEntryRecord(acl_id=acl_id):
                self.acls.remove(acl_id)

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
