"""A group's configs, which have the broker's defaults and bounds."""

from __future__ import annotations

import pytest

from kcluster.config.kafka.definitions import BrokerConfig, GroupConfig, Value
from kcluster.config.kafka.group import ValueOf, broker_value, group_config_problem


def brokers(**values: Value) -> ValueOf:
    """Broker configs with Kafka's defaults, except for these."""
    return lambda name: values.get(name, broker_value(BrokerConfig(), name))


def test_group__has_the_brokers_values_where_it_sets_none() -> None:
    broker = brokers(**{"group.consumer.session.timeout.ms": 50_000})
    config = GroupConfig.resolve(broker, {"consumer.heartbeat.interval.ms": "6000"})
    assert config.consumer_session_timeout_ms == 50_000
    assert config.consumer_heartbeat_interval_ms == 6_000
    assert config.share_auto_offset_reset == "latest"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no.such", "1"),
        ("consumer.session.timeout.ms", "44999"),
        ("consumer.session.timeout.ms", "60001"),
        ("share.record.lock.duration.ms", "14999"),
        ("share.delivery.count.limit", "11"),
        ("streams.num.standby.replicas", "3"),
        ("share.auto.offset.reset", "by_duration:1h"),
        ("share.auto.offset.reset", "by_duration:-PT1H"),
        ("share.auto.offset.reset", "by_duration:P"),
        ("share.isolation.level", "x"),
    ],
)
def test_group__refused(name: str, value: str) -> None:
    assert group_config_problem(brokers(), {name: value}) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumer.session.timeout.ms", "60000"),
        ("streams.num.standby.replicas", "2"),
        ("share.auto.offset.reset", "by_duration:P1DT2H3M4.5S"),
        ("share.renew.acknowledge.enable", "false"),
    ],
)
def test_group__accepted(name: str, value: str) -> None:
    assert group_config_problem(brokers(), {name: value}) is None


def test_group__the_session_timeout_exceeds_the_heartbeat_interval() -> None:
    broker = brokers(**{"group.consumer.max.heartbeat.interval.ms": 60_000})
    own = {"consumer.heartbeat.interval.ms": "50000", "consumer.session.timeout.ms": "50000"}
    assert group_config_problem(broker, own) is not None
