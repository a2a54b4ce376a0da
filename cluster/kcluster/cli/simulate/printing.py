"""The output of `kcluster simulate`: programs' lines, the cluster's events, the result.

Owns: the layout.  Never: runs or judges.
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from kcluster.cli.simulate.simulation import Simulated, Simulation, ends_lines
from kcluster.contract import Note
from kcluster.events.render import offset_text
from kcluster.plain_output import styled
from kcluster.scenario.report import head_line, noted_lines
from kcluster.world.output import ProgramOutput


class SimulationOutput:
    """The lines of one simulation, in the order of virtual time.

    `shows_events`: whether the cluster's events are among them.
    """

    def __init__(self, simulation: Simulation, shows_events: bool) -> None:
        self._simulation = simulation
        self._began_ms = simulation.began_us // 1000
        self._out = sys.stdout
        self._width = max(len(program.name) for program in simulation.setting.programs)
        self._notes: list[Note] = []
        if shows_events:
            simulation.on_note(self._notes.append)

    @contextmanager
    def programs(self) -> Iterator[Callable[[], None]]:
        """Route the programs' output through here, until the yielded function is called."""
        # A program's output is the user's own, colours included.
        outputs = styled(sys.stdout), styled(sys.stderr)
        streams = [ProgramOutput(output, self._prefix) for output in outputs]

        def finish() -> None:
            for stream in streams:
                stream.finish()

        try:
            with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
                yield finish
        finally:
            finish()
            self._show_events()

    def _prefix(self, app: str) -> str:
        self._show_events()
        self._out.flush()
        at = offset_text(self._simulation.now_ms, 0)
        return f"{at}  {app:<{self._width}} | "

    def _show_events(self) -> None:
        notes, self._notes[:] = self._notes[:], []
        for _, line in noted_lines(notes, self._began_ms):
            print(line, file=self._out)


def result_lines(simulated: Simulated) -> Iterator[str]:
    """The report at the end."""
    run = simulated.run
    yield from (f"  {line}" for line in run.verdict.lines())
    yield from (f"  {line}" for line in ends_lines(simulated))
    for failed in run.failed:
        first, *more = failed.text.splitlines()
        yield f"  FAILED {first}"
        yield from (f"  {line}" for line in more)
    yield f"  trace {run.trace_hash}, {simulated.trace.count} lines"
    yield f"  replay: {simulated.replay}"
    yield head_line(run)


def play(simulation: Simulation, shows_events: bool, say: Callable[[str], object]) -> Simulated:
    """Run a simulation and print it."""
    output = SimulationOutput(simulation, shows_events)
    say(f"brokers: {simulation.cluster.bootstrap}  (KCLUSTER_BOOTSTRAP)")
    with output.programs() as finish:
        simulated = simulation.play(on_over=finish)
    say("")
    for line in result_lines(simulated):
        say(line)
    return simulated
