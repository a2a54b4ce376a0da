"""What was observed where an invariant of groups is broken, as values: classic groups, groups with
epochs, streams groups, share groups.

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
    """A commit of a generation (or member epoch) was accepted after another member's commit of a
    later one."""

    member: str
    generation: int
    other: str
    later: int


class StaleRequest(Observed, frozen=True):
    """A request of a member was served that is of an older generation or epoch; `newest`: the one
    that had begun, -1 if the member had left."""

    request: str
    member: str
    what: Measure
    own: int
    newest: int


class ToldUncommitted(Observed, frozen=True):
    """A member was told more than its coordinator has `committed`; 0: nothing of the member."""

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
    """A topic that matches a regular expression of a group, and that the group has not found."""

    topic: str
    regex: str


class CommitRefused(Observed, frozen=True):
    """A commit with an older `epoch` that was refused, though the member has had the partition
    since `since`; `newest`: its present epoch."""

    member: str
    epoch: int
    partition: int
    since: int
    newest: int


class StateKept(Observed, frozen=True):
    """A state of records that was not written since the share partition's state was
    initialized."""

    first_offset: int
    last_offset: int


class HeldBy(Observed, frozen=True):
    """A record of a share group was acknowledged by, or given to, `member`, while `holder` held
    it."""

    member: str
    holder: str
    offset: int


class Locked(Observed, frozen=True):
    """A record of a share group whose lock lasts until `until_ms`: its member lost the lock before
    that; or it is locked for longer (`member` "")."""

    offset: int
    until_ms: int
    at_ms: int
    member: str = ""


class StatePruned(Observed, frozen=True):
    """The last snapshot of a share partition's state is not in the log any more."""

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
    """A member of a share group that has no partition, by the target of an epoch."""

    member: str
    epoch: int


class NotAsked(Observed, frozen=True):
    """A member got records from an offset on, of a partition that it does not fetch."""

    member: str
    offset: int


class SessionLost(Observed, frozen=True):
    """A member's share session was unknown to its leader, though nobody had ended it."""

    member: str


class NotLoaded(Observed, frozen=True):
    """Records of a share partition from an offset on were delivered by a leader that had lost the
    partition before, and has not loaded its state since."""

    leader_epoch: int
    offset: int


class PlaceLost(Observed, frozen=True):
    """A member lost its place in its group, though nothing had happened to it."""

    member: str


class Duty(StrEnum):
    """What a member must do before its rebalance timeout ends."""

    SYNC = "had not synced"
    REVOCATION = "had not given up its partitions"


class Overdue(Observed, frozen=True):
    """A request of a member was served although the member `late`, maybe itself, had not done its
    duty since `since_ms`."""

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
    """A member joined again in a way that makes a group rebalance, and was answered in the
    generation that was there already."""

    member: str
    how: Rejoined
    generation: int


class UnstableRead(Observed, frozen=True):
    """An offset that was given to a member although an open transaction may change it."""

    group: str
    topic: str
    partition: int
    offset: int


class RemovedEarly(Observed, frozen=True):
    """A member that its coordinator removed at `at_ms`, though it was not late before `due_ms`.
    `reason`: the coordinator's."""

    member: str
    reason: str
    due_ms: int
    at_ms: int


class OffsetGiven(Observed, frozen=True):
    """An offset that was given to a group, which nobody has committed, or which was deleted."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    is_deleted: bool


class OffsetLeft(Observed, frozen=True):
    """An offset of a topic that is deleted."""

    group: str
    topic: str
    partition: int
    offset: int
