"""`python -m bench`: measures this cluster and its peers, for docs/reference/benchmarks.md.

Owns: the command line, the order of the runs, progress output.  Never: measures (visit.py does).

In each run the systems take turns, one at a time; each run begins with another system.  A failed
system or step is reported, and the rest continues.
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
from bench.secured import SECURED, visit_secured
from bench.systems import System, all_systems
from bench.visit import FULL, QUICK, Log, Progress, Sizes, visit
from kcluster import __version__, build

QUICK_RUNS = 1
FULL_RUNS = 5


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line, checked."""
    groups = "; ".join(f"{name}: {text}" for name, text in GROUPS.items())
    parser = argparse.ArgumentParser("python -m bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, metavar="N", help=f"number of runs ({FULL_RUNS})")
    parser.add_argument("--mb", type=int, help="size of the produce load (200)")
    parser.add_argument("--quick", action="store_true", help="one short run, without writing files")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="some of " + ",".join(SYSTEMS))
    parser.add_argument("--figures", default="", help=f"groups or figures; {groups}")
    parser.add_argument(
        "--keep", action="store_true", help="keep other figures of the last session"
    )
    parser.add_argument("--dry", action="store_true", help="print the tables, write nothing")
    options = parser.parse_args(arguments)
    options.systems = [word for word in options.systems.split(",") if word]
    unknown = [word for word in options.systems if word not in SYSTEMS]
    if unknown:
        parser.error(f"unknown system {unknown[0]!r}; the systems are {', '.join(SYSTEMS)}")
    try:
        options.figures = chosen([word for word in options.figures.split(",") if word])
    except ValueError as error:
        parser.error(str(error))
    options.runs = options.runs or (QUICK_RUNS if options.quick else FULL_RUNS)
    return options


class ProgressPrinter:
    """Prints lines with the time since the start."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def print_line(self, line: str) -> None:
        passed_s = time.monotonic() - self._began_s
        print(f"[{passed_s // 60:3.0f}:{passed_s % 60:02.0f}] {line}", flush=True)

    def prefixed(self, prefix: str) -> Progress:
        return lambda line: self.print_line(f"{prefix} {line}")


def sizes_of(options: argparse.Namespace) -> Sizes:
    """The sizes of all loads, from the command line."""
    base = QUICK if options.quick else FULL
    values = {name: getattr(base, name) for name in base.__struct_fields__}
    if options.mb:
        values["mb"] = options.mb
    return Sizes(**values)


def present(wanted: list[str], session: results.Session, clock: ProgressPrinter) -> list[System]:
    """The systems that can be run; the session gets the reasons for the others."""
    known = all_systems()
    available = []
    for name in wanted:
        reason = known[name].missing_requirement()
        if reason:
            session.add_missing(name, "all", reason)
            clock.print_line(f"{name}: left out: {reason}")
        else:
            available.append(known[name])
    return available


def keep(session: results.Session, system: str, log: Log) -> None:
    """Add the results of a visit to the session."""
    session.add(system, log.values)
    for what, reason in log.reasons.items():
        session.add_missing(system, what, reason)


def run_session(options: argparse.Namespace, clock: ProgressPrinter) -> results.Session:
    """All runs."""
    sizes = sizes_of(options)
    figures: list[Figure] = options.figures
    shared = {figure.key for figure in figures if figure.is_for_peers}
    secured = {figure.key for figure in figures if figure.group == "secured"}
    own = {figure.key for figure in figures if not figure.is_for_peers} - secured
    session = results.Session(
        datetime.date.today().isoformat(), options.runs, sizes.mb, options.quick, machine()
    )
    systems = present(options.systems, session, clock)
    session.versions = {system.name: system.version() for system in systems}
    session.versions["librdkafka (client)"] = _librdkafka()
    session.versions["gevent"] = _gevent()
    for run in range(options.runs):
        turn = f"run {run + 1}/{options.runs}"
        if shared:
            for at in range(len(systems)):
                system = systems[(run + at) % len(systems)]
                log = visit(system, shared, sizes, clock.prefixed(f"{turn} {system.name}:"))
                keep(session, system.name, log)
        if secured:
            both = [system.name for system in systems if system.name in SECURED]
            for at in range(len(both)):
                name = both[(run + at) % len(both)]
                printed = clock.prefixed(f"{turn} {name}, secured:")
                keep(session, name, visit_secured(name, secured, sizes, printed))
        if own and OURS in options.systems:
            keep(session, OURS, visit_ours(own, sizes, clock.prefixed(f"{turn} {OURS}:")))
    return session


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _gevent() -> str:
    import gevent

    return str(gevent.__version__)


def main(arguments: Sequence[str]) -> int:
    options = options_of(arguments)
    clock = ProgressPrinter()
    allow_many_files()
    end_on_sigterm()
    commit = command_output(["git", "rev-parse", "--short", "HEAD"]) or "no commit"
    count = f"{len(options.figures)} of {len(FIGURES)} figures"
    clock.print_line(f"kcluster {__version__} ({commit}, {build()}), {count}")
    session = run_session(options, clock)
    if options.keep and not options.quick:
        last = results.load()
        if last is not None:
            last.update(session)
            session = last
    text = report.render(session)
    if options.dry or options.quick:
        print(text)
        return 0
    results.save(session)
    report.write(results.DOCUMENT, "bench", text)
    clock.print_line(f"written: {_from_root(results.DOCUMENT)}, {_from_root(results.LATEST)}")
    return 0


def _from_root(path: object) -> str:
    return str(path).removeprefix(f"{ROOT}/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
