"""A member's next step towards its target assignment.

Owns: `next_step`, a pure function that finds the tasks to revoke first, the tasks that another
member or process still holds, and the tasks to assign now.  Never: decides the target
(assignor.py), writes a record.  Kafka: CurrentAssignmentBuilder, MemberState; KIP-1071.

Two rules keep a task in one place.  An active task is assigned only when no process has it as
active.  A process has a task in one role at a time, because it has one state directory.  From 4.4
on a member that changes its own role in a task keeps the state meanwhile: a standby stays a standby
until the task is active there, and an active task that becomes a standby does so at once.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.streams.tasks import HeldTasks, Holders, Tasks


class StreamsMemberState(IntEnum):
    """The states of a member in the log."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127
    """A state of a later release."""

    @classmethod
    def _missing_(cls, value: object) -> StreamsMemberState:
        return cls.UNKNOWN


class MemberProgress(Struct, frozen=True):
    """A member's progress on the way to its target."""

    member_epoch: int
    previous_epoch: int
    state: StreamsMemberState
    assigned: HeldTasks
    pending_revocation: HeldTasks

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is StreamsMemberState.STABLE and self.member_epoch == target_epoch


def next_step(
    progress: MemberProgress,
    process_id: str,
    target_epoch: int,
    target: Tasks,
    owned: Tasks | None,
    holders: Holders,
    is_of_4_4: bool,
) -> MemberProgress | None:
    """The member's next tasks; `owned`: the tasks that the member reports as its own, None if it
    reports none.

    Returns None if the member's state is of a newer Kafka: it must join again without tasks.
    """
    match progress.state:
        case StreamsMemberState.STABLE if progress.member_epoch == target_epoch:
            return progress
        case StreamsMemberState.STABLE | StreamsMemberState.UNRELEASED_TASKS:
            epoch = progress.member_epoch
        case StreamsMemberState.UNREVOKED_TASKS:
            if owned is None or progress.pending_revocation.intersects(owned):
                return progress
            epoch = progress.member_epoch + 1
        case _:
            if owned is None or owned != Tasks():
                return None
            epoch = target_epoch
    return _towards(progress, epoch, process_id, target_epoch, target, owned, holders, is_of_4_4)


def _towards(
    progress: MemberProgress,
    epoch: int,
    process_id: str,
    target_epoch: int,
    target: Tasks,
    owned: Tasks | None,
    holders: Holders,
    is_of_4_4: bool,
) -> MemberProgress:
    current = progress.assigned
    own = current if is_of_4_4 else HeldTasks()  # what changes its role without being given back
    kept = HeldTasks(
        {task: since for task, since in current.active.items() if task in target.active},
        current.standby & target.standby,
        current.warmup & target.warmup,
    )
    to_revoke = HeldTasks(
        {task: since for task, since in current.active.items() if task not in target.active},
        current.standby - target.standby,
        current.warmup - target.warmup,
    )
    wanted = Tasks(
        target.active - kept.active.keys(),
        target.standby - kept.standby,
        target.warmup - kept.warmup,
    )
    free = HeldTasks(
        {
            task: target_epoch
            for task in wanted.active
            if holders.active(task) is None
            and (task in own.standby or not holders.has_copy(process_id, task))
        },
        frozenset(
            task
            for task in wanted.standby
            if not holders.has_copy(process_id, task)
            and (task in own.active or holders.active(task) != process_id)
        ),
        frozenset(task for task in wanted.warmup if not holders.has(process_id, task)),
    )
    is_complete = not (
        wanted.active - free.active.keys()
        or wanted.standby - free.standby
        or wanted.warmup - free.warmup
    )
    promoted = own.standby & target.active
    to_revoke = replace(to_revoke, standby=to_revoke.standby - promoted)
    kept = replace(kept, standby=kept.standby | (free.standby & own.active.keys()))
    if to_revoke and (owned is None or to_revoke.intersects(owned)):
        kept = replace(kept, standby=kept.standby | promoted)
        return MemberProgress(
            epoch, progress.member_epoch, StreamsMemberState.UNREVOKED_TASKS, kept, to_revoke
        )
    kept = replace(kept, standby=kept.standby | (promoted - free.active.keys()))
    state = StreamsMemberState.STABLE if is_complete else StreamsMemberState.UNRELEASED_TASKS
    return MemberProgress(
        target_epoch, progress.member_epoch, state, kept.with_more(free), HeldTasks()
    )
