"""Eras: what Kafka lost before a fix, and does not lose today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kcluster.config.eras import FIXES, Era, era_of
from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import topology_values

INCIDENTS = Path(__file__).parents[3] / "scenarios" / "incidents"
FILES = {
    "before KIP-101": "before_kip_101.yaml",
    "before KIP-279": "before_kip_279.yaml",
    "before KIP-447": "before_kip_447.yaml",
    "before KAFKA-14402": "before_kafka_14402.yaml",
    "before KIP-966": "before_kip_966.yaml",
}


def test_incidents__each_fix_has_one() -> None:
    assert [*FILES] == [*FIXES]
    for name, file in FILES.items():
        assert Scenario.load(INCIDENTS / file).topology.era == (name,)


@pytest.mark.parametrize("name", FILES)
def test_incident__breaks_a_promise_before_the_fix_and_none_after_it(name: str) -> None:
    text = INCIDENTS.joinpath(FILES[name]).read_text("utf-8")
    before = run_scenario(Scenario.parse(text), "virtual")
    assert before.passed, before.failures
    after = run_scenario(Scenario.parse(re.sub(r"^  era: .*\n", "", text, flags=re.M)), "virtual")
    assert after.verdict.violations == ()
    allowed = {"before KIP-279": {"acks=1"}}  # what a setting of the scenario loses today, too
    assert {str(one.allowed) for one in after.verdict.anomalies} <= allowed.get(name, set())


def test_era__is_one_name_or_several() -> None:
    one = Topology.of(brokers=1, era="before KIP-101")
    assert one.era == ("before KIP-101",)
    both = Topology.of(brokers=1, era=["before KAFKA-14402", "before KIP-966"])
    assert both.config == {"transaction.partition.verification.enable": "false"}
    assert both.features == {"eligible.leader.replicas.version": 0}
    assert topology_values(both)["era"] == ["before KAFKA-14402", "before KIP-966"]
    assert era_of(["before KIP-101", "before KIP-447"]) == Era(
        truncates_to_high_watermark=True, ignores_committing_members=True
    )


def test_era__a_wrong_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(TopologyError, match=r"era: .*did you mean before KIP-101\?"):
        Topology.parse("brokers: 3\nera: before KIP-110\n")
    with pytest.raises(ScenarioError, match=r"topology.era\[1\]"):
        Scenario.parse("topology: {brokers: 3, era: [before KIP-966, today]}\nsteps: []\n")
