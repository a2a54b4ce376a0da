"""Machines under maintenance: brokers that come back with a new, empty disk."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.events.brokers import BrokerRegistered, DiskReplaced
from kcluster.events.words import sentence_of
from kcluster.evidence.lookups import of_type
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import scenario_of

LAST_ONES_STOP = """
topology: {brokers: 2, topics: {orders: {config: {min.insync.replicas: %s}}}}
workload: {producers: {topic: orders, name: shop, rate: 20/s, acks: %s}}
duration: 30s
steps:
  - {at: 2s, stop: 2}
  - {at: 4s, stop: 1}
  - {at: 6s, replace_disk: %s}
  - {at: 7s, start: %s}
  - {at: 20s, start: down}
"""


def played(text: str) -> RunResult:
    return run_scenario(Scenario.parse(text), "virtual")


def test_replace_disk__after_a_clean_stop_the_broker_does_not_count_as_clean() -> None:
    """KIP-966: it leaves the ELR, and the partition waits for the broker that has the records."""
    result = played(LAST_ONES_STOP % (2, "all", 2, 2))
    assert result.passed, result.failures
    ((note, replaced),) = of_type(result.notes, DiskReplaced)
    text = "broker 2: its disk was replaced by an empty one"
    assert (replaced.broker, sentence_of(replaced)) == (2, text)
    later = of_type(result.notes, BrokerRegistered)
    back = [event for at, event in later if at.at_ms > note.at_ms]
    assert [(event.broker, event.clean) for event in back] == [(2, False), (1, True)]
    assert not result.verdict.anomalies


def test_replace_disk__the_only_copy_is_lost_with_its_disk() -> None:
    result = played(LAST_ONES_STOP % (1, "1", 1, 1))
    (lost,) = result.verdict.anomalies
    assert lost.name == "lost-write"
    assert "disk-loss" in lost.causes
    assert "broker 1 lost its disk" in "\n".join(result.verdict.lines())
    assert not result.verdict.violations


@pytest.mark.parametrize(
    ("step", "problem"),
    [("replace_disk: 1", "broker 1 is up"), ("replace_disk: controller", "there is no broker")],
)
def test_replace_disk__only_of_a_broker_that_is_down(step: str, problem: str) -> None:
    text = f"topology: {{brokers: 1}}\nduration: 1s\nsteps: [{{at: 0s, {step}}}]"
    failures = played(text).failures
    assert any(problem in found for found in failures), failures


def test_replace_disk__a_record_repeats_it() -> None:
    text = LAST_ONES_STOP % (2, "all", 2, 2)
    notes = played(text).notes
    topology = Topology.parse("{brokers: 2, topics: {orders: {}}}")
    recorded = Scenario.parse(scenario_of(notes, topology, "x", notes[0].at_ms))
    assert [step.verb for step in recorded.steps] == ["stop", "stop", "replace_disk"]
