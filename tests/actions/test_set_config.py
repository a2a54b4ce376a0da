"""Configs of brokers and quotas of clients as a step: of one, or the default of all."""

from __future__ import annotations

import pytest

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


def test_set_config__of_clients_is_a_quota_and_its_end() -> None:
    step = "set_config: {clients: [shop, all], config: {producer_byte_rate: 4000}}"
    result = play(f"{{at: 1s, {step}, for: 2s}}")
    assert not result.failures
    set_, removed = {"producer_byte_rate": "4000"}, {"producer_byte_rate": None}
    entities = ("client-id shop", "client-id (default)")
    assert changes(result) == [
        *((entity, set_) for entity in entities),
        *((entity, removed) for entity in entities),
    ]


def test_set_config__of_clients_who_have_another_quota_ends() -> None:
    one = "set_config: {clients: all, config: {producer_byte_rate: 4000}}"
    two = "set_config: {clients: all, config: {request_percentage: 50}}"
    result = play(f"{{at: 1s, {one}, for: 3s}}\n  - {{at: 2s, {two}, for: 1s}}")
    assert [configs for _, configs in changes(result)] == [
        {"producer_byte_rate": "4000"},
        {"request_percentage": "50"},
        {"request_percentage": None},
        {"producer_byte_rate": None},
    ]


@pytest.mark.parametrize("of", ["topics: orders", "brokers: 2"])
def test_set_config__that_overlaps_another_one_leaves_nothing(of: str) -> None:
    key = "retention.ms" if of == "topics: orders" else "log.retention.ms"
    one, two = (f"set_config: {{{of}, config: {{{key}: {value}}}}}" for value in (900, 800))
    result = play(f"{{at: 1s, {one}, for: 2s}}\n  - {{at: 2s, {two}, for: 2s}}")
    assert [configs[key] for _, configs in changes(result)] == ["900", "800", None]


def test_set_config__that_overlaps_a_longer_one_restores_its_value() -> None:
    one, two = (
        f"set_config: {{clients: all, config: {{producer_byte_rate: {rate}}}}}"
        for rate in (9_000, 8_000)
    )
    result = play(f"{{at: 1s, {one}, for: 3s}}\n  - {{at: 2s, {two}, for: 1s}}")
    assert [configs["producer_byte_rate"] for _, configs in changes(result)] == [
        "9000", "8000", "9000", None
    ]  # fmt: skip


def test_set_config__of_clients_takes_numbers_only() -> None:
    result = play("{at: 1s, set_config: {clients: all, config: {producer_byte_rate: much}}}")
    assert "a quota is no number" in result.failures[0]
