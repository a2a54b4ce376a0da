"""Sets of tasks, their form in requests, answers and records, and the processes that hold them.

Owns: `Task`, `Tasks` (active, standby, warmup), `HeldTasks` (with the epochs at which active tasks
were assigned); `Holders`, kept up to date as members' assignments change.  Never: assigns a task.
Kafka: TaskId, TasksTuple, TasksTupleWithEpochs; StreamsGroup.currentActiveTaskToProcessId and its
siblings.

A task is a subtopology and a partition of its source topics.  An active task processes records and
commits; a standby keeps a copy of its state; a warmup prepares one.  A task counts as held until
its member no longer reports it, even if it is asked to give it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from msgspec import Struct


class Task(NamedTuple):
    """A task; ordered by subtopology, then partition."""

    subtopology_id: str
    partition: int


TaskSet = frozenset[Task]

NO_TASKS: Final[TaskSet] = frozenset()


class TaskIds(Protocol):
    """Tasks of one subtopology, in the form that all messages and records use."""

    subtopology_id: str
    partitions: list[int]


class Tasks(Struct, frozen=True):
    """Tasks of one member by role."""

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS


NOTHING: Final = Tasks()


class HeldTasks(Struct, frozen=True):
    """Tasks that a member holds, or must still give back."""

    active: dict[Task, int] = {}
    """Active tasks with the epoch at which each was assigned: a commit of an earlier epoch is
    refused."""
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def intersects(self, tasks: Tasks) -> bool:
        """Whether one of `tasks` is held, in its role."""
        return not (
            tasks.active.isdisjoint(self.active)
            and tasks.standby.isdisjoint(self.standby)
            and tasks.warmup.isdisjoint(self.warmup)
        )

    def contains(self, tasks: Tasks) -> bool:
        """Whether all `tasks` are held, in their roles."""
        return (
            tasks.active.issubset(self.active)
            and tasks.standby <= self.standby
            and tasks.warmup <= self.warmup
        )

    def with_more(self, other: HeldTasks) -> HeldTasks:
        return HeldTasks(
            self.active | other.active, self.standby | other.standby, self.warmup | other.warmup
        )


NOTHING_HELD: Final = HeldTasks()


# -------------------------------------------------------------------------------- on wire


def tasks_of(listed: Iterable[TaskIds] | None) -> TaskSet:
    return frozenset(
        Task(each.subtopology_id, partition)
        for each in listed or ()
        for partition in each.partitions
    )


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Partitions by subtopology, both in order."""
    listed: dict[str, list[int]] = {}
    for task in sorted(tasks):
        listed.setdefault(task.subtopology_id, []).append(task.partition)
    return listed


def epochs_of(tasks: Mapping[Task, int]) -> dict[str, list[int]]:
    """Assignment epochs in the order of `by_subtopology`."""
    listed: dict[str, list[int]] = {}
    for task in sorted(tasks):
        listed.setdefault(task.subtopology_id, []).append(tasks[task])
    return listed


class Holders:
    """The process that has a task active, and the processes with a copy, by task."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[Task, str] = {}
        self._standby: dict[Task, set[str]] = {}
        self._warmup: dict[Task, set[str]] = {}

    def active(self, task: Task) -> str | None:
        """The process that has the task active."""
        return self._active.get(task)

    def has_copy(self, process_id: str, task: Task) -> bool:
        """Whether the process has the task as standby or warmup."""
        return process_id in self._standby.get(task, ()) or process_id in self._warmup.get(task, ())

    def has(self, process_id: str, task: Task) -> bool:
        """Whether the process has the task in any role."""
        return self._active.get(task) == process_id or self.has_copy(process_id, task)

    def add(self, held: HeldTasks, process_id: str) -> None:
        for task in held.active:
            self._active[task] = process_id
        _add(self._standby, held.standby, process_id)
        _add(self._warmup, held.warmup, process_id)

    def remove(self, held: HeldTasks, process_id: str) -> None:
        """Remove a holder of an active task, unless another process has become the holder."""
        for task in held.active:
            if self._active.get(task) == process_id:
                del self._active[task]
        _remove(self._standby, held.standby, process_id)
        _remove(self._warmup, held.warmup, process_id)


def _add(holders: dict[Task, set[str]], tasks: TaskSet, process_id: str) -> None:
    for task in tasks:
        holders.setdefault(task, set()).add(process_id)


def _remove(holders: dict[Task, set[str]], tasks: TaskSet, process_id: str) -> None:
    for task in tasks:
        holders.get(task, set()).discard(process_id)
        if not holders.get(task):
            holders.pop(task, None)
