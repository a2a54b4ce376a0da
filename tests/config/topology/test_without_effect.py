"""A topology takes production's configs: what has no effect here is kept, described, and named."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.kafka.catalog import broker_catalog, internal_configs
from kcluster.config.topology.model import Topology

PRODUCTION = """
brokers:
  - {id: 1, config: {num.io.threads: 16}}
  - {id: 2}
config:
  num.network.threads: 8
  num_io_threads: 4
  socket.send.buffer.bytes: 102400
  log.retention.hours: 72
  log.preallocate: true
  metric.reporters: [com.example.Reporter]
  listener.name.internal.ssl.keystore.location: /etc/kafka/keystore.jks
topics:
  orders: {preallocate: true, config: {segment.jitter.ms: 10}}
"""


def test_topology__takes_a_config_without_an_effect_and_names_it() -> None:
    topology = Topology.parse(PRODUCTION)
    assert topology.without_effect == (
        "num.network.threads",
        "num.io.threads",
        "socket.send.buffer.bytes",
        "log.preallocate",
        "metric.reporters",
        "listener.name.internal.ssl.keystore.location",
        "segment.jitter.ms",
        "preallocate",
    )
    assert topology.broker_config(2).log_retention_hours == 72


def test_topology__a_broker_is_given_its_own_and_the_clusters() -> None:
    topology = Topology.parse(PRODUCTION)
    own = {broker.id: topology.texts_without_effect(broker.id) for broker in topology.brokers}
    assert own[1]["num.io.threads"] == "16"
    assert own[2]["num.io.threads"] == "4"
    assert own[2]["metric.reporters"] == "com.example.Reporter"
    assert "log.retention.hours" not in own[2]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("num.io.threads: none", "config.num.io.threads"),
        ("num.io.threads: 0", "config.num.io.threads"),
        ("num.oi.threads: 8", "no such broker config; did you mean num.io.threads?"),
        ("num.io.threads: 8\n  num_io_threads: 9", "num.io.threads is given twice"),
        ("listener.name.internal.ssl.keystor: x", "no such broker config"),
    ],
)
def test_topology__a_wrong_value_or_name_is_refused_all_the_same(config: str, message: str) -> None:
    with pytest.raises(TopologyError) as refused:
        Topology.parse(f"brokers: 1\nconfig:\n  {config}\n")
    assert message in str(refused.value)


def test_topology__each_config_that_kafka_describes_can_be_set_to_its_default() -> None:
    by_other_keys = ("node.id", "broker.id", "broker.rack", "listeners", "advertised.listeners")
    described = broker_catalog().keys() - internal_configs() - set(by_other_keys)
    values = {
        name: broker_catalog()[name].default
        for name in described
        if isinstance(broker_catalog()[name].default, bool | int | str)
    }
    assert len(values) > 200
    Topology.of(brokers=1, config=values)
