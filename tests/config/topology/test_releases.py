"""A topology sets only configs that its brokers' releases have."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology

EVERYWHERE = """
brokers:
  - {{id: 1{of_one}, config: {{max_decompressed_message_bytes: 9}}}}
  - {{id: 2}}
config:
  max.decompressed.message.bytes: 1000
  sasl.oauthbearer.allow.unverified.issuer: true
topics:
  a: {{max_decompressed_message_bytes: 10}}
  b: {{config: {{errors.deadletterqueue.group.enable: true}}}}
"""


def test_topology__every_config_of_a_later_release_is_named_with_its_place() -> None:
    with pytest.raises(TopologyError) as raised:
        Topology.parse("kafka_version: 4.3" + EVERYWHERE.format(of_one=""))
    places = [line.split(": ")[0] for line in str(raised.value).splitlines()]
    assert places == [
        "topology.yaml:3:22 brokers[0].config.max_decompressed_message_bytes",
        "topology.yaml:6:3 config.max.decompressed.message.bytes",
        "topology.yaml:7:3 config.sasl.oauthbearer.allow.unverified.issuer",
        "topology.yaml:9:7 topics.a.max_decompressed_message_bytes",
        "topology.yaml:10:16 topics.b.config.errors.deadletterqueue.group.enable",
    ]
    assert "came with Kafka 4.4; the release here is 4.3" in str(raised.value)


def test_topology__one_broker_of_a_release_is_enough_for_what_is_set_for_all() -> None:
    mixed = "kafka_version: 4.3" + EVERYWHERE.format(of_one=", kafka_version: 4.4")
    topology = Topology.parse(mixed)
    assert topology.broker_config(1).max_decompressed_message_bytes == 9
    Topology.parse(EVERYWHERE.format(of_one=""))


def test_topology__a_brokers_own_config_needs_its_own_release() -> None:
    with pytest.raises(TopologyError, match=r"brokers\[0\].config.max_decompressed"):
        Topology.parse(EVERYWHERE.format(of_one=", kafka_version: 3.9"))


def test_topology__a_level_that_the_oldest_broker_does_not_know_is_refused() -> None:
    text = """
features: {share_version: 2, metadata.version: 31, streams.version: 1}
brokers: [{id: 1, kafka_version: %s}, {id: 2}]
"""
    with pytest.raises(TopologyError) as raised:
        Topology.parse(text % "4.1")
    assert str(raised.value).splitlines() == [
        "topology.yaml:2:27 features.share_version: a broker of 4.1 knows levels up to 1",
        "topology.yaml:2:48 features.metadata.version: a broker of 4.1 knows levels up to 27",
        "topology.yaml:2:69 features.streams.version: a broker of 4.1 does not have this feature",
    ]
    assert Topology.parse(text % "4.4").features["share.version"] == 2
    Topology.parse(text % "3.9")
