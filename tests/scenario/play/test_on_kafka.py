"""Which steps a real Kafka refuses, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.mirror import limits
from kcluster.mirror.limits import KafkaLimit
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.on_kafka import refused_steps

INCIDENTS = Path(__file__).resolve().parents[3] / "scenarios" / "incidents"


def limits_of(step: str) -> list[KafkaLimit]:
    scenario = Scenario.parse(f"topology: {{brokers: 3, topics: {{orders: }}}}\nsteps: [{step}]\n")
    return [each.limit for each in refused_steps(scenario)]


@pytest.mark.parametrize(
    ("step", "limit"),
    [
        ("{kill: {brokers: 1, how: power}}", limits.POWER_LOSS),
        ("{restart: {brokers: 1, how: power}}", limits.POWER_LOSS),
        ("{rolling_restart: {brokers: all, how: power}}", limits.POWER_LOSS),
        ("{restart: {brokers: 1, new_address: true}}", limits.NEW_ADDRESS),
        ("{add_broker: 4}", limits.NEW_BROKER),
        ("{fill_disk: 1}", limits.FULL_DISK),
        ("{when: event transaction_ended, kill: 1}", limits.UNSEEN_EVENT),
        ("{slow_disk: {brokers: 1, latency: 10ms}}", limits.SLOW_DISK),
    ],
)
def test_limits__a_step_that_only_simulated_brokers_allow(step: str, limit: KafkaLimit) -> None:
    assert limits_of(step) == [limit]


@pytest.mark.parametrize(
    "step",
    [
        "{kill: 1}",
        "{when: event leader_elected, kill: 1}",
        "{kill: {brokers: 1, how: wipe}}",
        "{replace_disk: 1}",
        "{stop: 1}",
        "{pause: 1}",
        "{isolate: 1}",
    ],
)
def test_limits__what_a_real_kafka_allows(step: str) -> None:
    assert limits_of(step) == []


def test_refused__is_one_line_with_the_place_in_the_file() -> None:
    file = INCIDENTS / "last_replica_standing.yaml"
    (refused,) = refused_steps(Scenario.load(file))
    text = str(refused)
    assert text.startswith(f"{file}:{refused.step.place.line}:")
    assert "\n" not in text
    assert limits.POWER_LOSS.why in text
