"""Sets of tasks, and their form in requests, answers and records.

Owns: `Task`, `Tasks` (active, standby, warmup), `HeldTasks` (with the epochs at which active tasks
were assigned).  Never: assigns a task.  Kafka: TaskId, TasksTuple, TasksTupleWithEpochs.

A task is a subtopology and a partition of its source topics.  An active task processes records and
commits; a standby keeps a copy of its state; a warmup prepares one.
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
    """Tasks of one subtopology, in the form of all messages and records."""

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
