"""Users' programs beside a cluster in virtual time, as actions see them.

Owns: the port RunningPrograms, and its absence.  Never: runs a program (world/, testing/, cli/).
Kafka: no counterpart; kill -9 and -STOP of a client's process, and its supervisor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kcluster.config.files.problems import unknown
from kcluster.operations.errors import ClusterError

NO_PROGRAMS: Final = "no programs run here; kcluster simulate and kafka_cluster.run run some"


class RunningPrograms(Protocol):
    """The programs of one world; used in the driver's thread, which does not wait."""

    @property
    def names(self) -> Sequence[str]:
        """The programs, running or not, in the order of their first starts."""

    def is_running(self, name: str) -> bool:
        """Whether a program runs."""

    def kill(self, name: str) -> None:
        """Kill a program that runs, as SIGKILL does."""

    def start(self, name: str) -> None:
        """Start a program again that does not run; without effect once the world is over."""

    def pause(self, name: str) -> None:
        """Pause a program that runs, as SIGSTOP does; its connections stay open."""

    def resume(self, name: str) -> None:
        """Let a program go on; without effect if it is not paused."""

    def stall(self, name: str, share: float, longest_ms: int, line: str = "") -> None:
        """From now on, let threads of a program ("": of all) stand still at this share of the lines
        of its own code, each time for a drawn time up to `longest_ms`; 0: no more.  `line`: at this
        one alone (`billing.py:31`)."""

    def when_line(self, line: str, number: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once, when a program is about to execute this line of its own code
        (`billing.py:31`) for the `number`-th time from now.  It goes on after everything that is
        then due at once."""


class NoPrograms:
    """The programs of a cluster that has none beside it."""

    names: Sequence[str] = ()

    def is_running(self, name: str) -> bool:
        raise ClusterError(_none(name))

    def kill(self, name: str) -> None:
        raise ClusterError(_none(name))

    def start(self, name: str) -> None:
        raise ClusterError(_none(name))

    def pause(self, name: str) -> None:
        raise ClusterError(_none(name))

    def resume(self, name: str) -> None:
        raise ClusterError(_none(name))

    def stall(self, name: str, share: float, longest_ms: int, line: str = "") -> None:
        raise ClusterError(_none(name or "all"))

    def when_line(self, line: str, number: int, callback: Callable[[], None]) -> Callable[[], None]:
        raise ClusterError(f"{line}: {NO_PROGRAMS}")


def _none(name: str) -> str:
    return f"app {name}: {NO_PROGRAMS}"


def check_program(name: str, names: Sequence[str]) -> None:
    """Raise ClusterError if there is no such program."""
    if name not in names:
        raise ClusterError(f"app {name}: {unknown('program', name, names)}")
