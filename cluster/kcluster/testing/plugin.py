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
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pytest

from kcluster.testing import hash_seed
from kcluster.testing.items import (
    ANEW,
    FIXTURE,
    HASH_SEED_INI,
    KAFKA,
    KEEP_GOING,
    LIFE,
    MARK,
    NOT_SEARCHED,
    SEARCH,
    SEARCH_PLAIN,
    SEED,
    SEED_LIMIT_INI,
    SHARED,
    STAY_LIVE,
    STEPS,
    STEPS_FILE,
    TRACE,
    TRACE_FILE,
    clock_of,
    collision,
    first_seed_of,
    has_live_cluster,
    is_virtual,
    narrow_use,
    refused_by_kafka,
    replay_of,
    seeds_of,
    wide_fixtures,
)
from kcluster.testing.plain_imports import import_plainly
from kcluster.testing.reports import (
    ALL_LOGS,
    RUNS_DIRECTORY,
    add_stories,
    begin_test,
    end_at_users_line,
    remember,
)
from kcluster.testing.temporary import make_session_directory
from kcluster.testing.trace_file import write_trace

if TYPE_CHECKING:
    from kcluster.testing.handles import TestedCluster, VirtualCluster
    from kcluster.testing.marks import MarkArguments
    from kcluster.testing.real_kafka import TestedKafkaCluster
    from kcluster.testing.world_handle import TestedWorldCluster

