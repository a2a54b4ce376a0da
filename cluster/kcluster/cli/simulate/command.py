"""The work of `kcluster simulate` for its command line: one run, many, or two to compare.

Owns: the choice among these, the files that are written.  Never: parses options (options.py), runs
a program (simulation.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from kcluster.cli.errors import CommandError
from kcluster.cli.interrupts import leave_on_second_interrupt
from kcluster.cli.simulate.hash_seed import report_hash_seed
from kcluster.cli.simulate.many import check_determinism, run_many
from kcluster.cli.simulate.options import SimulateOptions, SimulationSetting, setting_of, source_of
from kcluster.cli.simulate.printing import play
from kcluster.cli.simulate.replay import replay_command
from kcluster.cli.simulate.simulation import Simulated, Simulation
from kcluster.cli.writing import writing
from kcluster.handle.world_cluster import WorldCluster
from kcluster.runs.directory import write_run
from kcluster.runs.whole_files import SHARED, replacing
from kcluster.world.imports import import_libraries
from kcluster.world.programs import folder_of
from kcluster.world.world import START_MS, World


def run(options: SimulateOptions) -> int:
    """Run the simulation; returns the exit code."""
    setting = setting_of(options)
    report_hash_seed()
    for name, programs in setting.shared.items():
        text = f"share the module {name}: a variable in it is the same for all of them"
        print(f"kcluster: the programs {', '.join(programs)} {text}", file=sys.stderr)
    leave_on_second_interrupt()
    if options.check_determinism:
        _refuse(options, "--check-determinism", ("seeds", "out", "trace"))
        return check_determinism()
    _import_libraries(setting)
    if options.seeds is None:
        return _simulate(options, setting)
    _refuse(options, "--seeds", ("trace",))
    brief = replace(options, out=None)
    _warm_up(setting)
    seeds = range(setting.seed, setting.seed + options.seeds)
    return run_many(
        seeds,
        lambda seed: _simulate(brief, replace(setting, seed=seed)),
        # Only the first seed that fails gets a run directory.
        None
        if options.out is None
        else lambda seed: _simulate(options, replace(setting, seed=seed)),
    )


def prepare(setting: SimulationSetting) -> None:
    """Do once, in this process, what each child for a seed would repeat."""
    _import_libraries(setting)
    _warm_up(setting)


def _import_libraries(setting: SimulationSetting) -> None:
    sources = [source_of(program) for program in setting.programs]
    import_libraries(sources, [folder_of(program) for program in setting.programs])


def _warm_up(setting: SimulationSetting) -> None:
    """Do once, here, the work that each child would repeat."""
    cluster = WorldCluster(setting.scenario.topology, setting.seed, start_ms=START_MS)
    cluster.open()
    with World(cluster.driver):
        pass
    cluster.close()


def _refuse(options: SimulateOptions, option: str, others: tuple[str, ...]) -> None:
    for other in others:
        if getattr(options, other) is not None:
            text = f"--{other} is for one run; leave it out, and replay the seed of interest"
            raise CommandError(f"{option}: {text}", 2)


def _simulate(options: SimulateOptions, setting: SimulationSetting) -> int:
    replay = replay_command(options, setting.seed)
    simulation = Simulation(setting, replay, keeps_trace=options.trace is not None)
    simulated = play(simulation, not options.quiet, print)
    _write(options, simulation, simulated)
    return simulated.exit_code


def _write(options: SimulateOptions, simulation: Simulation, simulated: Simulated) -> None:
    if options.trace is not None:
        with writing(options.trace), replacing(Path(options.trace), SHARED) as trace:
            trace.write("\n".join([*simulation.trace_lines, ""]).encode())
    if options.out is not None:
        with writing(options.out):
            path = write_run(options.out, simulated.record())
        print(f"run directory: {path}  (kcluster explain {path})")
