"""The records of a real Kafka's metadata log, and their translation into our own.

Owns: the frame of a record (KIP-631), the translation, the rules by which a partial change and a
partition make a new partition.  Never: applies a record (metadata/image.py does), reads a socket.
Kafka: MetadataRecordSerde, AbstractApiMessageSerde, PartitionRegistration.merge, TopicDelta.replay.

A record's value is a frame version, the record's number, its version (unsigned varints), its body.
Numbers and fields come from the schema table of Kafka's jars (protocol/codec/schema/records).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from struct import Struct as Layout
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
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
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from kcluster.principals import BrokerEndpoint, Principal, SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.codec.schema import record_lines
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.messages import Message
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.records import read_records
from kcluster.security.acls import (
    Acl,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
    from_code,
)

FRAME_VERSION: Final = 1
LEADER_CHANGE: Final = 2
"""The type of the control record that begins a leader's epoch.  Kafka: ControlRecordType."""
NO_LEADER_CHANGE: Final = -2
"""Kafka: PartitionRegistration's LeaderConstants.NO_LEADER_CHANGE."""
NO_RECOVERY_CHANGE: Final = -1
"""Kafka: LeaderRecoveryState.NO_CHANGE."""
_FENCED: Final = {1: True, -1: False}
"""Kafka: BrokerRegistrationFencingChange; 0 is no change."""
_CONTROL_KEY: Final = Layout(">hh")


class KafkaRecord(Struct, frozen=True):
    """A record of Kafka's metadata log: its offset, the time of its append, its name (`TopicRecord`
    or, for the control record of a new leader, `LeaderChangeMessage`), and its message."""

    offset: int
    at_ms: int
    name: str
    body: Message
    leader_epoch: int = -1


# ------------------------------------------------------------------------------------ decoding


def read_batch(batch: Batch) -> Iterator[KafkaRecord]:
    """The records of a batch of the metadata log; of control records only a leader's first.
    ProtocolError for bytes that are none."""
    for record in read_records(batch):
        offset, at_ms = record.offset, record.timestamp
        if not batch.is_control:
            name, body = decode_record(record.value or b"")
            yield KafkaRecord(offset, at_ms, name, body, batch.leader_epoch)
            continue
        _, kind = _CONTROL_KEY.unpack_from(record.key or b"\0\0\xff\xff")
        if kind == LEADER_CHANGE:
            value = record.value or b""
            # The message's first field is its own version, which is the version of its schema.
            (version,) = Layout(">h").unpack_from(value)
            body = record_codec("LeaderChangeMessage", version).decode(value)
            yield KafkaRecord(offset, at_ms, "LeaderChangeMessage", body, batch.leader_epoch)


def decode_record(value: bytes) -> tuple[str, Message]:
    """The name and the message of a record's value.  ProtocolError for an unknown one."""
    frame, at = _unsigned_varint(value, 0)
    number, at = _unsigned_varint(value, at)
    version, at = _unsigned_varint(value, at)
    name = _names().get(number)
    if frame != FRAME_VERSION or name is None:
        raise ProtocolError(f"metadata record {number} in a frame of version {frame}", 0)
    low, high = record_lines()[name].versions
    if not low <= version <= high:
        raise ProtocolError(f"{name} of version {version}; known are {low} to {high}", at)
    return name, record_codec(name, version).decode(value, at)


@cache
def _names() -> dict[int, str]:
    """The names of metadata records by their numbers."""
    return {each.number: name for name, each in record_lines().items() if each.kind == "metadata"}


def _unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for position in range(at, min(at + 5, len(data))):
        value |= (data[position] & 0x7F) << shift
        if data[position] < 0x80:
            return value, position + 1
        shift += 7
    raise ProtocolError("the frame of a metadata record does not end", at)


# ----------------------------------------------------------------------------------- translating


class MetadataTransactions:
    """Holds the records of a metadata transaction back until it ends (KIP-868)."""

    def __init__(self) -> None:
        self._held: list[KafkaRecord] | None = None

    def completed(self, record: KafkaRecord) -> list[KafkaRecord]:
        """The records that this record completes: itself, a whole transaction, or none."""
        match record.name:
            case "BeginTransactionRecord":
                self._held = []
                return []
            case "EndTransactionRecord":
                held, self._held = self._held or [], None
                return held
            case "AbortTransactionRecord":
                self._held = None
                return []
        if self._held is None:
            return [record]
        self._held.append(record)
        return []


