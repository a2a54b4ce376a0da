"""The work of `kcluster search`.

Owns: what is searched, the time limit, the processes, the output, the files of a search.  Never:
chooses or runs a schedule, shrinks, words a finding (search/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from kcluster.cli.click_tools import fail, print_json
from kcluster.cli.errors import CommandError
from kcluster.cli.interrupts import INTERRUPTED
from kcluster.cli.progress_bar import BAR, TIME_LEFT, progress_bar
from kcluster.cli.work.scenario_files import one_scenario
from kcluster.cli.writing import writing
from kcluster.collector import collect_after_run, collect_rarely
from kcluster.config.files.tree import Map, from_yaml
from kcluster.runs.whole_files import SHARED, replacing
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.writing import text_of_scenario
from kcluster.scenario.library import searched_paths
from kcluster.search.around import around_topology
from kcluster.search.examine import examine
from kcluster.search.findings import NAMES
from kcluster.search.kept import KeptError, read_into, text_of
from kcluster.search.loop import BATCH, FindingGroup, ScheduleSearch
from kcluster.search.report import Report, scenario_to_write
from kcluster.search.schedule import Schedule, Space
from kcluster.search.spaces import searched_space
from kcluster.search.trial import Trial, run_trial
from kcluster.search.words import (
    ANY,
    comment,
    report_lines,
    report_values,
    story,
    summary_text,
    unknown_name,
)
from kcluster.world.seeds import cores

ALL: Final = "all"
"""The name of a search in all scenarios that ship for searches."""
KEPT: Final = "search.json"
SAVE_EVERY_S: Final = 20


class SearchOptions(Struct, frozen=True):
    """The options of the verb."""

    seconds: float | None
    runs: int | None
    seed: int
    stop_on: tuple[str, ...]
    out: str | None
    plain: bool
    as_json: bool


class Machines(Struct, frozen=True):
    """What plays the runs: `jobs` processes of this machine, None for one per core, or the workers
    of a `master` of Spark."""

    jobs: int | None = None
    master: str | None = None
    ship_env: bool = False


class Players(Protocol):
    """What plays schedules."""

    def play(self, schedules: Sequence[Schedule]) -> Iterator[Trial]:
        """The trials of schedules, in their order."""


def search(word: str | None, options: SearchOptions, machines: Machines) -> None:
    """Search, and end the process with the exit code."""
    unknown = [name for name in options.stop_on if name not in (*NAMES, ANY)]
    if unknown:
        fail(CommandError(unknown_name(unknown[0]), 2), options.as_json)
    scenarios = _scenarios(word, options)
    spaces = [searched_space(one) for one in scenarios]
    found = ScheduleSearch(spaces, options.seed, guided=not options.plain)
    directory = directory_of(scenarios[0].name if word else ALL, options.out)
    if options.out is not None:
        _go_on(found, directory / KEPT, options.as_json)
    with _players(spaces, machines) as players:
        try:
            _Session(found, players, options, directory).go()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
    sys.exit(1 if found.found else 0)


# ---------------------------------------------------------------------------- what is searched


def _scenarios(word: str | None, options: SearchOptions) -> list[Scenario]:
    """The scenarios that a word stands for: a file or a name, or workloads around a topology;
    without a word, all that ship for searches."""
    try:
        if word is None:
            return [Scenario.load(path) for path in searched_paths()]
        if _is_topology(word):
            return _around(word, options.seed)
        return [one_scenario(word)]
    except CommandError as error:
        fail(error, options.as_json)
    except ScenarioError as error:
        fail(CommandError(str(error), 2), options.as_json)


def _is_topology(word: str) -> bool:
    if not Path(word).is_file():
        return False
    root, _ = from_yaml(Path(word).read_text("utf-8", "replace"), word)
    return isinstance(root, Map) and "brokers" in root.entries and "topology" not in root.entries


def _around(word: str, seed: int) -> list[Scenario]:
    """The scenarios around the topology of a file."""
    node, problems = from_yaml(Path(word).read_text("utf-8", "replace"), word)
    assert isinstance(node, Map)
    return around_topology(node, word, problems, seed)


def _go_on(found: ScheduleSearch, file: Path, as_json: bool) -> None:
    """Go on with the search that is kept in a file, if there is one."""
    if not file.exists():
        return
    try:
        read_into(found, file.read_bytes())
    except KeptError as error:
        fail(CommandError(f"{file}: {error}; name another --out", 2), as_json)
    except OSError as error:
        fail(CommandError(f"{file}: {error.strerror}", 2), as_json)


# ------------------------------------------------------------------------------- what plays


@contextmanager
def _players(spaces: Sequence[Space], machines: Machines) -> Iterator[Players]:
    if machines.master is None:
        with _Workers(spaces, machines.jobs or cores()) as workers:
            yield workers
        return
    from kcluster.cli.work.search_on_spark import spark_players

    with spark_players(spaces, machines.master, ship_env=machines.ship_env) as players:
        yield players


_spaces: Sequence[Space] = ()
"""What a process of the search plays."""


def _begin(spaces: Sequence[Space]) -> None:
    """Begin a process that plays schedules: Ctrl-C is for the process that searches."""
    global _spaces
    _spaces = spaces
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()


def _play(schedule: Schedule) -> Trial:
    trial = run_trial(_spaces[schedule.space], schedule)
    collect_after_run()
    return trial


class _Workers:
    """The processes that play schedules and shrink; with one job there is none but this one."""

    def __init__(self, spaces: Sequence[Space], jobs: int) -> None:
        self._spaces = spaces
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            context = get_context("fork" if sys.platform.startswith("linux") else "spawn")
            self._pool = ProcessPoolExecutor(jobs, context, _begin, (spaces,))

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            # Python's own wait at exit writes to a pipe that the pool may have closed by then.
            self._pool.shutdown(cancel_futures=True)

    def play(self, schedules: Sequence[Schedule]) -> Iterator[Trial]:
        """The trials of schedules, in their order."""
        if self._pool is not None:
            yield from self._pool.map(_play, schedules)
            return
        for schedule in schedules:
            yield run_trial(self._spaces[schedule.space], schedule)
            collect_after_run()


# --------------------------------------------------------------------------------- the session


class _Session:
    """One call of the verb: the search with its limits, its output, and its files."""

    def __init__(
        self, found: ScheduleSearch, players: Players, options: SearchOptions, directory: Path
    ) -> None:
        self._search = found
        self._players = players
        self._options = options
        self._directory = directory
        self._began_s = self._saved_s = time.monotonic()
        self._runs_before = found.runs

    def go(self) -> None:
        """Search until a limit is reached, and print the summary."""
        with _progress(self._options) as show:
            while not self._is_over():
                new: list[FindingGroup] = []
                for trial in self._players.play(self._search.batch(self._batch())):
                    new += self._search.learn([trial])
                    show(self._share(), self._runs(), len(self._search.found))
                for found in new:
                    self._report(found)
                self._save(is_last=False)
        self._save(is_last=True)
        times = {group: found.times for group, found in self._search.found.items()}
        wall_s = time.monotonic() - self._began_s
        if self._options.as_json:
            print_json({"runs": self._runs(), "wall_s": round(wall_s, 1), "findings": times})
        else:
            print(summary_text(self._runs(), wall_s, times), flush=True)

    def _runs(self) -> int:
        return self._search.runs - self._runs_before

    def _batch(self) -> int:
        limit = self._options.runs
        return BATCH if limit is None else min(BATCH, limit - self._runs())

    def _share(self) -> float:
        """The share of the time, or of the runs, that is over."""
        options = self._options
        shares = [0.0]
        if options.seconds is not None:
            shares.append((time.monotonic() - self._began_s) / options.seconds)
        if options.runs is not None:
            shares.append(self._runs() / options.runs)
        return max(shares)

    def _is_over(self) -> bool:
        wanted = self._options.stop_on
        names = [found.finding.name for found in self._search.found.values()]
        return self._share() >= 1 or bool(names and (ANY in wanted or set(names) & {*wanted}))

    def _report(self, found: FindingGroup) -> None:
        """Shrink a finding, write its file, and print it."""
        space = self._search.space_of(found.example.schedule)
        write_and_print(examine(space, found), self._directory, self._options.as_json)

    def _save(self, *, is_last: bool) -> None:
        """Keep the search in its directory, from time to time."""
        now_s = time.monotonic()
        if self._options.out is None or (not is_last and now_s - self._saved_s < SAVE_EVERY_S):
            return
        self._saved_s = now_s
        file = self._directory / KEPT
        with writing(str(file)):
            self._directory.mkdir(parents=True, exist_ok=True)
            with replacing(file, SHARED) as out:
                out.write(text_of(self._search))


def write_and_print(report: Report, directory: Path, as_json: bool) -> None:
    """Write the file of a finding, and print the finding."""
    name = _file_name(report.group)
    file = directory / f"{name}.yaml"
    with writing(str(file)):
        directory.mkdir(parents=True, exist_ok=True)
        text = text_of_scenario(scenario_to_write(report, name, story(report)), comment(report))
        with replacing(file, SHARED) as out:
            out.write(text.encode())
    if as_json:
        print_json(report_values(report, str(file)))
    else:
        print("\n".join(report_lines(report)))
        print(f"  again: kcluster scenario run {shlex.quote(str(file))}\n", flush=True)


def directory_of(name: str, out: str | None) -> Path:
    """The directory of the findings in the scenario of this name."""
    return Path(out or f"search-{_file_name(name)}")


def _file_name(group: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", group).strip("-")


@contextmanager
def _progress(options: SearchOptions) -> Iterator[Callable[[float, int, int], None]]:
    """A progress bar with the time left, on a terminal."""
    if options.as_json or not sys.stderr.isatty():
        yield lambda share, runs, found: None
        return
    with progress_bar(BAR, "{task.description}", TIME_LEFT) as bar:
        task = bar.add_task("0 runs", total=1.0)
        yield lambda share, runs, found: bar.update(
            task, completed=min(share, 1.0), description=f"{runs} runs, {found} found"
        )