T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `kcluster_scenarios` and `kcluster_runs` in the ini file, and `--kcluster-clock`."""
    parser.addini(
        "kcluster_scenarios",
        "Directories or patterns of scenario files that are tests: scenarios, or faults/*.yaml.",
        type="linelist",
        default=[],
    )
    parser.addini(
        "kcluster_runs", "Where failed tests write their run directories.", default=RUNS_DIRECTORY
    )
    parser.addini(
        HASH_SEED_INI,
        "PYTHONHASHSEED of sessions with tests in virtual time, which start again if it is not set;"
        " empty: leave it as it is.",
        default="0",
    )
    parser.addini(
        SEED_LIMIT_INI,
        "Seconds of CPU time after which one of many seeds counts as hanging.",
        default="120",
    )
    group = parser.getgroup("kcluster", "Kafka clusters")
    group.addoption(
        "--kcluster-clock",
        choices=("virtual", "live", "both", KAFKA),
        default=None,
        help="The clock of kafka_cluster, instead of the mark's own (default: live), and of"
        " scenario files (default: virtual).  kafka: processes of a real Apache Kafka.",
    )
    group.addoption(
        "--kcluster-seed",
        type=int,
        default=None,
        metavar="SEED",
        help="The seed of all tests in virtual time, instead of the mark's own: one run each.",
    )
    group.addoption(
        "--kcluster-seeds",
        type=int,
        default=None,
        metavar="N",
        help="Run each test in virtual time with N seeds, instead of the mark's own number.",
    )
    _add_search_options(group)
    group.addoption(
        "--kcluster-check-determinism",
        action="store_true",
        help="Run each test in virtual time twice with one seed, and show the first difference.",
    )


def _add_search_options(group: pytest.OptionGroup) -> None:
    """Add the options that look at many seeds, or for faults."""
    group.addoption(
        KEEP_GOING,
        action="store_true",
        help="Run all seeds of a test, also after one has failed; report how many fail, by reason.",
    )
    group.addoption(
        SEARCH,
        default=None,
        metavar="TIME|RUNS",
        help="Search for faults that make tests in virtual time fail, for this time per test (60s),"
        " or for a number of runs: deaths of apps and brokers near commits, acks and rebalances,"
        " stalls of threads.",
    )
    group.addoption(
        SEARCH_PLAIN,
        action="store_true",
        help=f"With {SEARCH}: faults at any time, not near moments of the test; for a comparison.",
    )
    group.addoption(
        STEPS_FILE,
        default=None,
        metavar="FILE",
        help="Perform the steps of a scenario file beside each test in virtual time, such as those"
        " that a search has found.",
    )
    group.addoption(
        TRACE_FILE,
        default=None,
        metavar="FILE",
        help="Write a line for each frame between the clients of tests in virtual time and the"
        " brokers; with many seeds, of the seed that is reported.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Import kcluster without rewriting its asserts, before a conftest.py imports it."""
    early_config.add_cleanup(import_plainly())


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the mark; start again with a hash seed if one is needed."""
    hash_seed.start_again_early(config)
    config.addinivalue_line(
        "markers",
        f"{MARK}(brokers, topology, topics, profile, config, seed, clock, seeds, ...): the cluster"
        " that the kcluster fixtures start; keys as in a topology file.  clock='virtual': the test"
        " and its clients run in virtual time, with `seeds=N` once for each of N seeds.",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Report the hash seed, if the session has started again for it."""
    return hash_seed.header(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Give the hash seed to the workers."""
    hash_seed.give_to_workers(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Start again with a hash seed if tests in virtual time were found."""
    hash_seed.start_again_after(session)


# ----------------------------------------------------------------------------- the clock


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Report how many tests stay live although all were to run in virtual time, and in how many
    nothing is searched for."""
    lines: list[str] = []
    if config.getoption("--kcluster-clock") in ("virtual", "both"):
        found = sum(any(name in SHARED for name in getattr(x, "fixturenames", ())) for x in items)
        lines += [f"kcluster: in {found} of the tests, a cluster {STAY_LIVE}"] if found else []
    if config.getoption(SEARCH) is not None:
        found = sum(has_live_cluster(item) for item in items)
        lines += [f"kcluster: no search in {found} of the tests, {NOT_SEARCHED}"] if found else []
    return lines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make two tests of a test of kafka_cluster with `--kcluster-clock both`."""
    if metafunc.config.getoption("--kcluster-clock") == "both" and FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(FIXTURE, ("live", "virtual"), indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test with many seeds, or a test that must run twice, in children."""
    if item.config.getoption("--kcluster-check-determinism") and is_virtual(item):
        from kcluster.testing.determinism import run_twice

        run_twice(item, nextitem, first_seed_of(item))
        return True
    if item.config.getoption(SEARCH) is not None and is_virtual(item):
        from kcluster.testing.searching import search_item

        search_item(item, nextitem, first_seed_of(item))
        return True
    seeds = seeds_of(item)
    if len(seeds) <= 1:
        return None
    from kcluster.testing.seeds import run_with_seeds

    run_with_seeds(item, nextitem, seeds)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin a test: verdicts on a shared cluster judge this test from now on, and a world begins
    before any other fixture of its test is made, so that all fixtures are in it."""
    begin_test(item)
    names: list[str] = getattr(item, "fixturenames", [])
    if FIXTURE in names and (problem := narrow_use(item)):
        pytest.fail(problem, pytrace=False)
    if FIXTURE in names and clock_of(item) == "virtual":
        names.remove(FIXTURE)
        names.insert(len(wide_fixtures(item)), FIXTURE)


# ----------------------------------------------------------------------------------- fixtures


@pytest.fixture
def kafka_cluster(
    request: pytest.FixtureRequest,
) -> Iterator[TestedCluster | TestedWorldCluster | TestedKafkaCluster]:
    """This test's own cluster, by default of three brokers.  Live: profile fast, free ports.  In
    virtual time: profile kafka, and the test and its fixtures run in virtual time, too."""
    mark = request.node.get_closest_marker(MARK)
    if clock_of(request.node) == "virtual":
        yield from _in_world(request, mark)
    else:
        yield from _live(request, mark)


@pytest.fixture(scope="module")
def kafka_cluster_module(
    request: pytest.FixtureRequest,
) -> Iterator[TestedCluster | TestedKafkaCluster]:
    """One cluster for all tests of a module, which has the mark: `pytestmark = ...`."""
    yield from _live(request, request.node.get_closest_marker(MARK))


@pytest.fixture(scope="session")
def kafka_cluster_session(
    request: pytest.FixtureRequest,
) -> Iterator[TestedCluster | TestedKafkaCluster]:
    """One cluster of three brokers for the whole session."""
    yield from _live(request, None)


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """This test's own topic, in the live cluster that the test uses.  A shared cluster is repaired
    after the test."""
    names = ("kafka_cluster", "kafka_cluster_module", "kafka_cluster_session")
    used = next((name for name in names if name in request.fixturenames), names[-1])
    cluster: TestedCluster | TestedKafkaCluster = request.getfixturevalue(used)
    remember(request.node, cluster)
    yield cluster.new_topic()
    if used != names[0]:
        cluster.repair()


@pytest.fixture
def virtual_cluster(request: pytest.FixtureRequest) -> VirtualCluster:
    """A cluster in virtual time, with the methods of a live one; `run_for(ms)` lets time pass."""
    from kcluster.testing.handles import VirtualCluster

    arguments = _arguments(request, request.node.get_closest_marker(MARK), "virtual")
    cluster = VirtualCluster(arguments.topology, arguments.seed, request.node.name)
    if SEED in request.node.stash:
        cluster.replay = replay_of(request.node, arguments.seed)
    remember(request.node, cluster)
    return cluster


def _live(
    request: pytest.FixtureRequest, mark: pytest.Mark | None
) -> Iterator[TestedCluster | TestedKafkaCluster]:
    if request.config.getoption("--kcluster-clock") == KAFKA:
        from kcluster.testing.real_kafka import real_cluster

        yield from real_cluster(request, mark)
        return
    from kcluster.testing.handles import TestedCluster

    arguments = _arguments(request, mark, "live")
    if request.scope != "function" and arguments.clock == "virtual":
        _refuse(request, [f"clock: {request.fixturename} {STAY_LIVE}"])
    cluster = _or_refused(
        request, lambda: TestedCluster(arguments.topology, arguments.seed, request.node.name)
    )
    remember(request.node, cluster)
    with cluster:
        yield cluster
        cluster.check_steps()
        if arguments.manners:
            cluster.check_manners()


def _in_world(
    request: pytest.FixtureRequest, mark: pytest.Mark | None
) -> Iterator[TestedWorldCluster]:
    arguments = _arguments(request, mark, "virtual")

    from kcluster.testing.chaos import chaos_of
    from kcluster.testing.world_handle import TestedWorldCluster

    item = request.node
    make_session_directory(item)
    cluster = _or_refused(request, lambda: TestedWorldCluster(arguments, item.name))
    cluster.replay = replay_of(item, arguments.seed)
    remember(item, cluster)
    trace_file = request.config.getoption(TRACE_FILE)
    if TRACE in item.stash or trace_file is not None:
        cluster.trace_into(item.stash.setdefault(TRACE, []))
    cluster.open()
    left: list[str] = []
    try:
        if arguments.scenario:
            _or_refused(request, lambda: cluster.play(arguments.scenario))
        if arguments.chaos:
            _or_refused(request, lambda: cluster.play(chaos_of(arguments.chaos, arguments.seed)))
        steps = item.stash.get(STEPS, None) or request.config.getoption(STEPS_FILE)
        if steps is not None:
            _or_refused(request, lambda: cluster.play(steps))
        if ANEW in item.stash:
            cluster.draw_anew(item.stash[ANEW])
        if LIFE in item.stash:
            cluster.count_life(item.stash[LIFE])
        yield cluster
        left = cluster.threads_left()
        cluster.check_steps()
        if not cluster.has_failed:
            cluster.apps.check()
        if arguments.manners and not cluster.has_failed:
            cluster.check_manners()
    finally:
        cluster.close()
        if cluster.apps.all and SEED not in item.stash:  # not a child, which ends soon
            cluster.apps.collect_quietly()
        if trace_file is not None and SEED not in item.stash:  # not a child of many seeds
            write_trace(item, item.stash[TRACE], arguments.seed)
    if left and not cluster.has_failed:
        text = f"{item.name} left threads, which were ended: {', '.join(left)}"
        warnings.warn(pytest.PytestWarning(text), stacklevel=1)


def _arguments(
    request: pytest.FixtureRequest, mark: pytest.Mark | None, clock: str
) -> MarkArguments:
    from kcluster.testing.marks import arguments_of

    arguments = _or_refused(request, lambda: arguments_of(mark, clock))
    seed = request.node.stash.get(SEED, request.config.getoption("--kcluster-seed"))
    return arguments if seed is None or clock == "live" else arguments.with_seed(seed)


def _or_refused(request: pytest.FixtureRequest, make: Callable[[], T]) -> T:
    """The result of `make` for a mark.  If the mark is wrong (or its port taken), the test fails
    with one line per problem, without frames."""
    from kcluster.config.files.problems import ProblemsError
    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.language.loader import ScenarioError
    from kcluster.testing.marks import MarkError

    try:
        return make()
    except (MarkError, ProblemsError, ScenarioError, ClusterError) as error:
        problems = str(error).splitlines()
    # Called after the except clause, so that pytest shows no other error with this one.
    _refuse(request, problems)


def _refuse(request: pytest.FixtureRequest, problems: list[str]) -> NoReturn:
    path, line, _ = request.node.reportinfo()
    place = os.path.relpath(path, request.config.invocation_params.dir)
    at = place if line is None else f"{place}:{line + 1}"
    pytest.fail("\n".join(f"{at}: {MARK}: {problem}" for problem in problems), pytrace=False)


# ------------------------------------------------------------------------------------ reports


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[object]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the story of its clusters to a failed test's report, and write run directories."""
    if call.excinfo is not None and not item.config.getoption("fulltrace"):
        end_at_users_line(call.excinfo.value)
    with _outside():
        report = yield
        error = None if call.excinfo is None else call.excinfo.value
        if error is not None and (why := refused_by_kafka(error) or collision(item, error)):
            path, line, _ = item.location
            report.outcome, report.longrepr = "skipped", (path, (line or 0) + 1, why)
        if report.failed and report.when == "call" and add_stories(item, report):
            from kcluster.testing.client_logs import fold_client_logs

            if item.config.get_verbosity() < ALL_LOGS:
                fold_client_logs(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_logreport() -> Generator[None, object, object]:
    """Leave the world for the reports, which go to files, to a terminal or to another process."""
    with _outside():
        return (yield)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer() -> Generator[None, object, object]:
    """Leave the world while the time limit of a test is set, because it counts the machine's
    time."""
    with _outside():
        return (yield)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_cancel_timer() -> Generator[None, object, object]:
    """Leave the world while the limit of a test is cancelled."""
    with _outside():
        return (yield)


def _outside() -> AbstractContextManager[None]:
    """Take the calling thread out of its world for a while, if it is in one."""
    active = sys.modules.get("kcluster.world.active")
    return nullcontext() if active is None else active.outside()


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