def translated(record: KafkaRecord, image: MetadataImage) -> list[MetadataRecord]:
    """Our records for a record of Kafka's; none if it changes nothing that an image has.  `image`:
    the metadata before it, because Kafka writes only the fields that change."""
    translate = _TRANSLATIONS.get(record.name)
    return [] if translate is None else list(translate(record.body, image))


def _registered(body: m.RegisterBrokerRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    endpoints = tuple(
        BrokerEndpoint(each.host, each.port, each.name, SecurityProtocol(each.security_protocol))
        for each in body.end_points
    )
    features = {
        each.name: (each.min_supported_version, each.max_supported_version)
        for each in body.features
    }
    yield RegisterBrokerRecord(
        BrokerRegistration(
            broker_id=body.broker_id,
            epoch=body.broker_epoch,
            endpoints=endpoints,
            rack=body.rack,
            fenced=body.fenced,
            in_controlled_shutdown=body.in_controlled_shutdown,
            incarnation_id=bytes(body.incarnation_id),
            features=features,
        )
    )


def _registration_changed(
    body: m.BrokerRegistrationChangeRecord, _image: MetadataImage
) -> Iterator[MetadataRecord]:
    is_leaving = True if body.in_controlled_shutdown else None
    fenced = _FENCED.get(body.fenced)
    yield BrokerRegistrationChangeRecord(body.broker_id, body.broker_epoch, fenced, is_leaving)


def _fenced(body: m.FenceBrokerRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield BrokerRegistrationChangeRecord(body.id, body.epoch, fenced=True)


def _unfenced(body: m.UnfenceBrokerRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield BrokerRegistrationChangeRecord(body.id, body.epoch, fenced=False)


def _unregistered(body: m.UnregisterBrokerRecord, image: MetadataImage) -> Iterator[MetadataRecord]:
    if body.broker_id in image.brokers:
        yield UnregisterBrokerRecord(body.broker_id, body.broker_epoch)


def _topic(body: m.TopicRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield TopicRecord(body.name, bytes(body.topic_id))


def _topic_removed(body: m.RemoveTopicRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield RemoveTopicRecord(bytes(body.topic_id))


def _partition(body: m.PartitionRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield PartitionRecord(
        PartitionRegistration(
            topic_id=bytes(body.topic_id),
            partition=body.partition_id,
            replicas=tuple(body.replicas),
            isr=tuple(body.isr),
            leader=body.leader,
            leader_epoch=body.leader_epoch,
            partition_epoch=body.partition_epoch,
            elr=tuple(body.eligible_leader_replicas or ()),
            last_known_elr=tuple(body.last_known_elr or ()),
            recovering=body.leader_recovery_state == 1,
            adding_replicas=tuple(body.adding_replicas),
            removing_replicas=tuple(body.removing_replicas),
        )
    )


def _partition_changed(
    body: m.PartitionChangeRecord, image: MetadataImage
) -> Iterator[MetadataRecord]:
    topic = image.topic_by_id(bytes(body.topic_id))
    if topic is not None:
        yield PartitionRecord(merged(topic.partitions[body.partition_id], body))


def merged(old: PartitionRegistration, change: m.PartitionChangeRecord) -> PartitionRegistration:
    """A partition after a PartitionChangeRecord: a field that the record leaves out stays."""
    has_leader = change.leader != NO_LEADER_CHANGE
    recovery = change.leader_recovery_state
    lists = {
        "replicas": change.replicas,
        "isr": change.isr,
        "elr": change.eligible_leader_replicas,
        "last_known_elr": change.last_known_elr,
        "adding_replicas": change.adding_replicas,
        "removing_replicas": change.removing_replicas,
    }
    changed = {name: tuple(found) for name, found in lists.items() if found is not None}
    return replace(
        old,
        leader=change.leader if has_leader else old.leader,
        leader_epoch=old.leader_epoch + has_leader,
        partition_epoch=old.partition_epoch + 1,
        recovering=old.recovering if recovery == NO_RECOVERY_CHANGE else recovery == 1,
        **changed,
    )


def _elr_cleared(body: m.ClearElrRecord, image: MetadataImage) -> Iterator[MetadataRecord]:
    """An empty name means all topics.  Kafka: TopicsDelta.replay(ClearElrRecord)."""
    names = [body.topic_name] if body.topic_name else list(image.topics)
    for name in names:
        for old in image.topics[name].partitions:
            if old.elr or old.last_known_elr:
                epoch = old.partition_epoch + 1
                yield PartitionRecord(
                    replace(old, elr=(), last_known_elr=(), partition_epoch=epoch)
                )


def _config(body: m.ConfigRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield ConfigRecord(body.resource_type, body.resource_name, body.name, body.value)


def _producer_ids(body: m.ProducerIdsRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield ProducerIdsRecord(body.broker_id, body.broker_epoch, body.next_producer_id)


def _feature(body: m.FeatureLevelRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield FeatureLevelRecord(body.name, body.feature_level)


def _quota(body: m.ClientQuotaRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    entity = tuple(sorted((each.entity_type, each.entity_name) for each in body.entity))
    yield ClientQuotaRecord(entity, body.key, None if body.remove else body.value)


def _credential(
    body: m.UserScramCredentialRecord, _image: MetadataImage
) -> Iterator[MetadataRecord]:
    yield UserScramCredentialRecord(
        body.name,
        body.mechanism,
        bytes(body.salt),
        bytes(body.stored_key),
        bytes(body.server_key),
        body.iterations,
    )


def _credential_removed(
    body: m.RemoveUserScramCredentialRecord, _image: MetadataImage
) -> Iterator[MetadataRecord]:
    yield RemoveUserScramCredentialRecord(body.name, body.mechanism)


def _acl(body: m.AccessControlEntryRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    acl = Acl(
        resource_type=from_code(AclResource, body.resource_type),
        resource_name=body.resource_name,
        pattern_type=from_code(PatternType, body.pattern_type),
        principal=body.principal,
        host=body.host,
        operation=from_code(AclOperation, body.operation),
        permission=from_code(AclPermission, body.permission_type),
    )
    yield AccessControlEntryRecord(bytes(body.id), acl)


def _acl_removed(
    body: m.RemoveAccessControlEntryRecord, _image: MetadataImage
) -> Iterator[MetadataRecord]:
    yield RemoveAccessControlEntryRecord(bytes(body.id))


def _token(body: m.DelegationTokenRecord, _image: MetadataImage) -> Iterator[MetadataRecord]:
    yield DelegationTokenRecord(
        body.token_id,
        _principal(body.owner),
        _principal(body.requester),
        tuple(map(_principal, body.renewers)),
        body.issue_timestamp,
        body.expiration_timestamp,
        body.max_timestamp,
    )


def _token_removed(
    body: m.RemoveDelegationTokenRecord, _image: MetadataImage
) -> Iterator[MetadataRecord]:
    yield RemoveDelegationTokenRecord(body.token_id)


def _principal(text: str) -> Principal:
    kind, _, name = text.partition(":")
    return Principal(kind, name)


_TRANSLATIONS: Final[Mapping[str, Callable[..., Iterator[MetadataRecord]]]] = {
    "AccessControlEntryRecord": _acl,
    "BrokerRegistrationChangeRecord": _registration_changed,
    "ClearElrRecord": _elr_cleared,
    "ClientQuotaRecord": _quota,
    "ConfigRecord": _config,
    "DelegationTokenRecord": _token,
    "FeatureLevelRecord": _feature,
    "FenceBrokerRecord": _fenced,
    "PartitionChangeRecord": _partition_changed,
    "PartitionRecord": _partition,
    "ProducerIdsRecord": _producer_ids,
    "RegisterBrokerRecord": _registered,
    "RemoveAccessControlEntryRecord": _acl_removed,
    "RemoveDelegationTokenRecord": _token_removed,
    "RemoveTopicRecord": _topic_removed,
    "RemoveUserScramCredentialRecord": _credential_removed,
    "TopicRecord": _topic,
    "UnfenceBrokerRecord": _unfenced,
    "UnregisterBrokerRecord": _unregistered,
    "UserScramCredentialRecord": _credential,
}
"""Records that are not here (NoOpRecord, RegisterControllerRecord, …) change nothing that an image
has."""
