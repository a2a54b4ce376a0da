"""The programs of a simulation, for `kill`, `start`, `pause` and `resume` of its scenario's steps.

Owns: the events of kills, starts and pauses.  Never: ends a program (world/programs.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kcluster.events.programs import ProgramKilled, ProgramPaused, ProgramResumed, ProgramStarted
from kcluster.operations.programs import check_program
from kcluster.runtime.dispatch import Dispatcher
from kcluster.world.programs import Programs


class NotedPrograms:
    """RunningPrograms of operations/programs.py."""

    def __init__(self, programs: Programs, dispatcher: Dispatcher) -> None:
        self._programs = programs
        self._dispatcher = dispatcher
        self._lives: dict[str, int] = {}

    @property
    def names(self) -> Sequence[str]:
        return self._programs.names

    def is_running(self, name: str) -> bool:
        check_program(name, self.names)
        return self._programs.is_running(name)

    def kill(self, name: str) -> None:
        check_program(name, self.names)
        self._dispatcher.note(ProgramKilled(name))
        self._programs.kill(name)

    def start(self, name: str) -> None:
        check_program(name, self.names)
        life = self._lives[name] = self._lives.get(name, 1) + 1
        self._dispatcher.note(ProgramStarted(name, life))
        self._programs.start(name)

    def pause(self, name: str) -> None:
        check_program(name, self.names)
        self._programs.pause(name)
        self._dispatcher.note(ProgramPaused(name))

    def resume(self, name: str) -> None:
        check_program(name, self.names)
        if self._programs.resume(name):
            self._dispatcher.note(ProgramResumed(name))

    def stall(self, name: str, share: float, longest_ms: int, line: str = "") -> None:
        if name:
            check_program(name, self.names)
        self._programs.stall(name, share, longest_ms * 1000, line)

    def when_line(self, line: str, number: int, callback: Callable[[], None]) -> Callable[[], None]:
        return self._programs.when_line(line, number, callback)
