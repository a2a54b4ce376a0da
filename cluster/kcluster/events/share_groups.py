"""Events of share groups, as the leaders of their share partitions see them.

Owns: their facts.  Never: words for them (words/groups.py); deliveries and acknowledgements, which
are in every answer and in the ledger of the share consumers. Kafka: the log of SharePartition.
"""

from __future__ import annotations

from enum import StrEnum

from kcluster.events.base import TaggedEvent


class SharePartitionEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a partition as read by a share group, at `broker`, which
    leads it."""

    group: str
    topic: str
    partition: int
    broker: int

    @property
    def subject(self) -> str:
        return f"share group {self.group}"


class SharePartitionLoaded(SharePartitionEvent, frozen=True):
    """A leader continues from the stored state.  `in_flight_records`: the number of records after
    the start offset that have a stored state."""

    leader_epoch: int
    start_offset: int
    in_flight_records: int


class ShareLocksExpired(SharePartitionEvent, frozen=True):
    """Members have held `records` records for too long, of which `archived_records` are not
    delivered again: their delivery count has reached the limit."""

    records: int
    archived_records: int


class DeadLettersWritten(SharePartitionEvent, frozen=True):
    """Records that the group does not deliver again are in its dead letter queue (KIP-1191).
    `first_offset` to `last_offset`: the records' offsets in their own partition."""

    first_offset: int
    last_offset: int
    queue_topic: str
    queue_partition: int


class DeadLetterProblem(StrEnum):
    """The reasons why records do not reach the dead letter queue."""

    NO_QUEUE = "no queue"
    """The group no longer has a queue: its config was removed."""
    RESERVED_NAME = "reserved name"
    WRONG_PREFIX = "wrong prefix"
    """The name of the queue lacks errors.deadletterqueue.topic.name.prefix."""
    NOT_ENABLED = "not enabled"
    """The queue's errors.deadletterqueue.group.enable is false."""
    NOT_CREATED = "not created"
    """The queue does not exist, and errors.deadletterqueue.auto.create.topics.enable is false."""
    CREATION_FAILED = "creation failed"
    PRODUCE_FAILED = "produce failed"


class DeadLettersDropped(SharePartitionEvent, frozen=True):
    """Records are archived without a dead letter.  `error`: Kafka's name of the error, or empty."""

    first_offset: int
    last_offset: int
    queue_topic: str
    problem: DeadLetterProblem
    error: str
