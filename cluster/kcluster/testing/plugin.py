"""The pytest plugin: the fixture `kafka_cluster` and its variants, scenario files as tests.

Owns: hooks, fixtures, options.  Never: imports gevent or a cluster before a fixture is used, so
that an unused plugin costs nothing (handles.py has the rest).
Kafka: EmbeddedKafkaCluster, ClusterTestExtensions.

    @pytest.mark.kafka_cluster(brokers=3, topics={"orders": {}})
    def test_my_client(kafka_cluster):
        client = MyClient(kafka_cluster.bootstrap)
        kafka_cluster.kill(kafka_cluster.leader("orders", 0))
        ...
        assert kafka_cluster.verdict()
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import pytest

if TYPE_CHECKING:
    from kcluster.testing.handles import TestedCluster, VirtualCluster
    from kcluster.testing.marks import MarkArguments
    from kcluster.testing.world_handle import TestedWorldCluster

T = TypeVar("T")

MARK: Final = "kafka_cluster"
FIXTURE: Final = "kafka_cluster"
SEED: Final = pytest.StashKey[int]()
"""The seed with which an item runs now, if it is not its mark's own."""
_WORLD: Final = str(Path(__file__).parents[1] / "world") + os.sep
RUNS_DIRECTORY: Final = ".kcluster/runs"
_HANDLES: Final = pytest.StashKey[list[Any]]()
"""The clusters that an item's report covers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`kcluster_scenarios` and `kcluster_runs` in the ini file, `--kcluster-clock`."""
    parser.addini(
        "kcluster_scenarios",
        "Directories or patterns of scenario files that are tests: scenarios, or faults/*.yaml.",
        type="linelist",
        default=[],
    )
    parser.addini(
        "kcluster_runs", "Where failed tests write their run directories.", default=RUNS_DIRECTORY
    )
    group = parser.getgroup("kcluster", "Kafka clusters")
    group.addoption(
        "--kcluster-clock",
        choices=("virtual", "live", "both"),
        default=None,
        help="The clock of kafka_cluster, instead of the mark's own (default: live), and of"
        " scenario files (default: virtual).",
    )
    group.addoption(
        "--kcluster-seed",
        type=int,
        default=None,
        metavar="SEED",
        help="The seed of all tests in virtual time, instead of the mark's own: one run each.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(brokers, topology, topics, profile, config, seed, clock, seeds, ...): the cluster"
        " that the kcluster fixtures start; keys as in a topology file.  clock='virtual': the test"
        " and its clients run in virtual time, with `seeds=N` once for each of N seeds.",
    )


