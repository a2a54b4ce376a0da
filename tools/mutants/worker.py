"""A process with a mutated core, which plays schedules for the process that searches.

    python -m tools.mutants.worker FD

Owns: the commands of that process, and the limit of CPU time of one run.  Never: chooses a
schedule, decides whether a finding counts (measure.py does).  Kafka: no counterpart.

It is started with the file descriptor of a connection.  The first message is the texts of the
changed modules; then come (command, arguments), each answered with (result, CPU seconds).
"""

from __future__ import annotations

import signal
import sys
import time
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING, Final

from tools.mutants.loading import replace_modules

if TYPE_CHECKING:
    from kcluster.search.loop import FindingGroup
    from kcluster.search.report import Report
    from kcluster.search.schedule import Schedule
    from kcluster.search.trial import Trial

MAX_RUN_CPU_S: Final = 20.0
"""A run that takes longer hangs; most take a twentieth of this."""
TRIES: Final = 40
"""The most runs for shrinking: enough for the number of steps, not for the roundest moments."""


class HangError(RuntimeError):
    """A run took too much CPU time; it ends as a run does that breaks an assertion."""


def _on_timer(_number: int, _frame: FrameType | None) -> None:
    raise HangError(f"no end after {MAX_RUN_CPU_S:g} s of CPU time")


class Commands:
    """The commands, by the names of the methods.  The core is imported when the first one is
    made, after its modules were replaced."""

    def __init__(self) -> None:
        from tools.mutants import workloads

        self._workloads = workloads

    def play(self, workload: str, schedule: Schedule) -> Trial:
        """The trial of a schedule."""
        from kcluster.collector import collect_after_run
        from kcluster.search.trial import run_trial

        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_RUN_CPU_S)
        trial = run_trial(self._workloads.spaces(workload)[schedule.space], schedule)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        collect_after_run()
        return trial

    def examine(self, workload: str, found: FindingGroup) -> Report:
        """A finding, shrunk."""
        from kcluster.search.examine import examine

        space = self._workloads.spaces(workload)[found.example.schedule.space]
        return examine(space, found, TRIES, other_seeds=0)


def main(descriptor: int) -> None:
    """Answer commands until the connection ends."""
    connection = Connection(descriptor)
    replace_modules(connection.recv())
    signal.signal(signal.SIGVTALRM, _on_timer)
    commands = Commands()
    while True:
        try:
            command, arguments = connection.recv()
        except EOFError:
            return
        began_s = time.process_time()
        result = getattr(commands, command)(*arguments)
        connection.send((result, time.process_time() - began_s))


if __name__ == "__main__":
    main(int(sys.argv[1]))
