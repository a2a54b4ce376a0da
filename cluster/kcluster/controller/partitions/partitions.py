"""All partitions of the cluster, and their changes when a broker comes or goes.

Owns: the index of partitions by broker, the reassignments in progress, and a partition's effective
min.insync.replicas and unclean.leader.election.enable.  Never: decides a leader or an ISR
(elections.py does), knows sessions, commits: its callers commit the records it returns.
Kafka: ReplicationControlManager.{generateLeaderAndIsrUpdates, getTopicEffectiveMinIsr, replay}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from kcluster.contract import NoteId
from kcluster.controller.partitions import elections
from kcluster.controller.partitions.elections import Election, ElectionMode
from kcluster.controller.partitions.leadership import Change, note_completed, note_isr, note_leader
from kcluster.controller.partitions.partition_index import PartitionIndex
from kcluster.controller.partitions.reassigning import Assignment
from kcluster.controller.ports import MetadataPort, PartitionKey
from kcluster.events.reasons import (
    AnyReason,
    Fenced,
    ReassignmentDone,
    Restarted,
    ShuttingDown,
    Unfenced,
)
from kcluster.metadata.image import TopicImage
from kcluster.metadata.records import MetadataRecord, PartitionRecord, PartitionRegistration

MIN_ISR: Final = "min.insync.replicas"
_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


class Partitions:
    """All partitions of the cluster, by broker, with their reassignments and effective settings."""

    def __init__(self, metadata: MetadataPort) -> None:
        self.index = PartitionIndex()
        self.reassignments: dict[PartitionKey, NoteId] = {}
        """The note of the start of each reassignment in progress, by partition."""
        self._metadata = metadata
        self._image = metadata.image

    # ---------------------------------------------------------------------- the metadata log

    def replay(self, record: PartitionRecord) -> None:
        """Update the index for a record that the image has not applied yet."""
        new, image = record.registration, self._image
        partitions = image.topics[image.topic_names[new.topic_id]].partitions
        is_new = new.partition == len(partitions)
        self.index.update(None if is_new else partitions[new.partition], new)

    def replay_removal(self, topic: TopicImage) -> None:
        """Forget a topic that is deleted."""
        for partition in topic.partitions:
            self.index.update(partition, None)
            self.reassignments.pop((topic.topic_id, partition.partition), None)

    # --------------------------------------------------------------------- configs in effect

    def min_isr(self, topic: str) -> int:
        """The topic's effective min.insync.replicas: at most the number of replicas of its first
        partition."""
        image = self._image
        own = image.topic_configs(topic).get(MIN_ISR)
        wanted = self._metadata.cluster_config.min_insync_replicas if own is None else int(own)
        return min(wanted, len(image.topics[topic].partitions[0].replicas))

    def unclean_allowed(self, topic: str) -> bool:
        """Whether the topic's effective unclean.leader.election.enable is true."""
        own = self._image.topic_configs(topic).get(_UNCLEAN_ELECTION)
        if own is None:
            return self._metadata.cluster_config.unclean_leader_election_enable
        return own.strip().lower() == "true"

    def usual_mode(self, topic: str) -> ElectionMode:
        """The mode of elections that follow from a change, not from a request."""
        return ElectionMode.UNCLEAN if self.unclean_allowed(topic) else ElectionMode.ONLINE

    # ---------------------------------------------------------------------------- one change

    def elect(
        self,
        topic: str,
        partition: PartitionRegistration,
        mode: ElectionMode,
        *,
        is_active: Callable[[int], bool] | None = None,
        isr: tuple[int, ...] | None = None,
        assignment: Assignment | None = None,
        unclean_shutdown: int | None = None,
        recovering: bool | None = None,
    ) -> Election | None:
        """Call `elections.elect` with the facts about the topic and its brokers."""
        image = self._image
        return elections.elect(
            partition,
            image.is_active if is_active is None else is_active,
            self.min_isr(topic),
            mode,
            isr=isr,
            assignment=assignment,
            unclean_shutdown=unclean_shutdown,
            recovering=recovering,
            elr_enabled=image.elr_enabled,
        )

    def record_of(self, change: Change) -> PartitionRecord:
        """The record of a change, after noting its events, the last of which is the record's
        cause."""
        metadata, before, after = self._metadata, change.before, change.election.registration
        if change.election.completed:
            self.reassignments.pop((before.topic_id, before.partition), None)
            completed = note_completed(metadata, change)
            change = replace(change, reason=ReassignmentDone(), cause=completed)
        cause = change.cause
        if after.isr != before.isr:
            cause = note_isr(metadata, change)
        if after.leader != before.leader:
            cause = note_leader(metadata, change)
        return PartitionRecord(after, cause)

    # ------------------------------------------------------------------- brokers come and go

    def led_by(self, broker_id: int) -> int:
        """The number of partitions that a broker leads."""
        return len(self.index.led_by.get(broker_id, ()))

    def in_sync_on(self, broker_id: int) -> list[PartitionKey]:
        """The partitions whose ISR includes a broker, by topic and number."""
        topic_ids = {name: topic.topic_id for name, topic in self._image.topics.items()}
        by_topic = self._numbers_by_topic(self.index.in_isr.get(broker_id, ()))
        return [(topic_ids[topic], number) for topic, numbers in by_topic for number in numbers]

    def on_broker_leaving(
        self,
        reason: Fenced | ShuttingDown | Restarted,
        cause: NoteId | None,
        partitions: Iterable[PartitionKey],
    ) -> list[MetadataRecord]:
        """The records that take a broker out of the ISRs and leaderships of these partitions."""
        return self._change_all(partitions, reason, cause, leaving=reason.broker)

    def on_broker_restarted(self, reason: Restarted, cause: NoteId | None) -> list[MetadataRecord]:
        """The records that take a broker's previous incarnation out of ISRs, and of ELRs too if its
        log may have lost its end: an unclean restart may follow a power loss."""
        broker_id = reason.broker
        if reason.clean or not self._image.elr_enabled:
            return self.on_broker_leaving(reason, cause, self.in_sync_on(broker_id))
        in_isr = self.index.in_isr.get(broker_id, ())
        in_elr = self.index.in_elr.get(broker_id, ())
        return self._change_all([*in_isr, *in_elr], reason, cause, unclean_shutdown=broker_id)

    def on_broker_unfenced(self, reason: Unfenced, cause: NoteId | None) -> list[MetadataRecord]:
        """The records that elect leaders for the leaderless partitions that this broker may
        lead."""
        return self._change_all(self.index.leaderless, reason, cause, joining=reason.broker)

    def clear_elrs(
        self, topic: str | None, reason: AnyReason, cause: NoteId | None
    ) -> list[MetadataRecord]:
        """The records that empty the ELRs of one topic's partitions, or of all."""
        topics = self._image.topics
        records: list[MetadataRecord] = []
        for name in sorted(topics) if topic is None else [topic]:
            for partition in topics[name].partitions:
                cleared = elections.clear_elr(partition)
                if cleared is not None:
                    change = Change(name, partition, cleared, reason, cause)
                    records.append(self.record_of(change))
        return records

    def _change_all(
        self,
        keys: Iterable[PartitionKey],
        reason: AnyReason,
        cause: NoteId | None,
        *,
        leaving: int | None = None,
        joining: int | None = None,
        unclean_shutdown: int | None = None,
    ) -> list[MetadataRecord]:
        """Records for the partitions of `keys` that change.  `leaving` and `unclean_shutdown` leave
        every ISR and may not lead, even if their registration allows it; `joining` may lead
        already."""
        excluded = (leaving, unclean_shutdown)
        is_registered_active = self._image.is_active

        def is_active(broker: int) -> bool:
            return broker not in excluded and (broker == joining or is_registered_active(broker))

        records: list[MetadataRecord] = []
        for topic, partitions in self._by_topic(keys):
            mode = self.usual_mode(topic)
            for partition in partitions:
                election = self.elect(
                    topic,
                    partition,
                    mode,
                    is_active=is_active,
                    isr=tuple(broker for broker in partition.isr if broker not in excluded),
                    unclean_shutdown=unclean_shutdown,
                )
                if election is not None:
                    change = Change(topic, partition, election, reason, cause)
                    records.append(self.record_of(change))
        return records

    def _by_topic(
        self, keys: Iterable[PartitionKey]
    ) -> list[tuple[str, list[PartitionRegistration]]]:
        """The partitions of each topic, sorted by name and number, without topics that were deleted
        in between."""
        topics = self._image.topics
        return [
            (topic, [topics[topic].partitions[number] for number in numbers])
            for topic, numbers in self._numbers_by_topic(keys)
        ]

    def _numbers_by_topic(self, keys: Iterable[PartitionKey]) -> list[tuple[str, list[int]]]:
        numbers_by_id: dict[bytes, list[int]] = {}
        for topic_id, number in keys:
            numbers = numbers_by_id.get(topic_id)
            if numbers is None:
                numbers = numbers_by_id[topic_id] = []
            numbers.append(number)
        names = self._image.topic_names
        return sorted(
            (names[topic_id], sorted(numbers))
            for topic_id, numbers in numbers_by_id.items()
            if topic_id in names
        )
