"""The processes of a streams group that hold each task.

Owns: `Holders`, kept up to date as members' assignments change.  Never: assigns a task.  Kafka:
StreamsGroup.currentActiveTaskToProcessId and its siblings.

A task counts as held until its member no longer reports it, even if the member has been asked to
give the task back.
"""

from __future__ import annotations

from kcluster.broker.coordinator.streams.tasks import HeldTasks, Task, TaskSet


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
