"""One test with many seeds: each runs in a forked child, with the whole report of the first failing
seed.

Owns: the division of a test between this process and a child, the return of reports.  Never: forks
itself (world/seeds.py does), knows a fixture.  Kafka: no counterpart.

Fixtures of a wider scope than the test are made here, once, before the first child: the children
share them, and none of them ends one.  Everything else of the test runs in the children, so that
each begins with the state of the process before the first seed.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from _pytest.runner import runtestprotocol
from _pytest.skipping import evaluate_skip_marks
from msgspec import Struct

from kcluster.runs.directory import free_directory, link_latest
from kcluster.testing.items import (
    FIXTURE,
    KEEP_GOING,
    MARK,
    SEED,
    SEED_LIMIT_INI,
    TRACE,
    TRACE_FILE,
    replay_of,
    wide_fixtures,
)
from kcluster.testing.marks import arguments_of
from kcluster.testing.reports import PENDING_RUNS, runs_directory
from kcluster.testing.seed_tally import SeedTally, reason_of
from kcluster.testing.seed_warnings import SeedWarning, WarningsOfSeeds, noting_warnings
from kcluster.testing.temporary import give_own_directory, make_session_directory
from kcluster.testing.trace_file import write_trace
from kcluster.testing.world_handle import TestedWorldCluster
from kcluster.world.seeds import WHERE_SIGNAL, SeedOutcome, SeedResult, cores, run_seeds

STOPS: Final = (pytest.exit.Exception, KeyboardInterrupt)
_WORKERS: Final = "PYTEST_XDIST_WORKER_COUNT"


def run_with_seeds(item: pytest.Item, nextitem: pytest.Item | None, seeds: range) -> None:
    """Run an item with its seeds; returns the reports of the first failed seed or, if none failed,
    of the first seed."""
    run_in_children(item, nextitem, lambda: _run_seeds(item, seeds))


def run_in_children(
    item: pytest.Item,
    nextitem: pytest.Item | None,
    run: Callable[[], tuple[SeedOutcome | None, list[pytest.TestReport]]],
) -> None:
    """Run an item: `run` runs its unshared part in children, and returns the failed seed, if it can
    be run again here, and the reports."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    warming = pytest.CallInfo.from_call(lambda: _warm_up(item), "setup", STOPS)
    if warming.excinfo is not None or not warming.result:
        runtestprotocol(item, nextitem=nextitem)  # the item is skipped, or fails here
    else:
        # A child cannot cancel its parent's timers; hanging children are noticed by the parent.
        faulthandler.cancel_dump_traceback_later()
        began_s = time.perf_counter()
        failed, reports = run()
        if failed is not None and item.config.getoption("usepdb", False):
            item.stash[SEED] = failed.seed
            runtestprotocol(item, nextitem=nextitem)  # runs here, where a debugger can be used
        else:
            _tell(item, reports, time.perf_counter() - began_s)
            _end_wider_fixtures(item, nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _warm_up(item: pytest.Item) -> bool:
    """Make everything that all children share: wider fixtures, and the modules of the first world
    of a process. Returns whether there is a test to run."""
    assert isinstance(item, pytest.Function), item
    if evaluate_skip_marks(item) is not None:
        return False
    state = item.session._setupstate
    upper: Any = item.parent  # passed as the next item, so that its fixtures stay
    names = item.fixturenames
    own = names[:]
    request: object = item._request
    if not request:  # the item was run before
        item._initrequest()
    with _captured(item, "setup"):
        names[:] = wide_fixtures(item)
        try:
            state.setup(item)
        finally:
            names[:] = own
            state.teardown_exact(upper)
            item._initrequest()
    make_session_directory(item)
    if FIXTURE in names:
        arguments = arguments_of(item.get_closest_marker(MARK), "virtual")
        cluster = TestedWorldCluster(arguments, item.name)
        cluster.open()
        cluster.close()
    return True


def _captured(item: pytest.Item, when: str) -> Any:
    """A context in which pytest captures output for the item's report."""
    return item.config.pluginmanager.getplugin("capturemanager").item_capture(when, item)


def _run_seeds(
    item: pytest.Item, seeds: range
) -> tuple[SeedOutcome | None, list[pytest.TestReport]]:
    """The first seed that failed, and the reports."""
    first: list[SeedOutcome] = []
    warned = WarningsOfSeeds()
    tally = SeedTally()

    def keep(outcome: SeedOutcome) -> None:
        if outcome.seed == seeds[0]:
            first.append(outcome)
        report = ChildReport() if outcome.result is None else _child_report(outcome.result)
        warned.add(outcome.seed, report.warnings)
        tally.add(outcome.seed, _reason(outcome, report) if outcome.failed else None)

    runs = runs_directory(item.config)
    pending = runs / f".seeds-{os.getpid()}"
    try:
        outcome = run_seeds(
            seeds,
            _in_child(item, seeds[0], pending),
            workers=workers_of(),
            limit_s=float(item.config.getini(SEED_LIMIT_INI)),
            on_outcome=keep,
            keeps_going=item.config.getoption(KEEP_GOING),
        )
        failed = outcome.first_failed
        warned.report(item, None if failed is None else failed.seed)
        if failed is None:
            _keep_trace(item, first[0])
            return None, _first_reports(item, first[0].result)
        reports = _with_seed(item, failed, seeds)
        if item.config.getoption(KEEP_GOING):
            text = "\n".join(tally.lines(len(seeds)))
            for report in reports:
                if report.failed:
                    report.sections.append(("all seeds", text))
        _keep_trace(item, failed)
        keep_runs(pending / str(failed.seed), runs, reports)
        return failed, reports
    except KeyboardInterrupt:
        say(item, f"{item.nodeid}: {tally.interrupted(len(seeds))}")
        raise
    finally:
        shutil.rmtree(pending, ignore_errors=True)


def keep_runs(pending: Path, runs: Path, reports: Iterable[pytest.TestReport]) -> None:
    """Move the run directories of the reported seed to their place; the directories of other seeds,
    which ran beside it, are deleted."""
    for written in sorted(pending.iterdir()) if pending.is_dir() else ():
        if written.is_symlink():
            continue  # "latest"
        kept = free_directory(runs, written.name)
        written.replace(kept)
        link_latest(kept)
        for report in reports:
            report.sections = [
                (title, text.replace(str(written), str(kept))) for title, text in report.sections
            ]


def _in_child(item: pytest.Item, first: int, pending: Path) -> Callable[[int], SeedResult]:
    """Run the item in a child.  `pending`: each child has a directory below it for its run
    directories."""

    def run(seed: int) -> SeedResult:
        item.stash[PENDING_RUNS] = pending / str(seed)
        with noting_warnings() as noted:
            reports = run_as_child(item, seed, f"seed-{seed}")
        failed = any(report.failed for report in reports)
        rows = rows_of(item, reports) if failed or seed == first else []
        trace = item.stash.get(TRACE, []) if failed or seed == first else []
        report = ChildReport(rows, noted, trace)
        return SeedResult(failed, msgspec.json.encode(report, enc_hook=str))

    return run


class ChildReport(Struct, frozen=True):
    """The report of a child.  `rows`: pytest's reports as plain values, if the reports will be
    shown; `trace`: the frames, if the command line asks for them."""

    rows: list[Any] = []
    warnings: list[SeedWarning] = []
    trace: list[str] = []


def _child_report(result: SeedResult) -> ChildReport:
    """The report of a child; empty if the child reports an error outside of the test, as text."""
    try:
        return msgspec.json.decode(result.report, type=ChildReport)
    except msgspec.DecodeError:
        return ChildReport()


def say(item: pytest.Item, line: str) -> None:
    """Print a line of its own to the terminal of the session, if there is one."""
    terminal = item.config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.ensure_newline()
        terminal.write_line(line)


def workers_of() -> int:
    """The number of children at a time: the cores, shared with other workers of pytest-xdist."""
    return max(1, cores() // int(os.environ.get(_WORKERS, "1")))


def _keep_trace(item: pytest.Item, shown: SeedOutcome) -> None:
    """Write the trace of the reported seed, if the command line asks for it."""
    if item.config.getoption(TRACE_FILE) is not None and shown.result is not None:
        write_trace(item, _child_report(shown.result).trace, shown.seed)


def _reason(outcome: SeedOutcome, report: ChildReport) -> str:
    """Why a seed failed, in a line."""
    for row in report.rows:
        if row.get("outcome") == "failed":
            return reason_of(row.get("longrepr"))
    return outcome.ended or "an error outside of the test"


def _first_reports(item: pytest.Item, result: SeedResult | None) -> list[pytest.TestReport]:
    assert result is not None, "it ended with a result"
    return reports_of(item, _child_report(result).rows)


def run_as_child(item: pytest.Item, seed: int, name: str) -> list[pytest.TestReport]:
    """Run an item in a process that was forked for it, whose output goes to a file.  `name`: the
    child's name, which no other child of the item has."""
    capture = item.config.pluginmanager.getplugin("capturemanager")
    # Captured output goes to files; a child shares none with its parent and the other children.
    kept = os.dup(1)
    capture.stop_global_capturing()
    os.dup2(kept, 1)
    os.dup2(kept, 2)
    faulthandler.enable(kept)
    faulthandler.register(WHERE_SIGNAL, kept)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    item.stash[SEED] = seed
    give_own_directory(item, name)
    # Its parent is passed as the next item, so only the test's own fixtures end.
    upper: Any = item.parent
    return runtestprotocol(item, log=False, nextitem=upper)


def rows_of(item: pytest.Item, reports: Iterable[pytest.TestReport]) -> list[Any]:
    """Reports as plain values."""
    config = item.config
    return [config.hook.pytest_report_to_serializable(config=config, report=x) for x in reports]


def reports_of(item: pytest.Item, rows: Iterable[object]) -> list[pytest.TestReport]:
    """Reports from plain values."""
    config = item.config
    reports: list[pytest.TestReport] = []
    for row in rows:
        report = config.hook.pytest_report_from_serializable(config=config, data=row)
        report.location = tuple(report.location)
        report.user_properties = [(name, value) for name, value in report.user_properties]
        if isinstance(report.longrepr, list):  # of a skipped test: file, line, reason
            report.longrepr = tuple(report.longrepr)
        reports.append(report)
    return reports


def _with_seed(item: pytest.Item, failed: SeedOutcome, seeds: range) -> list[pytest.TestReport]:
    """The reports of the seed that failed, with the seed in them."""
    which = f"seed {failed.seed}, number {seeds.index(failed.seed) + 1} of {len(seeds)}"
    result = failed.result
    printed = failed.output.decode(errors="replace")
    reports = [] if result is None else _first_reports(item, result)
    if result is not None and not reports:  # an error outside of the test, as text
        printed = f"{result.report.decode(errors='replace')}\n{printed}"
    if not reports:
        replay = f"replay: {replay_of(item, failed.seed)}"
        text = f"{which}: the process {failed.ended or 'failed'}\n{replay}"
        reports = failed_with(item, text)
    for report in reports:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            if crash is not None:
                crash.message = f"{which}: {crash.message}"
            report.sections.append(("seeds", f"{which}, is the first that fails"))
            if printed:
                report.sections.append((f"Printed with seed {failed.seed}", printed))
    return reports


def failed_with(item: pytest.Item, text: str) -> list[pytest.TestReport]:
    """The reports of an item that failed without a traceback."""
    keywords = dict.fromkeys(item.keywords, 1)
    place = (item.nodeid, item.location, keywords)
    return [
        pytest.TestReport(*place, "passed", None, "setup"),
        pytest.TestReport(*place, "failed", text, "call"),
    ]


def _tell(item: pytest.Item, reports: Iterable[pytest.TestReport], took_s: float) -> None:
    for report in reports:
        if report.when == "call":
            report.duration = took_s
        item.ihook.pytest_runtest_logreport(report=report)


def _end_wider_fixtures(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the wider fixtures that the next item does not use."""
    state = item.session._setupstate
    with _captured(item, "teardown"):
        call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), "teardown", STOPS)
    if call.excinfo is not None:
        report = pytest.TestReport.from_item_and_call(item, call)
        item.ihook.pytest_runtest_logreport(report=report)
