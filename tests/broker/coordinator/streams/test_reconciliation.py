"""A member's steps towards its target: give back first, wait for what others hold, then take."""

from __future__ import annotations

from msgspec.structs import replace

from kcluster.broker.coordinator.streams.reconciliation import (
    MemberProgress,
    StreamsMemberState,
    next_step,
)
from kcluster.broker.coordinator.streams.tasks import NOTHING, HeldTasks, Holders, Task, Tasks

ZERO, ONE, TWO = (Task("0", partition) for partition in range(3))
STABLE = MemberProgress(4, 3, StreamsMemberState.STABLE, HeldTasks({ZERO: 3, ONE: 4}), HeldTasks())
MOVES = Tasks(frozenset({ONE, TWO}))
"""Its target at epoch 5: 0 is to go, 2 is to come."""


def held(active: dict[Task, str] | None = None, copies: dict[Task, str] | None = None) -> Holders:
    """What other members have: the process of each task."""
    holders = Holders()
    for task, process in (active or {}).items():
        holders.add(HeldTasks({task: 1}), process)
    for task, process in (copies or {}).items():
        holders.add(HeldTasks(standby=frozenset({task})), process)
    return holders


def step(
    progress: MemberProgress, owned: Tasks | None = None, holders: Holders | None = None,
    target: Tasks = MOVES, epoch: int = 5, is_of_4_4: bool = True,
) -> MemberProgress:  # fmt: skip
    after = next_step(progress, "p1", epoch, target, owned, holders or held(), is_of_4_4)
    assert after is not None
    return after


def test_reconciliation__a_member_at_its_target_stays_as_it_is() -> None:
    assert step(STABLE, epoch=4) is STABLE


def test_reconciliation__first_it_gives_back_what_it_is_not_to_have() -> None:
    revoking = step(STABLE)
    assert revoking == MemberProgress(
        4, 4, StreamsMemberState.UNREVOKED_TASKS, HeldTasks({ONE: 4}), HeldTasks({ZERO: 3})
    )
    assert step(revoking) is revoking  # it does not say what it has
    assert step(revoking, Tasks(frozenset({ZERO, ONE}))) is revoking  # it has it still


def test_reconciliation__then_it_takes_what_is_free_with_the_epoch_of_the_target() -> None:
    done = step(step(STABLE), Tasks(frozenset({ONE})))
    assert done == MemberProgress(
        5, 4, StreamsMemberState.STABLE, HeldTasks({ONE: 4, TWO: 5}), HeldTasks()
    )


def test_reconciliation__what_another_member_holds_is_waited_for() -> None:
    waiting = step(step(STABLE), Tasks(frozenset({ONE})), held({TWO: "p2"}))
    assert waiting == MemberProgress(
        5, 4, StreamsMemberState.UNRELEASED_TASKS, HeldTasks({ONE: 4}), HeldTasks()
    )
    assert step(waiting).assigned.active == {ONE: 4, TWO: 5}


def test_reconciliation__a_process_has_a_task_in_one_role_at_a_time() -> None:
    fresh = MemberProgress(0, 0, StreamsMemberState.STABLE, HeldTasks(), HeldTasks())
    active = Tasks(frozenset({ZERO}))
    standby = Tasks(standby=frozenset({ZERO}))
    here, elsewhere = held(copies={ZERO: "p1"}), held(copies={ZERO: "p2"})
    assert step(fresh, NOTHING, here, active).state is StreamsMemberState.UNRELEASED_TASKS
    assert step(fresh, NOTHING, elsewhere, active).assigned.active == {ZERO: 5}
    assert (
        step(fresh, NOTHING, held({ZERO: "p1"}), standby).state
        is StreamsMemberState.UNRELEASED_TASKS
    )
    assert step(fresh, NOTHING, held({ZERO: "p2"}), standby).assigned.standby == {ZERO}
    assert step(fresh, NOTHING, here, standby).state is StreamsMemberState.UNRELEASED_TASKS


def test_reconciliation__a_standby_stays_until_its_task_is_active_there() -> None:
    copies = HeldTasks({ONE: 4}, frozenset({ZERO}))
    progress = replace(STABLE, assigned=copies)
    target, here = Tasks(frozenset({ZERO, ONE})), held(copies={ZERO: "p1"})
    done = step(progress, NOTHING, here, target)
    assert done.assigned == HeldTasks({ONE: 4, ZERO: 5})
    here.add(HeldTasks({ZERO: 3}), "p2")  # it is active elsewhere still
    waiting = step(progress, NOTHING, here, target)
    assert (waiting.state, waiting.assigned) == (StreamsMemberState.UNRELEASED_TASKS, copies)
    before_4_4 = step(progress, NOTHING, here, target, is_of_4_4=False)
    assert before_4_4.assigned == HeldTasks({ONE: 4})


def test_reconciliation__an_active_task_that_becomes_a_standby_is_one_at_once() -> None:
    here, target = held({ZERO: "p1"}), Tasks(frozenset({ONE}), frozenset({ZERO}))
    revoking = step(STABLE, None, here, target)
    assert revoking.state is StreamsMemberState.UNREVOKED_TASKS
    assert revoking.assigned == HeldTasks({ONE: 4}, frozenset({ZERO}))
    assert revoking.pending_revocation == HeldTasks({ZERO: 3})
    assert step(STABLE, None, here, target, is_of_4_4=False).assigned == HeldTasks({ONE: 4})


def test_reconciliation__a_state_of_a_newer_kafka_makes_the_member_start_over() -> None:
    unknown = replace(STABLE, state=StreamsMemberState.UNKNOWN)
    assert next_step(unknown, "p1", 5, MOVES, None, held(), True) is None
    assert step(unknown, NOTHING).member_epoch == 5
