"""`kafka_version` in a topology: for the cluster, for one broker, and its problems."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import BrokerSpec


def problems_of(text: str) -> list[str]:
    with pytest.raises(TopologyError) as caught:
        Topology.parse(text, "c.yaml")
    return str(caught.value).splitlines()


def test_kafka_version__is_the_cluster_s_unless_a_broker_has_its_own() -> None:
    topology = Topology.parse(
        "kafka_version: 2.8\nbrokers: [{id: 1}, {id: 2, kafka_version: 3.9.1}]\n"
    )
    assert topology.kafka_version == "2.8"
    assert [topology.release_of(id_).name for id_ in (1, 2)] == ["2.8", "3.9"]


def test_kafka_version__is_the_newest_by_default() -> None:
    assert Topology.of(brokers=1).release_of(1).name == "4.4"


def test_kafka_version__in_python_is_text_or_a_number() -> None:
    assert Topology.of(brokers=1, kafka_version=2.8) == Topology.of(brokers=1, kafka_version="2.8")
    spec = BrokerSpec(7, kafka_version="0.11")
    assert Topology.of(brokers=[spec]).release_of(7).name == "0.11"


def test_kafka_version__unknown_ones_are_reported_with_their_place_and_the_nearest() -> None:
    assert problems_of("brokers: 3\nkafka_version: 2.9\n") == [
        "c.yaml:2:16 kafka_version: 2.9: no such version; the nearest is 2.8"
    ]
    assert problems_of("brokers:\n- {id: 1, kafka_version: 0.10.2.1}\n") == [
        "c.yaml:2:26 brokers[0].kafka_version: 0.10.2.1: no such version; the nearest is 0.11"
    ]
    assert problems_of("brokers: 3\nkafka_version: new\n") == [
        "c.yaml:2:16 kafka_version: new: not a version; it must be one from 0.11 to 4.4, like 2.8"
    ]


def test_kafka_version__a_misspelled_key_gets_a_suggestion() -> None:
    (problem,) = problems_of("brokers: 3\nkafka_verson: 2.8\n")
    assert problem.endswith("did you mean kafka_version?")
