"""The sticky task assignor: the tasks that each member should have.

Owns: `assign_tasks`, a pure function of members, their previous targets and the tasks.  Never:
waits for a task to be free (reconciliation.py), reads a config.
Kafka: StickyTaskAssignor, ProcessState; KIP-1071.

An active task goes, in this order: to the member that had it, unless that member has its share
already; to the least loaded member that had it as standby, unless it has its share; to the least
loaded process.  Standbys go to the member that had the task, then to the least loaded process,
never to a process that has the task already.  The load of a process is its number of tasks per
member.  Ties are broken by the order of Java's collections, so that a group's assignment is equal
to Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from kcluster.broker.coordinator.streams.tasks import Task, Tasks
from kcluster.protocol.java import JavaPriorityQueue, hash_order, java_hash_code


class AssignedMember(Struct, frozen=True):
    """A member of a streams group, in the form that the assignor needs."""

    process_id: str
    """Members of one process share its state directory."""
    previous: Tasks
    offsets: Mapping[Task, int] | None = None
    """The progress of the task states that the member has (from 4.4 on); None for the rule before
    4.4."""


class TaskGroup(Struct, frozen=True):
    """The tasks of one subtopology."""

    subtopology_id: str
    count: int
    is_stateful: bool
    """Whether the tasks have a state, and so have standbys."""


def assign_tasks(
    members: Mapping[str, AssignedMember], groups: Iterable[TaskGroup], standby_replicas: int
) -> dict[str, Tasks]:
    """The target of each member.  There is at least one member."""
    return _Assignment(members, list(groups), standby_replicas).run()


class _Quota:
    """The number of active tasks that each member may take; other members take the tasks that a
    member cannot."""

    __slots__ = ("members_left", "per_member", "tasks_left")

    def __init__(self, tasks: int, members: int) -> None:
        self.tasks_left = tasks
        self.members_left = members
        self.per_member = 0
        self._share()

    def _share(self) -> None:
        self.per_member = -(-self.tasks_left // self.members_left) if self.members_left else 0

    def member_has(self, tasks: int) -> None:
        """Count a further task of a member, `tasks` now.  If the member is full, the other members
        share the rest."""
        if tasks == self.per_member:
            self.members_left -= 1
            self.tasks_left -= tasks
            self._share()


class _Process:
    """The members of one process, and their tasks."""

    __slots__ = ("_by_load", "active", "counts", "standby", "tasks")

    def __init__(self) -> None:
        self._by_load: JavaPriorityQueue[str] | None = None
        self.counts: dict[str, int] = {}
        """Tasks by member."""
        self.active: dict[str, set[Task]] = {}
        self.standby: dict[str, set[Task]] = {}
        self.tasks: set[Task] = set()

    @property
    def load(self) -> float:
        return sum(self.counts.values()) / len(self.counts)

    def add(self, member_id: str, task: Task, is_active: bool) -> int:
        """Give a task to a member; returns the member's new number of tasks."""
        self._by_load = None
        return self._add(member_id, task, is_active)

    def _add(self, member_id: str, task: Task, is_active: bool) -> int:
        self.tasks.add(task)
        role = self.active if is_active else self.standby
        role.setdefault(member_id, set()).add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]

    def add_to_least_loaded(self, task: Task, is_active: bool) -> int:
        """Give a task to the member with the fewest tasks; returns that member's new number of
        tasks."""
        by_load = self._by_load
        if by_load is None:
            by_load = self._by_load = JavaPriorityQueue(self.counts.__getitem__)
            for member_id in hash_order(self.counts, java_hash_code):
                by_load.add(member_id)
        member_id = by_load.poll()
        count = self._add(member_id, task, is_active)
        by_load.add(member_id)
        return count


def _by_partition(task: Task) -> tuple[int, str]:
    return task.partition, task.subtopology_id


