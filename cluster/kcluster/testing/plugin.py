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
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

if TYPE_CHECKING:
    from kcluster.config.topology.model import Topology
    from kcluster.testing.handles import TestedCluster, VirtualCluster

T = TypeVar("T")

MARK: Final = "kafka_cluster"
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
        default="virtual",
        help="The clock on which scenario files run (default: virtual).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(brokers, topology, topics, profile, config, seed, ...): the cluster that the"
        " kcluster fixtures start; keys as in a topology file.",
    )


# ----------------------------------------------------------------------------------- fixtures


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[TestedCluster]:
    """This test's own live cluster: profile fast, free ports, by default three brokers."""
    yield from _live(request, request.node.get_closest_marker(MARK))


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

    topology, seed = _arguments(request, request.node.get_closest_marker(MARK), "kafka")
    cluster = VirtualCluster(topology, seed, request.node.name)
    _remember(request.node, cluster)
    return cluster


def _live(request: pytest.FixtureRequest, mark: pytest.Mark | None) -> Iterator[TestedCluster]:
    from kcluster.testing.handles import TestedCluster

    topology, seed = _arguments(request, mark, "fast")
    cluster = _or_refused(request, lambda: TestedCluster(topology, seed, request.node.name))
    _remember(request.node, cluster)
    with cluster:
        yield cluster


def _arguments(
    request: pytest.FixtureRequest, mark: pytest.Mark | None, profile: str
) -> tuple[Topology, int]:
    from kcluster.testing.handles import arguments_of

    return _or_refused(request, lambda: arguments_of(mark, profile))


def _or_refused(request: pytest.FixtureRequest, make: Callable[[], T]) -> T:
    """What `make` makes of a mark.  If the mark is wrong (or its port taken), the test fails with
    one line per problem, without frames."""
    from kcluster.config.files.problems import ProblemsError
    from kcluster.testing.handles import MarkError

    try:
        return make()
    except (MarkError, ProblemsError) as error:
        problems = str(error).splitlines()
    # After the except clause, so that pytest shows no other error with this one.
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
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Add to a failed test's report what happened to its clusters, and write run directories."""
    report = yield
    if report.failed and report.when == "call":
        parent = _runs_directory(item.config)
        handles = [x for node in item.listchain() for x in node.stash.get(_HANDLES, [])]
        for cluster in {id(handle): handle for handle in handles}.values():
            if cluster.last_verdict is not None:
                _break_lines(report.longrepr, repr(cluster.last_verdict))
            report.sections.append(("kcluster", "\n".join(cluster.story(parent))))
    return report


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
            collector: pytest.Collector = ScenarioFile.from_parent(parent, path=file_path)
            return collector
    return None


class ScenarioFile(pytest.File):
    """One scenario file: a test for each clock."""

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each clock of `--kcluster-clock` on which the scenario can run."""
        from kcluster.scenario.language.loader import ScenarioError
        from kcluster.scenario.language.scenario import Scenario

        try:
            scenario = Scenario.load(self.path)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from None
        chosen = self.config.getoption("--kcluster-clock")
        for clock in scenario.clocks if chosen == "both" else (chosen,):
            yield ScenarioItem.from_parent(self, name=clock, scenario=scenario)


class ScenarioItem(pytest.Item):
    """A run of a scenario on one clock."""

    def __init__(self, *, scenario: Any, **more: Any) -> None:
        super().__init__(**more)
        self._scenario = scenario

    def runtest(self) -> None:
        """Run the scenario; fails unless all its checks hold."""
        from kcluster.runs.directory import write_run
        from kcluster.scenario.play.running import run_scenario

        result = run_scenario(self._scenario, self.name)
        if not result.passed:
            parent = Path(self.config.rootpath, self.config.getini("kcluster_runs"))
            raise ScenarioFailed(result, write_run(parent, result.record()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The timeline, the verdict, the failed checks, the replay line."""
        if not isinstance(excinfo.value, ScenarioFailed):
            return super().repr_failure(excinfo, style)
        from kcluster.scenario.report import result_lines

        lines = list(result_lines(excinfo.value.result, with_timeline=True))
        return "\n".join([*lines, f"  run directory: {excinfo.value.directory}"])

    def reportinfo(self) -> tuple[Path, int, str]:
        """The location, for the summary."""
        return self.path, 0, f"{self.path.name}[{self.name}]"


class ScenarioFailed(Exception):
    """A scenario's checks do not all hold."""

    def __init__(self, result: Any, directory: Path) -> None:
        super().__init__("; ".join(result.failures))
        self.result = result
        self.directory = directory
