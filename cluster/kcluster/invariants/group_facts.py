"""Observed facts that break an invariant of groups, as values: of classic groups, consumer groups,
streams groups and share groups.

Owns: these types.  Never: finds a violation (memberships.py, shares.py), words it (words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from enum import StrEnum

from kcluster.invariants.facts import Measure, Observed


class GroupWentBack(Observed, frozen=True):
    """A group's generation, or the epoch of its `member`, became smaller."""

    what: Measure
    before: int
    after: int
    member: str = ""


class AssignedTwice(Observed, frozen=True):
    """A member got another assignment in the same generation."""

    member: str
    generation: int


class StaleCommit(Observed, frozen=True):
    """A commit was accepted although another member had already committed in a later generation (or
    member epoch)."""

    member: str
    generation: int
    other: str
    later: int


class StaleRequest(Observed, frozen=True):
    """A member's request was served although its generation or epoch is outdated.  `newest`: the
    current generation or epoch; -1 if the member had left."""

    request: str
    member: str
    what: Measure
    own: int
    newest: int


class ToldUncommitted(Observed, frozen=True):
    """A member was told a generation or epoch beyond the newest that its coordinator had
    `committed`; 0: none was committed."""

    request: str
    member: str
    what: Measure
    told: int
    committed: int


class GivenAway(Observed, frozen=True):
    """A commit with an older member epoch was accepted for a partition that another member was
    given."""

    member: str
    epoch: int
    partition: int
    owner: str
    since: int


class Unmatched(Observed, frozen=True):
    """A topic that matches a group's regular expression, but that the group does not know."""

    topic: str
    regex: str


class CommitRefused(Observed, frozen=True):
    """A commit with an older `epoch` that was refused, though the member has had the partition
    since epoch `since`; `newest`: its current epoch."""

    member: str
    epoch: int
    partition: int
    since: int
    newest: int


class StateKept(Observed, frozen=True):
    """A leader read the state of records that nothing had written since the share partition's state
    was initialized."""

    first_offset: int
    last_offset: int


class HeldBy(Observed, frozen=True):
    """A record of a share group was acknowledged by, or given to, `member`, while `holder` held
    it."""

    member: str
    holder: str
    offset: int


class Locked(Observed, frozen=True):
    """A record of a share group whose lock should end at `until_ms`.  Its member lost the lock
    before that; or, if `member` is "", the record is still locked after that."""

    offset: int
    until_ms: int
    at_ms: int
    member: str = ""


class StatePruned(Observed, frozen=True):
    """The last snapshot of a share partition's state was deleted from the log."""

    group: str
    partition: int
    snapshot_offset: int
    log_start: int


class PassedUnsettled(Observed, frozen=True):
    """The start offset of a share partition has passed a record that was not settled."""

    group: str
    partition: int
    offset: int


class Idle(Observed, frozen=True):
    """A member of a share group that has no partition in the target assignment of an epoch."""

    member: str
    epoch: int


class NotAsked(Observed, frozen=True):
    """A member got records, from `offset` on, of a partition that it does not fetch."""

    member: str
    offset: int


class SessionLost(Observed, frozen=True):
    """A leader did not know a member's share session, although nothing had ended the session."""

    member: str


class NotLoaded(Observed, frozen=True):
    """A leader delivered records of a share partition, from `offset` on, although it had lost the
    partition and has not loaded the state since."""

    leader_epoch: int
    offset: int


class PlaceLost(Observed, frozen=True):
    """A member lost its place in its group without a reason."""

    member: str


class Duty(StrEnum):
    """What a member must do before its rebalance timeout ends."""

    SYNC = "had not synced"
    REVOCATION = "had not given up its partitions"


class Overdue(Observed, frozen=True):
    """A member's request was served although the member `late`, perhaps the same member, had not
    done its `duty` since `since_ms`."""

    request: str
    member: str
    late: str
    duty: Duty
    since_ms: int
    at_ms: int


class Rejoined(StrEnum):
    """How a member joined its group again."""

    CHANGED = "with another subscription"
    LEADS = "as the leader of a group with an assignment"
    RETURNED = "under a new id before there was an assignment"


class NoRebalance(Observed, frozen=True):
    """A member joined again in a way that requires a rebalance, but was answered in the existing
    generation."""

    member: str
    how: Rejoined
    generation: int


class UnstableRead(Observed, frozen=True):
    """An offset that was returned to a member although an open transaction may change it."""

    group: str
    topic: str
    partition: int
    offset: int


class RemovedEarly(Observed, frozen=True):
    """A member that its coordinator removed at `at_ms`, before its timeout passed at `due_ms`.
    `reason`: the coordinator's."""

    member: str
    reason: str
    due_ms: int
    at_ms: int


class RemovedWaiting(Observed, frozen=True):
    """A member that its coordinator removed at `at_ms` although its `request` had waited there for
    its answer since `since_ms`.  `reason`: the coordinator's."""

    member: str
    reason: str
    request: str
    since_ms: int
    at_ms: int


class GivenTogether(Observed, frozen=True):
    """A record that a member got for the last time, `deliveries`, with other `records` of its
    partition, the record itself included."""

    member: str
    offset: int
    deliveries: int
    records: int


class Dropped(Observed, frozen=True):
    """A partition that no member of a group has any more since the group became one of another
    kind, in this generation or epoch."""

    partition: int
    generation: int
    is_classic: bool


class OffsetGiven(Observed, frozen=True):
    """An offset that was returned to a group although it was never committed, or was deleted."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    is_deleted: bool


class PendingExpired(Observed, frozen=True):
    """An offset that was deleted while an open transaction had a new one for its partition;
    `pending`: the new offset."""

    group: str
    topic: str
    partition: int
    pending: int


class OffsetLeft(Observed, frozen=True):
    """An offset that was kept although its topic was deleted."""

    group: str
    topic: str
    partition: int
    offset: int
