"""`python -m bench`: this cluster and its peers in one sitting, to docs/benchmarks.md.

Owns: the command line, the order of the runs, what is printed meanwhile.  Never: measures.

In each run every system has its turn, alone; the one that begins changes from run to run.  A system
or a step that fails is told, and the rest goes on.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Sequence

from bench import report, results
from bench.figures import FIGURES, GROUPS, OURS, SYSTEMS, Figure, chosen
from bench.ours import visit_ours
from bench.processes import ROOT, allow_many_files, command_output, end_on_sigterm, machine
from bench.systems import System, all_systems
from bench.visit import FULL, QUICK, Log, Progress, Sizes, visit
from kcluster import __version__, build

QUICK_RUNS = 1
FULL_RUNS = 5


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line, checked."""
    groups = "; ".join(f"{name}: {text}" for name, text in GROUPS.items())
    parser = argparse.ArgumentParser("python -m bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, metavar="N", help=f"runs of each ({FULL_RUNS})")
    parser.add_argument("--mb", type=int, help="size of the produce load (200)")
    parser.add_argument("--quick", action="store_true", help="one short run, nothing is written")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="of " + ",".join(SYSTEMS))
    parser.add_argument("--figures", default="", help=f"groups or figures; {groups}")
    parser.add_argument("--keep", action="store_true", help="keep other figures of the last time")
    parser.add_argument("--dry", action="store_true", help="print the tables, write nothing")
    options = parser.parse_args(arguments)
    options.systems = [word for word in options.systems.split(",") if word]
    unknown = [word for word in options.systems if word not in SYSTEMS]
    if unknown:
        parser.error(f"no system is called {unknown[0]!r}; there are {', '.join(SYSTEMS)}")
    try:
        options.figures = chosen([word for word in options.figures.split(",") if word])
    except ValueError as error:
        parser.error(str(error))
    options.runs = options.runs or (QUICK_RUNS if options.quick else FULL_RUNS)
    return options


class Clock:
    """Prints lines with the time since the start."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def say(self, line: str) -> None:
        passed_s = time.monotonic() - self._began_s
        print(f"[{passed_s // 60:3.0f}:{passed_s % 60:02.0f}] {line}", flush=True)

    def prefixed(self, prefix: str) -> Progress:
        return lambda line: self.say(f"{prefix} {line}")


def sizes_of(options: argparse.Namespace) -> Sizes:
    """How much of everything, from the command line."""
    base = QUICK if options.quick else FULL
    values = {name: getattr(base, name) for name in base.__struct_fields__}
    if options.mb:
        values["mb"] = options.mb
    return Sizes(**values)


def present(wanted: list[str], sitting: results.Sitting, clock: Clock) -> list[System]:
    """The systems that can be run; of the others, why not."""
    known = all_systems()
    there = []
    for name in wanted:
        why = known[name].lacks()
        if why:
            sitting.lacks(name, "all", why)
            clock.say(f"{name}: left out: {why}")
        else:
            there.append(known[name])
    return there


def keep(sitting: results.Sitting, system: str, log: Log) -> None:
    """Take over what a visit found."""
    sitting.add(system, log.values)
    for what, why in log.reasons.items():
        sitting.lacks(system, what, why)


def sit(options: argparse.Namespace, clock: Clock) -> results.Sitting:
    """All runs."""
    sizes = sizes_of(options)
    figures: list[Figure] = options.figures
    shared = {figure.key for figure in figures if figure.is_for_peers}
    own = {figure.key for figure in figures if not figure.is_for_peers}
    sitting = results.Sitting(
        datetime.date.today().isoformat(), options.runs, sizes.mb, options.quick, machine()
    )
    systems = present(options.systems, sitting, clock)
    sitting.versions = {system.name: system.version() for system in systems}
    sitting.versions["librdkafka (client)"] = _librdkafka()
    sitting.versions["gevent"] = _gevent()
    for run in range(options.runs):
        turn = f"run {run + 1}/{options.runs}"
        if shared:
            for at in range(len(systems)):
                system = systems[(run + at) % len(systems)]
                log = visit(system, shared, sizes, clock.prefixed(f"{turn} {system.name}:"))
                keep(sitting, system.name, log)
        if own and OURS in options.systems:
            keep(sitting, OURS, visit_ours(own, sizes, clock.prefixed(f"{turn} {OURS}:")))
    return sitting


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _gevent() -> str:
    import gevent

    return str(gevent.__version__)


def main(arguments: Sequence[str]) -> int:
    options = options_of(arguments)
    clock = Clock()
    allow_many_files()
    end_on_sigterm()
    commit = command_output(["git", "rev-parse", "--short", "HEAD"]) or "no commit"
    count = f"{len(options.figures)} of {len(FIGURES)} figures"
    clock.say(f"kcluster {__version__} ({commit}, {build()}), {count}")
    sitting = sit(options, clock)
    if options.keep and not options.quick:
        last = results.load()
        if last is not None:
            last.update(sitting)
            sitting = last
    text = report.render(sitting)
    if options.dry or options.quick:
        print(text)
        return 0
    results.save(sitting)
    report.write(results.DOCUMENT, "bench", text)
    clock.say(f"written: {_from_root(results.DOCUMENT)}, {_from_root(results.LATEST)}")
    return 0


def _from_root(path: object) -> str:
    return str(path).removeprefix(f"{ROOT}/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
