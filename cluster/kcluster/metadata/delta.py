"""The changes of a run of metadata records: found once, and put into effect by every broker.

Owns: the topics after the records, and the changed partitions of each broker.  Never: touches a
replica (broker/publisher.py does), decides anything. Kafka: MetadataDelta, TopicsDelta,
TopicDelta.localChanges.

All brokers apply the same records in the same order, so the images of two brokers at one offset are
equal.  The first broker that applies a delta finds its changes, and the others take them over:
otherwise a hundred brokers would each go through the same hundred thousand partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from kcluster.contract import NoteId
from kcluster.metadata.image import MetadataImage, TopicImage
from kcluster.metadata.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from kcluster.structs import Untracked

ChangedPartitions = dict[tuple[bytes, int], NoteId | None]
"""(topic id, partition) -> the cause of its last change, in the order of the first changes."""

_NO_CHANGES: Final[ChangedPartitions] = {}


@final
class MetadataDelta:
    """Records from `first_offset` on; `records[i]` has offset `first_offset + i`.

    Known after the delta was applied to an image: `removed`: (name, topic id) of deleted topics;
    `configured`: (resource type, name) of resources whose configs changed; `acls`: the records that
    create or remove ACLs; `credentials`: the records that set or remove the password of a SCRAM
    user; `has_brokers`, `has_quotas`: whether the delta changes brokers' registrations, or clients'
    quotas.
    """

    __slots__ = (
        "_by_broker", "_found", "_names", "_others", "_topics", "acls", "configured",
        "credentials", "first_offset", "has_brokers", "has_quotas", "records", "removed",
    )  # fmt: skip

    def __init__(self, first_offset: int, records: Sequence[MetadataRecord]) -> None:
        self.first_offset = first_offset
        self.records = records
        self.removed: list[tuple[str, bytes]] = []
        self.configured: dict[tuple[int, str], None] = {}
        self.acls: list[AccessControlEntryRecord | RemoveAccessControlEntryRecord] = []
        self.credentials: list[UserScramCredentialRecord | RemoveUserScramCredentialRecord] = []
        self.has_brokers = False
        self.has_quotas = False
        self._found = False
        self._names: dict[bytes, str] = {}
        """The names of topics that the records create, by id."""
        self._topics: dict[str, TopicImage] = {}
        """The changed topics in their state after the records."""
        self._others: list[MetadataRecord] = []
        """The records that are not about partitions."""
        self._by_broker: dict[int, ChangedPartitions] = {}

    def __repr__(self) -> str:
        return f"<MetadataDelta from {self.first_offset}: {self.records!r}>"

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.first_offset + len(self.records)

    # ------------------------------------------------------------------------- for one image

    def apply_to(self, image: MetadataImage) -> None:
        """Bring an image that ends before `first_offset` up to the last record."""
        assert image.offset == self.first_offset - 1, (image.offset, self.first_offset)
        if not self._found:
            self._find(image)
            self._found = True
        for record in self._others:
            image.apply(record)
        image.topics.update(self._topics)
        image.offset = self.end_offset - 1

    def partitions_of(self, broker_id: int) -> ChangedPartitions:
        """The changed partitions of which a broker has or had a replica."""
        return self._by_broker.get(broker_id, _NO_CHANGES)

    # ---------------------------------------------------------------------------- finding the
    # changes once

    def _find(self, image: MetadataImage) -> None:
        """Find the changes, from an image that ends before the records."""
        for record in self.records:
            if isinstance(record, PartitionRecord):
                self._change_partition(image, record)
                continue
            self._others.append(record)
            match record:
                case TopicRecord(name=name, topic_id=topic_id):
                    self._names[topic_id] = name
                    self._topics[name] = TopicImage(name, topic_id, [])
                case RemoveTopicRecord(topic_id=topic_id):
                    name = self._name_of(topic_id, image)
                    self._topics.pop(name, None)
                    self.removed.append((name, topic_id))
                case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                    self.acls.append(record)
                case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
                    self.credentials.append(record)
                case ClientQuotaRecord():
                    self.has_quotas = True
                case ConfigRecord():
                    self.configured[record.resource_type, record.resource_name] = None
                case (
                    RegisterBrokerRecord()
                    | BrokerRegistrationChangeRecord()
                    | UnregisterBrokerRecord()
                ):
                    self.has_brokers = True
                case _:
                    pass

    def _change_partition(self, image: MetadataImage, record: PartitionRecord) -> None:
        new = record.registration
        topic = self._topics.get(name := self._name_of(new.topic_id, image))
        if topic is None:
            # Other images share the list, and have not applied these records yet.
            old_topic = image.topics[name]
            topic = self._topics[name] = TopicImage(
                name, old_topic.topic_id, list(old_topic.partitions)
            )
        partitions, by_broker = topic.partitions, self._by_broker
        key = (new.topic_id, new.partition)
        concerned = new.replicas
        if new.partition == len(partitions):
            partitions.append(new)
        else:
            old = partitions[new.partition]
            if old.replicas != new.replicas:
                concerned = tuple(dict.fromkeys((*old.replicas, *new.replicas)))
            partitions[new.partition] = new
        for broker_id in concerned:
            changed = by_broker.get(broker_id)
            if changed is None:
                changed = by_broker[broker_id] = {}
            changed[key] = record.cause

    def _name_of(self, topic_id: bytes, image: MetadataImage) -> str:
        name = self._names.get(topic_id)
        return image.topic_names[topic_id] if name is None else name


def changed_partitions(records: Iterable[MetadataRecord]) -> dict[tuple[bytes, int], None]:
    """(topic id, partition) of each partition that these records create or change, in the order of
    first changes."""
    registrations = (one.registration for one in records if isinstance(one, PartitionRecord))
    return {(one.topic_id, one.partition): None for one in registrations}


class MetadataFetchResponse(Untracked):
    """The answer to a MetadataFetch: without records if none came before the end of the wait."""

    delta: MetadataDelta