class _Assignment:
    def __init__(
        self, members: Mapping[str, AssignedMember], groups: list[TaskGroup], standbys: int
    ) -> None:
        self._members = members
        self._groups = groups
        self._standbys = standbys
        self._process_of: dict[str, _Process] = {}
        """The process of each member."""
        self._processes: dict[str, _Process] = {}
        self._previous_active: dict[Task, str] = {}
        self._previous_standby: dict[Task, list[str]] = {}
        """The members that have a copy of a task's state, the best first."""
        self._ranks: dict[Task, list[tuple[bool, int, str]]] = {}
        """By task: (whether the member did not have the task as standby, minus its offsets,
        member), from 4.4 on."""
        self._is_of_4_4 = any(one.offsets is not None for one in members.values())
        active = sum(group.count for group in groups)
        stateful = sum(group.count for group in groups if group.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._total_quota = _Quota(active + stateful * standbys, len(members))
        for member_id in hash_order(members, java_hash_code):
            self._add_member(member_id, members[member_id])
        for task, ranked in self._ranks.items():
            ranked.sort(key=lambda one: one[:2])
            self._previous_standby[task] = [member_id for _, _, member_id in ranked]

    def _add_member(self, member_id: str, member: AssignedMember) -> None:
        process = self._processes.setdefault(member.process_id, _Process())
        process.counts[member_id] = 0
        self._process_of[member_id] = process
        for task in member.previous.active:
            self._previous_active[task] = member_id
        offsets = member.offsets
        for task in sorted(member.previous.standby):
            if offsets is None:
                self._previous_standby.setdefault(task, []).append(member_id)
            else:
                rank = (False, -offsets.get(task, 0), member_id)
                self._ranks.setdefault(task, []).append(rank)
        for task, offset in (offsets or {}).items():
            if task not in member.previous.standby:
                self._ranks.setdefault(task, []).append((True, -offset, member_id))

    def run(self) -> dict[str, Tasks]:
        self._assign_active(self._tasks(lambda group: True))
        if self._standbys > 0:
            self._assign_standbys(self._tasks(lambda group: group.is_stateful))
        assigned: dict[str, Tasks] = {}
        for member_id in self._members:
            process = self._process_of[member_id]
            assigned[member_id] = Tasks(
                frozenset(process.active.get(member_id, ())),
                frozenset(process.standby.get(member_id, ())),
            )
        return assigned

    def _tasks(self, has_tasks: Callable[[TaskGroup], bool]) -> list[Task]:
        return [
            Task(group.subtopology_id, partition)
            for group in self._groups
            if has_tasks(group)
            for partition in range(group.count)
        ]

    # -------------------------------------------------------------------------- active

    def _assign_active(self, tasks: list[Task]) -> None:
        tasks.sort(key=_by_partition)
        previous = self._previous_active
        left = [task for task in tasks if not self._give_active(task, previous.get(task))]
        still_left = [
            task
            for task in left
            if not self._give_active(task, self._least_loaded(self._previous_standby.get(task)))
        ]
        by_load = self._by_load()
        for task in sorted(still_left):
            process = by_load.poll()
            self._active_given(process.add_to_least_loaded(task, is_active=True))
            by_load.add(process)

    def _by_load(self) -> JavaPriorityQueue[_Process]:
        """All processes, the least loaded one first."""
        first_size = 1 << (len(self._members) - 1).bit_length()
        by_load = JavaPriorityQueue[_Process](lambda process: process.load)
        for process_id in hash_order(self._processes, java_hash_code, first_size):
            by_load.add(self._processes[process_id])
        return by_load

    def _give_active(self, task: Task, member_id: str | None) -> bool:
        """Give a task to a member that has had it and has less than its share; returns whether it
        took the task."""
        if member_id is None:
            return False
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._active_quota.per_member:
            return False
        self._active_given(process.add(member_id, task, is_active=True))
        return True

    def _active_given(self, tasks: int) -> None:
        self._active_quota.member_has(tasks)
        self._total_quota.member_has(tasks)

    def _least_loaded(self, members: list[str] | None, without: Task | None = None) -> str | None:
        """The least loaded of the members that had a task, whose processes must not have the task
        `without`."""
        if not members:
            return None
        if self._is_of_4_4:
            return self._least_loaded_of_4_4(members, without)
        chosen = members[0]
        first = self._process_of[chosen]
        process_load = first.load
        member_load = first.counts[chosen]
        for member_id in members[1:]:
            process = self._process_of[member_id]
            if (
                process.load < process_load
                and process.counts[member_id] < member_load
                and (without is None or without not in process.tasks)
            ):
                process_load = process.load
                member_load = process.counts[member_id]
                chosen = member_id
        # Kafka's rule: the first member decides for all of them.
        return None if without is not None and without in first.tasks else chosen

    def _least_loaded_of_4_4(self, members: list[str], without: Task | None) -> str | None:
        """The least loaded of these members by the rule of 4.4: each of them counts, not only the
        first."""
        chosen: str | None = None
        process_load = member_load = 0.0
        for member_id in members:
            process = self._process_of[member_id]
            if without is not None and without in process.tasks:
                continue
            load, count = process.load, process.counts[member_id]
            if chosen is None or (load < process_load and count < member_load):
                chosen, process_load, member_load = member_id, load, count
        return chosen

    # ------------------------------------------------------------------------- standby

    def _assign_standbys(self, tasks: list[Task]) -> None:
        left: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for given in range(self._standbys):
                if not self._give_standby(task):
                    left.append((task, self._standbys - given))
                    break
        by_load = self._by_load()
        for task, replicas in sorted(left, reverse=True):
            for _ in range(replicas):
                if not self._give_standby_to_least_loaded(task, by_load):
                    break

    def _give_standby(self, task: Task) -> bool:
        """Give a standby to a member that had the task, active or as a standby; returns whether
        such a member took it."""
        active = self._previous_active.get(task)
        is_free = active is not None and task not in self._process_of[active].tasks
        if active is not None and is_free and self._take_standby(active, task):
            return True
        standby = self._least_loaded(self._previous_standby.get(task), without=task)
        return standby is not None and self._take_standby(standby, task)

    def _take_standby(self, member_id: str, task: Task) -> bool:
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._total_quota.per_member:
            return False
        self._total_quota.member_has(process.add(member_id, task, is_active=False))
        return True

    def _give_standby_to_least_loaded(
        self, task: Task, by_load: JavaPriorityQueue[_Process]
    ) -> bool:
        """Give a standby to the least loaded process without the task; returns whether there is
        such a process."""
        having: list[_Process] = []
        process = by_load.poll()
        while task in process.tasks and by_load:
            having.append(process)
            process = by_load.poll()
        is_free = task not in process.tasks
        if is_free:
            self._total_quota.member_has(process.add_to_least_loaded(task, is_active=False))
        for each in (process, *reversed(having)):
            by_load.add(each)
        return is_free
