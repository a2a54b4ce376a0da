"""A pytest plugin that gives each test of another project's suite a cluster of ours.

Owns: one cluster for each test, on the clock chosen; a line of JSON for each test, with its
outcome, its times and the requests by API; the place of fixtures that would start Docker.  Never:
changes a suite's code, or starts anything outside this process.

    python -m pytest -p on_both_clocks.plugin --kcluster-suite aiokafka
        --kcluster-suite-clock live --kcluster-suite-report report.jsonl tests/test_consumer.py

All fixtures of a suite, whatever their scope, are made and undone for each test: a client of one
test never sees the cluster of another, and the requests that are counted belong to one test.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Sequence
from typing import Any, Final

import pytest
from _pytest.fixtures import SubRequest
from _pytest.runner import runtestprotocol

from .counting import counts_requests
from .suites import SUITES, Suite

_SUITE: Final = pytest.StashKey[Suite]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite, the clock, the report."""
    group = parser.getgroup("kcluster suites", "suites of other projects")
    group.addoption("--kcluster-suite", choices=tuple(SUITES), required=True)
    group.addoption("--kcluster-suite-clock", choices=("live", "virtual"), default="live")
    group.addoption("--kcluster-suite-report", default="", help="a file, one line per test")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """What the suite needs before its conftest is imported."""
    suite = SUITES[early_config.known_args_namespace.kcluster_suite]
    early_config.stash[_SUITE] = suite
    suite.prepare()


def pytest_collection_finish() -> None:
    """What is there by now is never looked at again by a collection of garbage: suites collect
    after each test, and each world does before it begins."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: SubRequest) -> object | None:
    """In place of a fixture that would start a broker elsewhere; its value must not be None, which
    means that the next hook is asked."""
    suite = request.config.stash[_SUITE]
    make = suite.fixtures.get(fixturedef.argname)
    if make is None:
        return None
    value: object = make()
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool:
    """One test: its cluster, its fixtures, its line in the report."""
    config = item.config
    suite, clock = config.stash[_SUITE], config.getoption("--kcluster-suite-clock")
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    with suite.cluster(clock, item.nodeid) as cluster:
        requests = counts_requests(cluster)
        began_ms = cluster.driver.clock_ms()
        suite.point_at(cluster)
        reports = runtestprotocol(item, log=False, nextitem=None)
        ended_ms = cluster.driver.clock_ms()
    line = {
        "test": item.nodeid,
        "clock": clock,
        "outcome": _outcome(reports),
        "wall_s": round(time.perf_counter() - began_s, 3),
        "cpu_s": round(time.process_time() - began_cpu_s, 3),
        "cluster_s": (ended_ms - began_ms) / 1000,
        "requests": dict(sorted(requests.items())),
    }
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    if path := config.getoption("--kcluster-suite-report"):
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _outcome(reports: Sequence[pytest.TestReport]) -> str:
    """`passed`, `skipped: why`, or `failed: why`, of setup, call and teardown together."""
    for report in reports:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message if crash else str(report.longrepr)
            return f"failed in {report.when}: {reason.splitlines()[0][:200]}"
    for report in reports:
        if report.skipped:
            reason = report.longrepr
            return f"skipped: {reason[2] if isinstance(reason, tuple) else ''}"
    return "passed"
