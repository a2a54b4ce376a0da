"""Replication throttles: what they limit, and that a move keeps to them in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.node import BrokerNode
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.broker.replication.test_moving_replicas import reassign
from tests.rig.cluster import TOPIC, Simulated
from tests.rig.one_broker import (
    OneBroker,
    broker_config,
    broker_records,
    topic_config,
    topic_records,
)

LEADER = "leader.replication.throttled."
FOLLOWER = "follower.replication.throttled."
MEGABYTES = 20
LIMIT = 1_000_000


# ------------------------------------------------------------------------------- when they apply


def test_throttle__follows_the_configs() -> None:
    t = OneBroker(
        broker_records(1, 2),
        topic_records("orders", (1, 2), (1, 2)),
        [
            topic_config("orders", LEADER + "replicas", "0:1, 1:2"),
            topic_config("orders", FOLLOWER + "replicas", "*"),
            broker_config("", LEADER + "rate", "7"),
            broker_config("1", LEADER + "rate", "8"),
        ],
    )
    throttles = t.broker.throttles
    assert throttles.leader is not None
    assert throttles.follower is not None
    assert [throttles.leader.is_throttled("orders", p) for p in (0, 1)] == [True, False]
    assert [throttles.follower.is_throttled("orders", p) for p in (0, 1)] == [True, True]
    assert (throttles.leader.limit, throttles.follower.limit) == (8, 2**63 - 1)
    gone = topic_config("orders", LEADER + "replicas", "")
    t.apply([gone], t.now_ms)
    assert (throttles.leader is None, throttles.follower is None) == (True, False)


def test_throttle__is_none_while_unused() -> None:
    t = OneBroker(broker_records(1), topic_records("orders", (1,)))
    assert (t.broker.throttles.leader, t.broker.throttles.follower) == (None, None)


def test_throttle__rates_are_described_where_they_are_set() -> None:
    t = OneBroker(broker_records(1))
    names = [LEADER + "rate", FOLLOWER + "rate"]

    def described(broker: str) -> list[tuple[str, str | None, int, bool, int]]:
        ask = m.DescribeConfigsRequest
        body = ask(resources=[ask.DescribeConfigsResource(4, broker, names)])
        (result,) = t.ask(ApiKey.DESCRIBE_CONFIGS, 4, body).results
        return [
            (c.name, c.value, c.config_source, c.read_only, c.config_type) for c in result.configs
        ]

    assert described("1") == []
    t.apply([broker_config("1", names[0], "1000"), broker_config("", names[1], "2000")], t.now_ms)
    own, default = (names[0], "1000", 2, False, 5), (names[1], "2000", 3, False, 5)
    assert described("1") == [default, own]
    assert described("") == [default]


@pytest.mark.parametrize(
    ("value", "reason"), [("x", "Not a number of type LONG"), ("-1", "Value must be at least 0")]
)
def test_throttle__an_invalid_rate_is_refused(value: str, reason: str) -> None:
    t = OneBroker(broker_records(1))
    alter = m.IncrementalAlterConfigsRequest
    change = alter.AlterableConfig(LEADER + "rate", 0, value)
    body = alter(resources=[alter.AlterConfigsResource(4, "1", [change])])
    (answer,) = t.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).responses
    assert (answer.error_code, answer.error_message) == (
        42,
        f"Invalid value {value} for configuration {LEADER}rate: {reason}",
    )


# ---------------------------------------------------------------------------------- the effect


def configure(t: Simulated, kind: int, name: str, via: int, **configs: str) -> None:
    alter = m.IncrementalAlterConfigsRequest
    changes = [
        alter.AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()
    ]
    body = alter(resources=[alter.AlterConfigsResource(kind, name, changes)])
    (answer,) = t.ask(via, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).body.responses
    assert answer.error_code == 0, answer


def moved_after_ms(side: str | None) -> tuple[int, Simulated]:
    """How long it takes to move 20 MB to broker 4 with one side throttled; None: neither."""
    t = Simulated(brokers=4)
    for _ in range(MEGABYTES):
        assert t.produce(bytes(1_000_000)).error == "NONE"
    if side is not None:
        rate: dict[str, Any] = {f"{side}_replication_throttled_rate": str(LIMIT)}
        for broker in range(1, 5):
            configure(t, 4, str(broker), broker, **rate)
        configure(t, 2, TOPIC, 1, **{f"{side}_replication_throttled_replicas": "*"})
    began_ms = t.now_ms
    reassign(t, [1, 2, 4])
    t.wait(lambda: not t.verbs.partition(TOPIC, 0).adding_replicas, limit_ms=600_000)
    assert len(t.values(4)) == MEGABYTES
    return t.now_ms - began_ms, t


def test_throttle__an_unthrottled_move_is_immediate() -> None:
    took_ms, _ = moved_after_ms(None)
    assert took_ms < 2_000


@pytest.mark.parametrize(("side", "kafka_ms"), [("leader", 11_800), ("follower", 20_500)])
def test_throttle__a_move_keeps_to_the_rate(side: str, kafka_ms: int) -> None:
    """It takes as long as with 4.3.1, whose leaders start with eleven seconds of unused quota."""
    took_ms, t = moved_after_ms(side)
    assert took_ms == pytest.approx(kafka_ms, rel=0.1)
    # In-sync replicas were never delayed: records produced during the move are acked.
    assert t.produce(b"after").error == "NONE"
    assert sorted(t.isr) == [1, 2, 4]


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_throttle__does_not_delay_replicas_in_sync(side: str) -> None:
    t = Simulated(brokers=4)
    rate: dict[str, Any] = {f"{side}_replication_throttled_rate": "1"}
    for broker in range(1, 5):
        configure(t, 4, str(broker), broker, **rate)
    configure(t, 2, TOPIC, 1, **{f"{side}_replication_throttled_replicas": "*"})
    for _ in range(5):
        assert t.produce(bytes(1_000_000)).error == "NONE"
        t.run_for(20)
    reassign(t, [1, 2, 3, 4])
    t.run_for(10_000)
    assert t.verbs.partition(TOPIC, 0).adding_replicas == (4,)
    assert t.produce(b"m").error == "NONE"
    for broker in range(1, 5):
        configure(t, 4, str(broker), broker, **{f"{side}_replication_throttled_rate": "100000000"})
    t.wait(lambda: t.isr == [1, 2, 3, 4], limit_ms=60_000)


def test_throttle__once_removed_everything_is_fetched_at_once() -> None:
    t = Simulated(brokers=4)
    for _ in range(5):
        t.produce(bytes(1_000_000))
    for broker in range(1, 5):
        configure(t, 4, str(broker), broker, follower_replication_throttled_rate="1")
    configure(t, 2, TOPIC, 1, follower_replication_throttled_replicas="0:4")
    reassign(t, [1, 2, 4])
    t.run_for(20_000)
    assert t.verbs.partition(TOPIC, 0).adding_replicas == (4,)
    configure(t, 2, TOPIC, 1, follower_replication_throttled_replicas="")
    t.run_for(2_000)
    assert t.isr == [1, 2, 4]
    node = t.dispatcher.processes[4].node
    assert isinstance(node, BrokerNode)
    assert node.throttles.follower is None
