"""Configs of brokers as a step: one broker's, or the default of the whole cluster."""

from __future__ import annotations

from kcluster.events.topics import ConfigChanged
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import steps_of

HEAD = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 50/s}}
duration: 5s
steps:
"""


def play(step: str) -> RunResult:
    return run_scenario(Scenario.parse(f"{HEAD}  - {step}\n"), "virtual")


def changes(result: RunResult) -> list[tuple[str, dict[str, str | None]]]:
    events = [note.event for note in result.notes]
    return [
        (event.resource, dict(event.configs))
        for event in events
        if isinstance(event, ConfigChanged)
    ]


def test_set_config__of_all_brokers_is_the_default_of_the_cluster() -> None:
    """With ELRs, no single broker may have its own min.insync.replicas (KIP-966)."""
    result = play("{at: 1s, set_config: {brokers: all, config: {min.insync.replicas: 2}}, for: 2s}")
    assert not result.failures
    assert changes(result) == [
        ("", {"min.insync.replicas": "2"}),
        ("", {"min.insync.replicas": "1"}),
    ]
    (first, *_) = steps_of(result.notes, ("orders",), result.began_ms, (1, 2, 3))
    assert first.keys == {"brokers": "all", "config": {"min.insync.replicas": "2"}}


def test_set_config__of_one_broker_is_its_own() -> None:
    result = play("{at: 1s, set_config: {brokers: 2, config: {log.retention.ms: 900}}}")
    assert changes(result) == [("2", {"log.retention.ms": "900"})]
