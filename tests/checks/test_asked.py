"""What nobody reads of a run is not worked out, and decides nothing."""

from __future__ import annotations

import pytest
from msgspec import structs

from kcluster.checks.asked import EVERYTHING, Asked
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.search.findings import asked_by, findings_of

NOTHING = Asked(windows=False, degraded=False, reasons=False, states=False, trace=False)
LOSING = """
topology:
  brokers: 3
  profile: fast
  topics: {orders: {replication_factor: 3, min_insync_replicas: 2}}
  config: {offsets.topic.num.partitions: 1}
workload:
  producers: {topic: orders, name: shop, rate: 100/s, acks: 1, idempotent: false}
  consumers: {topics: orders, name: reader, group: readers}
duration: 3s
steps:
  - {at: 500ms, slow: {nodes: followers(orders-0), latency: 40ms}, for: 1s}
  - {at: 1s, kill: leader(orders-0), for: 500ms}
  - {at: 1s, stop: any broker, for: 300ms}
"""


@pytest.fixture(scope="module")
def whole() -> RunResult:
    return run_scenario(Scenario.parse(LOSING), "virtual", 1)


def played(asked: Asked) -> RunResult:
    return run_scenario(Scenario.parse(LOSING), "virtual", 1, asked=asked)


def test_asked__a_run_of_which_nothing_is_read_has_the_same_findings(whole: RunResult) -> None:
    bare = played(NOTHING)
    assert whole.verdict.anomalies
    assert findings_of(bare) == findings_of(whole)
    assert bare.verdict.outcome == whole.verdict.outcome
    assert bare.verdict == structs.replace(
        whole.verdict, windows=(), degraded=(), partition_counts={}
    )
    assert whole.verdict.windows
    assert whole.verdict.degraded
    assert whole.trace_hash
    assert not bare.trace_hash


def test_asked__without_reasons_times_are_the_same(whole: RunResult) -> None:
    bare = played(structs.replace(EVERYTHING, reasons=False))
    assert any(window.reasons and window.origin for window in whole.verdict.windows)
    assert bare.verdict.windows == tuple(
        structs.replace(window, reasons=(), origin=None) for window in whole.verdict.windows
    )
    assert bare.verdict.degraded == tuple(
        structs.replace(each, origin=None) for each in whole.verdict.degraded
    )


def test_asked__states_of_coordinators_are_recorded_only_for_pages(whole: RunResult) -> None:
    assert {row.group for row in whole.recorder.states.groups.rows} == {"readers"}
    assert not played(structs.replace(EVERYTHING, states=False)).recorder.states.groups.rows


def test_asked__a_search_asks_for_what_the_checks_of_its_scenario_need() -> None:
    def asked(checks: str) -> Asked:
        return asked_by(Scenario.parse(f"{LOSING}checks: {checks}").checks)

    assert asked("{no_events: broker_fenced}") == NOTHING
    assert asked("{no_offline: true}") == structs.replace(NOTHING, degraded=True)
    assert asked("{writes_resume: < 2s}") == structs.replace(NOTHING, windows=True)