# ----------------------------------------------------------------------------- the clock


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With `--kcluster-clock both`, a test of kafka_cluster is two."""
    if metafunc.config.getoption("--kcluster-clock") == "both" and FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(FIXTURE, ("live", "virtual"), indirect=True)


def clock_of(item: Any) -> str:
    """The clock of an item's kafka_cluster, "live" or "virtual"; what the mark says may be
    wrong."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and FIXTURE in callspec.params:
        return str(callspec.params[FIXTURE])
    chosen = item.config.getoption("--kcluster-clock")
    if chosen in ("live", "virtual"):
        return str(chosen)
    mark = item.get_closest_marker(MARK)
    return "live" if mark is None else str(mark.kwargs.get("clock", "live"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A world begins before any other fixture of its test is made, so that all of them are in
    it."""
    names: list[str] = getattr(item, "fixturenames", [])
    if FIXTURE in names and clock_of(item) == "virtual":
        scopes = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
        names.remove(FIXTURE)
        at = (i for i, name in enumerate(names) if name in scopes and is_of_function(scopes[name]))
        names.insert(next(at, len(names)), FIXTURE)


def is_of_function(definitions: Sequence[Any]) -> bool:
    """Whether a fixture with these definitions, of which the last counts, is made for each test."""
    return bool(definitions[-1].scope == "function")


# ----------------------------------------------------------------------------------- fixtures


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[TestedCluster | TestedWorldCluster]:
    """This test's own cluster, by default of three brokers.  Live: profile fast, free ports.  In
    virtual time: profile kafka, and the test and its fixtures run in virtual time, too."""
    mark = request.node.get_closest_marker(MARK)
    if clock_of(request.node) == "virtual":
        yield from _in_world(request, mark)
    else:
        yield from _live(request, mark)


@pytest.fixture(scope="module")
def kafka_cluster_module(request: pytest.FixtureRequest) -> Iterator[TestedCluster]:
    """One cluster for all tests of a module, which has the mark: `pytestmark = ...`."""
    yield from _live(request, request.node.get_closest_marker(MARK))


@pytest.fixture(scope="session")
def kafka_cluster_session(request: pytest.FixtureRequest) -> Iterator[TestedCluster]:
    """One cluster of three brokers for the whole session."""
    yield from _live(request, None)


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """This test's own topic, in the live cluster that the test uses.  A shared cluster is repaired
    after the test."""
    names = ("kafka_cluster", "kafka_cluster_module", "kafka_cluster_session")
    used = next((name for name in names if name in request.fixturenames), names[-1])
    cluster: TestedCluster = request.getfixturevalue(used)
    _remember(request.node, cluster)
    yield cluster.new_topic()
    if used != names[0]:
        cluster.repair()


@pytest.fixture
def virtual_cluster(request: pytest.FixtureRequest) -> VirtualCluster:
    """A cluster in virtual time, with the methods of a live one; `run_for(ms)` lets time pass."""
    from kcluster.testing.handles import VirtualCluster

    arguments = _arguments(request, request.node.get_closest_marker(MARK), "virtual")
    cluster = VirtualCluster(arguments.topology, arguments.seed, request.node.name)
    _remember(request.node, cluster)
    return cluster


def _live(request: pytest.FixtureRequest, mark: pytest.Mark | None) -> Iterator[TestedCluster]:
    from kcluster.testing.handles import TestedCluster

    arguments = _arguments(request, mark, "live")
    if request.scope != "function":
        _stays_live(request, arguments.clock)
    cluster = _or_refused(
        request, lambda: TestedCluster(arguments.topology, arguments.seed, request.node.name)
    )
    _remember(request.node, cluster)
    with cluster:
        yield cluster


def _stays_live(request: pytest.FixtureRequest, clock: str) -> None:
    """Say that a shared cluster is live, if somebody asked for virtual time: a world has one
    test."""
    text = f"{request.fixturename} is shared by tests, so it is live; kafka_cluster can be virtual"
    if clock == "virtual":
        _refuse(request, [f"clock: {text}"])
    if request.config.getoption("--kcluster-clock") in ("virtual", "both"):
        warnings.warn(pytest.PytestWarning(f"--kcluster-clock: {text}"), stacklevel=1)


def _in_world(
    request: pytest.FixtureRequest, mark: pytest.Mark | None
) -> Iterator[TestedWorldCluster]:
    arguments = _arguments(request, mark, "virtual")

    from kcluster.testing.world_handle import TestedWorldCluster

    item = request.node
    replay = replay_of(item, arguments.seed)
    cluster = _or_refused(request, lambda: TestedWorldCluster(arguments, item.name, replay))
    _remember(item, cluster)
    cluster.open()
    left: list[str] = []
    try:
        yield cluster
        left = cluster.threads_left()
    finally:
        cluster.close()
    if left and not cluster.has_failed:
        text = f"{item.name} left threads, which were ended: {', '.join(left)}"
        warnings.warn(pytest.PytestWarning(text), stacklevel=1)


def replay_of(item: pytest.Item, seed: int) -> str:
    """The command that runs a test in virtual time again with this seed."""
    mark = item.get_closest_marker(MARK)
    is_said = mark is not None and mark.kwargs.get("clock") == "virtual"
    chosen = item.config.getoption("--kcluster-clock")
    clock = "" if is_said and chosen is None else f" --kcluster-clock {chosen or 'virtual'}"
    return f"pytest {shlex.quote(item.nodeid)}{clock} --kcluster-seed {seed}"


def _arguments(
    request: pytest.FixtureRequest, mark: pytest.Mark | None, clock: str
) -> MarkArguments:
    from kcluster.testing.marks import arguments_of

    arguments = _or_refused(request, lambda: arguments_of(mark, clock))
    seed = request.node.stash.get(SEED, request.config.getoption("--kcluster-seed"))
    if seed is None or clock == "live":
        return arguments
    from msgspec import structs

    return structs.replace(arguments, seed=seed)


def _or_refused(request: pytest.FixtureRequest, make: Callable[[], T]) -> T:
    """What `make` makes of a mark.  If the mark is wrong (or its port taken), the test fails with
    one line per problem, without frames."""
    from kcluster.config.files.problems import ProblemsError
    from kcluster.testing.marks import MarkError

    try:
        return make()
    except (MarkError, ProblemsError) as error:
        problems = str(error).splitlines()
    # After the except clause, so that pytest shows no other error with this one.
    _refuse(request, problems)


def _refuse(request: pytest.FixtureRequest, problems: list[str]) -> NoReturn:
    path, line, _ = request.node.reportinfo()
    place = os.path.relpath(path, request.config.invocation_params.dir)
    at = place if line is None else f"{place}:{line + 1}"
    pytest.fail("\n".join(f"{at}: {MARK}: {problem}" for problem in problems), pytrace=False)


def _remember(node: Any, cluster: Any) -> None:
    handles = node.stash.setdefault(_HANDLES, [])
    if cluster not in handles:
        handles.append(cluster)


# ------------------------------------------------------------------------------------ reports


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Add to a failed test's report what happened to its clusters, and write run directories."""
    if call.excinfo is not None and FIXTURE in getattr(item, "fixturenames", ()):
        call.excinfo.traceback = call.excinfo.traceback.filter(_is_of_users)
    report = yield
    if report.failed and report.when == "call":
        parent = _runs_directory(item.config)
        handles = [x for node in item.listchain() for x in node.stash.get(_HANDLES, [])]
        for cluster in {id(handle): handle for handle in handles}.values():
            if cluster.last_verdict is not None:
                _break_lines(report.longrepr, repr(cluster.last_verdict))
            report.sections.append(("kcluster", "\n".join(cluster.story(parent))))
            cluster.after_failure()
    return report


def _is_of_users(entry: Any) -> bool:
    """Not the inside of a world: a thread that waits shows where it does."""
    return not str(entry.path).startswith(_WORLD)


def _break_lines(longrepr: Any, text: str) -> None:
    """Pytest shows the value of `assert value` on one line, shortened.  If that value is shown as
    `text`, show the lines of `text` instead."""
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", [])
    first, *others = text.split("\n")
    shown = f"assert {first}"
    for entry in entries:
        lines = getattr(entry, "lines", [])
        at = next((i for i, x in enumerate(lines) if x.startswith("E") and shown in x), None)
        if at is None or not others:
            continue
        indent = lines[at].index(shown)
        # pytest goes on with `+  where ... = ...`, which has the same text again.
        rest = [x for x in lines[at + 1 :] if not x.lstrip("E ").startswith("+")]
        own = [lines[at][:indent] + shown, *(f"E{' ' * (indent - 1)}{x}" for x in others)]
        entry.lines = [*lines[:at], *own, *rest]


def _runs_directory(config: pytest.Config) -> Path:
    """Where run directories go.  As pytest's cache does, `.kcluster` tells git to ignore it."""
    named = config.getini("kcluster_runs")
    runs = Path(config.rootpath, named)
    ignored = runs.parent / ".gitignore"
    if named == RUNS_DIRECTORY and not ignored.exists():
        runs.mkdir(parents=True, exist_ok=True)
        ignored.write_text("# Created by kcluster.\n*\n")
    return runs


# ---------------------------------------------------------------------------- scenario files


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the scenario files that the ini file names."""
    config = parent.config
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    for pattern in config.getini("kcluster_scenarios"):
        place = Path(config.rootpath, pattern)
        is_in = file_path.parent == place if place.is_dir() else file_path.match(str(place))
        if is_in:
            from kcluster.testing.scenario_items import ScenarioFile

            collector: pytest.Collector = ScenarioFile.from_parent(parent, path=file_path)
            return collector
    return None
