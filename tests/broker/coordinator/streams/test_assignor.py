"""The sticky task assignor: balance, stickiness, standbys, by example and for any group."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kcluster.broker.coordinator.streams.assignor import AssignedMember, TaskGroup, assign_tasks
from kcluster.broker.coordinator.streams.tasks import NOTHING, Task, Tasks

STATEFUL = TaskGroup("0", 4, is_stateful=True)


def tasks(*names: str) -> frozenset[Task]:
    """`0_3`: task 3 of subtopology 0, as Kafka Streams writes it."""
    return frozenset(Task(name[0], int(name[2:])) for name in names)


def members(**processes: str) -> dict[str, AssignedMember]:
    return {name: AssignedMember(process, NOTHING) for name, process in processes.items()}


def again(
    processes: dict[str, AssignedMember], assigned: dict[str, Tasks]
) -> dict[str, AssignedMember]:
    """The same members, with what they have been given."""
    return {
        name: AssignedMember(member.process_id, assigned.get(name, NOTHING))
        for name, member in processes.items()
    }


def test_assignor__members_get_equal_shares() -> None:
    assigned = assign_tasks(members(a="p1", b="p2"), [STATEFUL], 0)
    assert assigned == {"a": Tasks(tasks("0_0", "0_2")), "b": Tasks(tasks("0_1", "0_3"))}


def test_assignor__a_third_member_takes_only_what_the_others_have_too_much_of() -> None:
    groups = [TaskGroup("0", 3, is_stateful=True), TaskGroup("1", 3, is_stateful=False)]
    two = members(a="p1", b="p2")
    before = assign_tasks(two, groups, 0)
    three = again(members(a="p1", b="p2", c="p3"), before)
    after = assign_tasks(three, groups, 0)
    assert all(after[name].active < before[name].active for name in ("a", "b"))
    assert after["c"].active == tasks("0_2", "1_2")  # as Kafka does with these members


def test_assignor__a_process_with_two_threads_takes_twice_as_much() -> None:
    assigned = assign_tasks(members(a="p1", b="p1", c="p2"), [TaskGroup("0", 6, False)], 0)
    assert {name: len(each.active) for name, each in assigned.items()} == {"a": 2, "b": 2, "c": 2}


def test_assignor__a_standby_is_on_another_process() -> None:
    assigned = assign_tasks(members(a="p1", b="p2"), [STATEFUL], 1)
    assert assigned["a"].standby == assigned["b"].active
    assert assigned["b"].standby == assigned["a"].active
    alone = assign_tasks(members(a="p1", b="p1"), [STATEFUL], 1)
    assert not any(each.standby for each in alone.values())


def test_assignor__only_tasks_with_state_have_standbys() -> None:
    assigned = assign_tasks(members(a="p1", b="p2"), [TaskGroup("0", 4, is_stateful=False)], 1)
    assert not any(each.standby for each in assigned.values())


def test_assignor__a_standby_takes_over_when_its_member_is_gone() -> None:
    left = {
        "b": AssignedMember("p2", Tasks(tasks("0_1"))),
        "c": AssignedMember("p3", Tasks(standby=tasks("0_0"))),
    }
    assigned = assign_tasks(left, [TaskGroup("0", 2, is_stateful=True)], 0)
    assert assigned == {"b": Tasks(tasks("0_1")), "c": Tasks(tasks("0_0"))}


def held(names: str) -> frozenset[Task]:
    return frozenset(
        Task(id_, int(partition))
        for id_, _, partition in (name.partition("_") for name in names.split(",") if name)
    )


def test_assignor__assigns_as_kafka_s_does() -> None:
    """Each pair of lines: standbys, subtopologies (id:tasks:is stateful), members (id|process|what
    was active|what was standby); then what StickyTaskAssignor of 4.3.1 makes of it."""
    lines = (Path(__file__).with_name("sticky_assignments.txt")).read_text("utf-8").splitlines()
    assert len(lines) == 84
    for asked, answered in zip(lines[::2], lines[1::2], strict=True):
        standbys, subtopologies, *rows = asked.split(" ")
        split = [one.split(":") for one in subtopologies.split(";")]
        groups = [TaskGroup(id_, int(count), stateful == "1") for id_, count, stateful in split]
        processes = {
            name: AssignedMember(process, Tasks(held(active), held(standby)))
            for name, process, active, standby in (row.split("|") for row in rows)
        }
        expected = {
            name: Tasks(held(active), held(standby))
            for name, active, standby in (row.split("|") for row in answered[2:].split(" "))
        }
        assert assign_tasks(processes, groups, int(standbys)) == expected, asked


GROUPS = st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=4).map(
    lambda each: [TaskGroup(str(i), count, has) for i, (count, has) in enumerate(each)]
)
PROCESSES = st.lists(st.sampled_from(["p1", "p2", "p3", "p4"]), min_size=1, max_size=8).map(
    lambda each: members(**{f"m{i}": process for i, process in enumerate(each)})
)


def check(
    processes: dict[str, AssignedMember], groups: list[TaskGroup], standbys: int,
    assigned: dict[str, Tasks],
) -> None:  # fmt: skip
    """Every active task once; standbys as many as processes allow, never where the task is."""
    assert assigned.keys() == processes.keys()
    active = Counter(task for each in assigned.values() for task in each.active)
    wanted = {Task(group.subtopology_id, i) for group in groups for i in range(group.count)}
    assert set(active) == wanted
    assert all(count == 1 for count in active.values())
    process_count = len({member.process_id for member in processes.values()})
    stateful = {group.subtopology_id for group in groups if group.is_stateful}
    for task in wanted:
        on = Counter(
            processes[name].process_id
            for name, each in assigned.items()
            if task in each.active or task in each.standby
        )
        assert all(count == 1 for count in on.values())
        copies = min(standbys, process_count - 1) if task.subtopology_id in stateful else 0
        assert sum(on.values()) == 1 + copies


@given(PROCESSES, GROUPS, st.integers(0, 2))
def test_assignor__any_group_gets_every_task_once(
    processes: dict[str, AssignedMember], groups: list[TaskGroup], standbys: int
) -> None:
    assigned = assign_tasks(processes, groups, standbys)
    check(processes, groups, standbys, assigned)


@given(PROCESSES, GROUPS)
def test_assignor__nothing_moves_when_nothing_changed(
    processes: dict[str, AssignedMember], groups: list[TaskGroup]
) -> None:
    first = assign_tasks(processes, groups, 0)
    second = assign_tasks(again(processes, first), groups, 0)
    third = assign_tasks(again(processes, second), groups, 0)
    assert third == second


@given(PROCESSES, GROUPS, st.integers(0, 2), st.data())
def test_assignor__tasks_of_those_who_stay_go_to_those_who_had_them_first(
    processes: dict[str, AssignedMember],
    groups: list[TaskGroup],
    standbys: int,
    data: st.DataObject,
) -> None:
    first = assign_tasks(processes, groups, standbys)
    stay = data.draw(st.lists(st.sampled_from(sorted(processes)), min_size=1, unique=True))
    left = again({name: processes[name] for name in stay}, first)
    second = assign_tasks(left, groups, standbys)
    check(left, groups, standbys, second)
    shares = -(-sum(group.count for group in groups) // len(stay))
    for name in stay:
        kept = first[name].active & second[name].active
        assert len(kept) == len(first[name].active) or len(kept) >= shares - 1
