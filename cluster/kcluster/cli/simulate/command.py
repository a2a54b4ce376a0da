"""What `kcluster simulate` does with its command line: one run, many, or two to compare.

Owns: which of them, the files that are written.  Never: parses options (options.py), runs a program
(simulation.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path

from kcluster.cli.control.protocol import ControlError
from kcluster.cli.simulate.hash_seed import fix_hash_seed
from kcluster.cli.simulate.options import SimulateOptions, setting_of, source_of
from kcluster.cli.simulate.printing import play
from kcluster.cli.simulate.replay import replay_command
from kcluster.cli.simulate.simulation import Simulated, Simulation
from kcluster.runs.directory import write_run
from kcluster.world.imports import import_libraries
from kcluster.world.programs import folder_of


def run(options: SimulateOptions) -> int:
    """Run; returns the exit code."""
    setting = setting_of(options)
    fix_hash_seed()
    sources = [source_of(program) for program in setting.programs]
    import_libraries(sources, [folder_of(program) for program in setting.programs])
    simulation = Simulation(setting, replay_command(options, setting.seed))
    simulated = play(simulation, not options.quiet, print)
    _write(options, simulated)
    return simulated.exit_code


def _write(options: SimulateOptions, simulated: Simulated) -> None:
    if options.trace is not None:
        try:
            Path(options.trace).write_text("\n".join([*simulated.trace.lines, ""]))
        except OSError as error:
            text = f"{options.trace}: cannot be written: {error.strerror}"
            raise ControlError(text, 2) from None
    if options.out is not None:
        path = write_run(options.out, simulated.record())
        print(f"run directory: {path}  (kcluster page {path})")
