"""Events of transactions, as their coordinators see them.

Owns: their facts.  Never: words for them (words/).
Kafka: the log of TransactionCoordinator.
"""

from __future__ import annotations

from enum import StrEnum

from kcluster.events.base import TaggedEvent


class AbortReason(StrEnum):
    """The reason why a transaction was aborted: its producer requested it; it was open for longer
    than its timeout; a new producer has its transactional id."""

    PRODUCER = "producer"
    TIMEOUT = "timeout"
    NEW_PRODUCER = "new_producer"


class TransactionEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a transaction.  `producer_epoch`: the epoch of its
    markers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool

    @property
    def subject(self) -> str:
        return f"transaction {self.transactional_id}"


class TransactionEnded(TransactionEvent, frozen=True):
    """The decision about a transaction is committed; its markers follow.  `abort_reason`: None for
    a commit."""

    abort_reason: AbortReason | None = None


class TransactionCompleted(TransactionEvent, frozen=True):
    """Each partition of a transaction has its marker.  `marked_partitions`: their number."""

    marked_partitions: int = 0
