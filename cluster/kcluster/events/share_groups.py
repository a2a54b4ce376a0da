"""Events of share groups, as the leaders of their share partitions see them.

Owns: their facts.  Never: words for them (words/groups.py); what is delivered and acknowledged
(every answer says it, and the ledger of the share consumers).
Kafka: the log of SharePartition.
"""

from __future__ import annotations

from kcluster.events.base import TaggedEvent


class SharePartitionEvent(TaggedEvent, frozen=True):
    """Something happened to a partition as read by a share group, at `broker`, which leads it."""

    group: str
    topic: str
    partition: int
    broker: int

    @property
    def subject(self) -> str:
        return f"share group {self.group}"


class SharePartitionLoaded(SharePartitionEvent, frozen=True):
    """A leader goes on from what was stored.  `in_flight_records`: behind the start offset, those
    about which anything was stored."""

    leader_epoch: int
    start_offset: int
    in_flight_records: int


class ShareLocksExpired(SharePartitionEvent, frozen=True):
    """Members have held `records` records for too long, of which `archived_records` are not
    delivered again: their delivery count has reached the limit."""

    records: int
    archived_records: int
