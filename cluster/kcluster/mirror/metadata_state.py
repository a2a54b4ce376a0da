"""The metadata of a real cluster, built from its metadata log, and the events of its changes.

Owns: the image and its index, the epoch and the leader of the quorum, the offset of the next record
to read.  Never: reads a socket (metadata_log.py does), chooses an event's reason (changes.py does).
Kafka: MetadataLoader, MetadataDelta; KIP-500, KIP-595, KIP-868.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kcluster.contract import Event
from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.partitions.partition_index import PartitionIndex
from kcluster.events.brokers import ControllerElected
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)
from kcluster.mirror.changes import Applied, Caused, Circumstances, events_of
from kcluster.mirror.metadata_records import KafkaRecord, MetadataTransactions, translated
from kcluster.operations.asking import UNCLEAN
from kcluster.protocol import messages as m


class ShownChange(Struct, frozen=True):
    """An event that the log shows: the time of the record, the event, and the event that caused
    it."""

    at_ms: int
    event: Event
    cause: Event | None = None


class Taken(Struct):
    """What records have changed.  `partitions`: the changed partitions, with their topics' names;
    `removed`: the ids of deleted topics."""

    changes: list[ShownChange]
    partitions: list[tuple[str, PartitionRegistration]]
    removed: list[bytes]


class MetadataState:
    """What the metadata log says, up to `next_offset`.  `index`: the partitions by broker; `known`:
    what is known besides."""

    def __init__(self, image: MetadataImage, index: PartitionIndex, log: MetadataLog) -> None:
        self.image = image
        self.index = index
        self.log = log
        self.next_offset = 0
        self.last_epoch = 0
        """The leader epoch of the last record, which a fetch names."""
        self.leader = -1
        """The active controller; -1 before the first."""
        self.known = Circumstances()
        self._transactions = MetadataTransactions()

    def take(self, records: Iterable[KafkaRecord]) -> Taken:
        """Apply records that were committed together; their events have causes first."""
        changes: list[ShownChange] = []
        applied: list[Applied] = []
        at_ms = 0
        is_first = not self.image.features
        for record in records:
            at_ms = record.at_ms
            self.next_offset = record.offset + 1
            self.last_epoch = record.leader_epoch
            if isinstance(record.body, m.LeaderChangeMessage):
                self.leader, self.log.epoch = record.body.leader_id, record.leader_epoch
                elected = ControllerElected(self.leader, record.leader_epoch)
                changes.append(ShownChange(at_ms, elected))
            for completed in self._transactions.completed(record):
                applied += map(self._apply, translated(completed, self.image))
            self.image.offset = record.offset
        # The first records of a new cluster set its features and configs: no change to anyone.
        caused: list[Caused] = [] if is_first else events_of(applied, self.known, at_ms)
        changes += [ShownChange(at_ms, event, cause) for event, cause in caused]
        taken = Taken(changes, [], [])
        for entry in applied:
            match entry.record:
                case PartitionRecord(registration=new):
                    taken.partitions.append((entry.topic, new))
                    was = entry.old
                    if isinstance(was, PartitionRegistration) and was.leader != new.leader:
                        self.known.requested.pop((entry.topic, new.partition), None)
                case RemoveTopicRecord(topic_id=topic_id):
                    taken.removed.append(topic_id)
        return taken

    def expect_election(self, request: m.ElectLeadersRequest) -> None:
        """Take note of a user's request, which the events of its elections name."""
        kind = "unclean" if request.election_type == UNCLEAN else "preferred"
        for topic in request.topic_partitions or ():
            for number in topic.partitions:
                self.known.requested[topic.topic, number] = kind

    def _apply(self, record: MetadataRecord) -> Applied:
        image = self.image
        old: BrokerRegistration | PartitionRegistration | str | int | None = None
        topic = ""
        match record:
            case PartitionRecord(registration=new):
                topic = image.topic_names[new.topic_id]
                old = image.partition(topic, new.partition)
                self.index.update(old, new)
            case RemoveTopicRecord(topic_id=topic_id):
                topic = image.topic_names[topic_id]
                for partition in image.topics[topic].partitions:
                    self.index.update(partition, None)
            case RegisterBrokerRecord(registration=new_broker):
                old = image.brokers.get(new_broker.broker_id)
            case (
                BrokerRegistrationChangeRecord(broker_id=broker)
                | UnregisterBrokerRecord(broker_id=broker)
            ):
                old = image.brokers.get(broker)
            case ConfigRecord(resource_type=kind, resource_name=name):
                old = image.configs.get((kind, name), {}).get(record.name)
            case FeatureLevelRecord(name=name):
                old = image.features.get(name)
        image.apply(record)
        self.log.records.append(record)
        return Applied(record, old, topic)
