"""Events of partitions: leaders, in-sync replicas, reassignments, replicas on brokers.

Owns: their facts.  Never: words for them (words/).
Kafka: state-change.log, and the logs of ReplicationControlManager and ReplicaManager.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.base import TaggedEvent
from kcluster.events.reasons import AnyReason, ElectionKind, Requested

Brokers = tuple[int, ...]


class PartitionEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a partition."""

    topic: str
    partition: int

    @property
    def subject(self) -> str:
        return f"{self.topic}-{self.partition}"


class LeaderChange(PartitionEvent, frozen=True):
    """The controller gave a partition another leader, or none.  `old_leader`, `new_leader`: -1 for
    none; `clean`: False if this leader, or the next, may lack committed records, which are then
    lost."""

    old_leader: int
    new_leader: int
    leader_epoch: int
    clean: bool
    reason: AnyReason

    @property
    def is_allowed_by_setting(self) -> bool:
        """Whether only unclean.leader.election.enable=true allows the change; an operator's request
        needs no setting."""
        return not self.clean and not self.is_requested_unclean

    @property
    def is_requested_unclean(self) -> bool:
        """Whether the operator requested an unclean election."""
        return self.reason == Requested("unclean")


class LeaderElected(LeaderChange, frozen=True):
    """A partition has a new leader.  `election`: the rule by which it was chosen."""

    election: ElectionKind

    @property
    def is_allowed_by_setting(self) -> bool:
        """Whether only unclean.leader.election.enable=true allows the change; the election of the
        last known leader needs no setting (KIP-966)."""
        by_setting = not self.clean and not self.is_requested_unclean
        return by_setting and self.election is not ElectionKind.LAST_KNOWN_LEADER


class PartitionOffline(LeaderChange, frozen=True):
    """No replica of a partition can lead: none in `isr` is active or, if `isr` is empty, none in
    `elr`."""

    isr: Brokers
    elr: Brokers


class IsrChange(PartitionEvent, frozen=True):
    """The in-sync replicas changed.  `elr`: the eligible leader replicas after the change
    (KIP-966)."""

    old_isr: Brokers
    isr: Brokers
    removed: Brokers
    added: Brokers
    elr: Brokers
    partition_epoch: int
    reason: AnyReason


class IsrShrunk(IsrChange, frozen=True):
    """A replica left the ISR."""


class IsrExpanded(IsrChange, frozen=True):
    """A replica joined the ISR, and none left."""


class ReassignmentEvent(PartitionEvent, frozen=True):
    """Replicas move from `old_replicas` to `replicas`."""

    old_replicas: Brokers
    replicas: Brokers
    partition_epoch: int


class RecordsDeleted(PartitionEvent, frozen=True):
    """An administrator deleted the records before an offset (DeleteRecords): every live replica's
    log starts at `low_watermark` or after it."""

    low_watermark: int


class ReassignmentStarted(ReassignmentEvent, frozen=True):
    """A reassignment started.  `replaced`: whether another reassignment of the partition was in
    progress."""

    adding: Brokers
    removing: Brokers
    replaced: bool


class ReassignmentCompleted(ReassignmentEvent, frozen=True):
    added: Brokers
    removed: Brokers
    reason: AnyReason


class ReassignmentCancelled(ReassignmentEvent, frozen=True):
    """A reassignment was cancelled.  `adding`, `removing`: the replicas that it was adding and
    removing."""

    adding: Brokers
    removing: Brokers


class BecameLeader(PartitionEvent, frozen=True):
    """A broker has learned that it leads a partition.  `start_offset`: its log end at that
    moment."""

    broker: int
    leader_epoch: int
    start_offset: int


class BecameFollower(PartitionEvent, frozen=True):
    """A broker has learned that it no longer leads a partition."""

    broker: int
    leader: int
    leader_epoch: int


NOT_ASKED: Final = -1
"""The end of the leader's log for a follower that did not ask for it."""


class LogTruncated(PartitionEvent, frozen=True):
    """A follower dropped the offsets from `to_offset` up to, but not including, `from_offset`,
    because its leader does not have them. `diverging_epoch`: the epoch that ends at
    `leader_end_offset` in the leader's log (KIP-279); None if the leader's whole log ends there.
    NOT_ASKED as `leader_end_offset`: before KIP-101 followers drop what is above their own high
    watermark, whatever the leader has."""

    broker: int
    from_offset: int
    to_offset: int
    high_watermark: int
    leader: int
    leader_end_offset: int
    diverging_epoch: int | None = None

    @property
    def is_unasked(self) -> bool:
        """Whether the follower did not ask its leader, as before KIP-101."""
        return self.leader_end_offset == NOT_ASKED

    @property
    def is_below_high_watermark(self) -> bool:
        """Whether this replica had considered any of the dropped records as committed."""
        return self.to_offset < self.high_watermark
