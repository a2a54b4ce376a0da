"""For all tests: a time limit, the same examples in every run, and Spark sessions that are shared.

Owns: the limit, hypothesis' profile, `--rewrite` for golden files, what stays together when workers
share the tests, the environment of the programs that tests start, the browser.  Never: starts
clusters (fixtures for that live beside the tests that need them).

A test has 180 s, or what `@pytest.mark.timeout_s(N)` says. When they are over, it fails with the
stacks of all threads. If even that does not get through (a call that never returns from C),
faulthandler ends the run, with the stacks, some time later (pyproject.toml).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from kcluster.collector import collect_rarely

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.runs.browser import Browser

LIMIT_S = 180.0
"""Ten times what a test may take by itself: in CI, other workers and JVMs share its core."""
SPARK = "spark"
"""The fixture that every test on the shared session asks for, and an xdist group of these tests:
one worker runs them all, so that they share a JVM."""
BROWSER = "browser"
"""The same for Chromium."""

gc.disable()
"""Until all tests are collected: what is imported stays."""

# Tests start the command line and Spark's workers some hundred times: without the modules' compiled
# files each of them would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ARCHIVE = Path(__file__).parents[1] / "build/archives/spark.jsa"
"""The classes of Spark, loaded already: `make jars`."""
# Hadoop starts a chmod or readlink for each file, for which Java's default way takes longer.
SPARK_OPTIONS = ["-Djdk.lang.Process.launchMechanism=VFORK", "-Xlog:disable"]
if ARCHIVE.exists():
    SPARK_OPTIONS.append(f"-XX:SharedArchiveFile={ARCHIVE}")
os.environ["SPARK_SUBMIT_OPTS"] = " ".join(SPARK_OPTIONS)

TOGETHER = frozenset(
    (
        "test_moment.py",
        "test_tidy.py",
        "test_wheel.py",
        "test_admin_surface_python.py",
        "test_admin_surface_python_groups.py",
    )
)
"""Files whose tests share what takes a second or more to make; one worker runs all of a file."""
QUICK = tuple(
    f"tests/{room}/"
    for room in (
        *("bench", "broker", "config", "controller", "drivers", "evidence", "faults", "importing"),
        *("invariants", "network", "operations", "partition", "protocol"),
    )
)
"""Rooms with thousands of tests of a few milliseconds: also there, one worker runs all of a file.
A test on its own has its way through xdist, and its worker fills the caches of its file."""
LONG_GROUPS = ("spark", "kafka")
"""How the names of the groups begin that take a minute or more."""

hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, print_blob=False
)
hypothesis.settings.load_profile("repeatable")
_CONSTANTS = providers._local_constants
# Hypothesis also draws from the constants in the source of all loaded modules: a test alone had
# other examples than in the whole suite, and each worker took half a second to find them.
providers._get_local_constants = lambda: _CONSTANTS


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: golden files are replaced by what the tests produce now."""
    parser.addoption("--rewrite", action="store_true", help="renew golden files (tests/events)")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that share something costly, for xdist, which asks for marks before any
    `modifyitems` of ours."""
    fixtures = getattr(item, "fixturenames", ())
    if SPARK in fixtures:
        item.add_marker(pytest.mark.xdist_group(SPARK))
    elif BROWSER in fixtures:
        item.add_marker(pytest.mark.xdist_group(BROWSER))
    elif item.path.name in TOGETHER:
        item.add_marker(pytest.mark.xdist_group(item.path.name))
    elif item.nodeid.startswith(QUICK) and item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest first, so that no worker ends with one: Spark's and Kafka's groups, then what
    is marked as long.  Tests that wait are spread among the rest: if all workers had one at a time,
    the cores would be idle."""

    def order(item: pytest.Item) -> int:
        group = item.get_closest_marker("xdist_group")
        if group is not None and group.args[0].startswith(LONG_GROUPS):
            return 0
        return 1 if is_marked(item, "long") else 2

    def is_marked(item: pytest.Item, name: str) -> bool:
        return item.get_closest_marker(name) is not None

    waiting = [item for item in items if is_marked(item, "waits")]
    others = sorted((item for item in items if not is_marked(item, "waits")), key=order)
    first = next((at for at, item in enumerate(others) if order(item) == 2), len(others))
    rest = len(others) - first
    for number, item in enumerate(waiting):
        others.insert(first + number + rest * number // len(waiting), item)
    items[:] = others


def pytest_collection_finish() -> None:
    """Take the thousands of collected tests, which live until the end, out of the garbage
    collector's sight: scanning them again and again took a quarter of the CPU of a long test.
    What is garbage stays, too: it is 1 MB, and to collect it takes each worker a quarter second."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Also in the process that only distributes tests, which collects none."""
    collect_rarely()
    gc.enable()


class TimeLimitReached(BaseException):
    """Not an Exception, so that no test's own handler takes it for something else."""


def limit_of(item: pytest.Item) -> float:
    """Seconds that this test may take."""
    marker = item.get_closest_marker("timeout_s")
    return LIMIT_S if marker is None else float(marker.args[0])


def stacks() -> str:
    """What every thread is doing."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"--- thread {names.get(ident, ident)}\n")
        calls = [call for call in traceback.format_stack(frame) if "/site-packages/" not in call]
        parts += calls[-12:]
    return "".join(parts)


def limited(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run one phase of a test under its limit."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return (yield)
    limit_s = limit_of(item)

    def alarm(_signal: int, _frame: object) -> None:
        raise TimeLimitReached(f"{item.nodeid} took more than {limit_s:g} s\n{stacks()}")

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return (yield)
    except TimeLimitReached as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fixtures count against a limit of their own."""
    return (yield from limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """The test itself."""
    return (yield from limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """The teardown of its fixtures."""
    return (yield from limited(item))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium, for tests with the marks IN_CHROMIUM."""
    from tests.runs.browser import CHROMIUM, Browser

    assert CHROMIUM is not None
    browser = Browser(CHROMIUM, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one Spark session of a worker, small, on two cores; nothing stops it."""
    from tests.rig.spark_session import session_of_tests

    return session_of_tests()
