"""The pytest plugin: the fixture `kafka_cluster` and its variants, scenario files as tests.

Owns: hooks, fixtures, options.  Never: imports gevent or a cluster before a fixture is used, so
that an unused plugin costs nothing (handles.py has the rest).
Kafka: EmbeddedKafkaCluster, ClusterTestExtensions.

    @pytest.mark.kafka_cluster(brokers=3, topics={"orders": {}})
    def test_my_client(kafka_cluster):
        client = MyClient(kafka_cluster.bootstrap)
        kafka_cluster.kill(kafka_cluster.leader("orders", 0))
        ...
        assert kafka_cluster.verdict().outcome == "valid"
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from kcluster.testing.handles import TestedCluster, VirtualCluster

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
    from kcluster.testing.handles import VirtualCluster, arguments_of

    topology, seed = arguments_of(request.node.get_closest_marker(MARK), default_profile="kafka")
    cluster = VirtualCluster(topology, seed, request.node.name)
    _remember(request.node, cluster)
    return cluster


def _live(request: pytest.FixtureRequest, mark: pytest.Mark | None) -> Iterator[TestedCluster]:
    from kcluster.testing.handles import TestedCluster, arguments_of

    topology, seed = arguments_of(mark, default_profile="fast")
    cluster = TestedCluster(topology, seed, request.node.name)
    _remember(request.node, cluster)
    with cluster:
        yield cluster


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
        for node in item.listchain():
            for cluster in node.stash.get(_HANDLES, []):
                report.sections.append(("kcluster", "\n".join(cluster.story(parent))))
    return report


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
