"""A partition that stays offline: what the anomaly says, and when it is none."""

from __future__ import annotations

import pytest
from msgspec import structs

from kcluster.checks.settings import Setting
from kcluster.controller.partitions.partitions import Partitions
from kcluster.scenario.language.model import Checks
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.search.findings import findings_of, searched
from tests.rig.incidents import INCIDENTS, played

DOWN_AND_UP = """\
topology:
  brokers: 2
  profile: fast
  topics: {orders: {assignment: [[1, 2]]}}
workload: {producers: {topic: orders, name: shop, rate: 20/s}}
duration: 2s
steps:
  - {at: 500ms, kill: "1, 2"}
"""


def run(text: str) -> RunResult:
    return run_scenario(Scenario.parse(text), "virtual")


def test_stuck_offline__is_the_only_finding_of_such_a_run() -> None:
    (file,) = (file for file in INCIDENTS if file.stem == "removed_replica_in_elr")
    result = played(file)
    nothing_expected = structs.replace(result.scenario, checks=searched(Checks()))
    (found,) = findings_of(structs.replace(result, scenario=nothing_expected, failed=[]))
    assert found.group == "stuck-offline (an ELR of removed replicas alone)"
    assert found.detail.endswith("ISR [], ELR [2], replicas [1, 3]")


def test_stuck_offline__is_the_cause_where_a_transaction_gets_no_marker() -> None:
    (file,) = (file for file in INCIDENTS if file.stem == "removed_replica_in_elr")
    own = "{topic: orders, name: shop, rate: 20/s, stop: 2s"
    text = file.read_text().partition("certified:")[0]
    assert own in text
    result = run(text.replace(own, own + ", transactions: {every: 1000, timeout: 2s}"))
    assert result.verdict.counts() == {"stuck-offline": 1}


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_stuck_offline__of_a_core_that_elects_no_broker_that_is_back_is_allowed_by_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(DOWN_AND_UP).passed
    monkeypatch.setattr(Partitions, "on_broker_unfenced", lambda *_: [])
    result = run(DOWN_AND_UP)
    (found,) = result.verdict.anomalies
    assert (found.name, found.allowed) == ("stuck-offline", Setting.NONE)


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_stuck_offline__a_change_of_min_isr_allows_it_only_in_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = "  - {at: 100ms, set_config: {topics: orders, config: {min.insync.replicas: 2}}}\n"
    monkeypatch.setattr(Partitions, "on_broker_unfenced", lambda *_: [])
    (found,) = run(DOWN_AND_UP.replace("steps:\n", "steps:\n" + change)).verdict.anomalies
    assert (found.name, found.allowed) == ("stuck-offline", Setting.NONE)
    (file,) = (file for file in INCIDENTS if file.stem == "min_isr_changed_in_outage")
    (found,) = played(file).verdict.anomalies
    assert (found.name, found.allowed) == ("stuck-offline", Setting.ELR_CLEARED)


def test_stuck_offline__is_not_said_of_brokers_that_stay_down() -> None:
    result = run(DOWN_AND_UP + "heal: false\n")
    assert not result.verdict.anomalies
