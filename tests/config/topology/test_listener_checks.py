"""The listeners of a topology: by name, and by Kafka's own configs."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import ListenerSpec
from kcluster.principals import SecurityProtocol

SASL_SSL, PLAINTEXT = SecurityProtocol.SASL_SSL, SecurityProtocol.PLAINTEXT


def problems(text: str) -> list[str]:
    """The problems of a topology, one line each."""
    with pytest.raises(TopologyError) as caught:
        Topology.parse(text)
    return [str(problem) for problem in caught.value.problems]


def test_listeners__a_name_may_imply_the_protocol_and_ports_follow_each_other() -> None:
    topology = Topology.parse(
        "brokers: 2\nsecurity: {tls: auto}\n"
        "listeners: {CLIENT: {protocol: SASL_SSL, port: 9093}, plaintext: {}}\n"
    )
    assert [broker.all_listeners for broker in topology.brokers] == [
        (ListenerSpec("CLIENT", SASL_SSL, 9093), ListenerSpec("PLAINTEXT", PLAINTEXT)),
        (ListenerSpec("CLIENT", SASL_SSL, 9094), ListenerSpec("PLAINTEXT", PLAINTEXT)),
    ]


def test_listeners__a_broker_without_them_has_one_that_is_plaintext() -> None:
    (broker,) = Topology.parse("brokers: [{id: 1, port: 9092}]").brokers
    assert broker.all_listeners == (ListenerSpec("PLAINTEXT", PLAINTEXT, 9092),)


def test_listeners__kafkas_own_configs_say_the_same() -> None:
    topology = Topology.parse(
        """
        brokers:
          - id: 1
            config:
              listeners: CLIENT://:9093,PLAINTEXT://0.0.0.0:9092
              advertised.listeners: [CLIENT://kafka-1.example:19093]
              listener.security.protocol.map: "CONTROLLER:PLAINTEXT,CLIENT:SASL_SSL"
              num.partitions: 3
        security: {tls: auto}
        """
    )
    (broker,) = topology.brokers
    assert broker.all_listeners == (
        ListenerSpec("CLIENT", SASL_SSL, 9093, "kafka-1.example:19093"),
        ListenerSpec("PLAINTEXT", PLAINTEXT, 9092),
    )
    assert broker.config == {"num.partitions": "3"}


def test_listeners__every_problem_is_told_with_its_place() -> None:
    assert problems(
        """
        brokers: [{id: 1, port: 9092}]
        listeners:
          CLIENT: {protcol: SASL_SSL}
          CONTROLLER: {}
          EXTERNAL: {protocol: SASL_TLS}
          SSL: {port: 70000}
          ssl: {}
        security: {tls: auto}
        """
    ) == [
        "topology.yaml:2:33 brokers[0].port: cannot be combined with listeners, which have their"
        " own",
        "topology.yaml:4:11 listeners.CLIENT.protocol: CLIENT: its `protocol` is missing, one of"
        " PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        "topology.yaml:4:20 listeners.CLIENT.protcol: no such key of a listener; did you mean"
        " protocol?",
        "topology.yaml:5:11 listeners.CONTROLLER: CONTROLLER is the controller's, to which clients"
        " do not connect",
        "topology.yaml:6:32 listeners.EXTERNAL.protocol: SASL_TLS: no such protocol; did you mean"
        " SASL_SSL?",
        "topology.yaml:7:23 listeners.SSL.port: 70000 is out of range; it must be at most 65535",
        "topology.yaml:8:11 listeners.ssl: SSL is given twice; Kafka writes listeners' names in"
        " upper case",
    ]


def test_listeners__problems_in_kafkas_configs() -> None:
    assert problems(
        """
        brokers: 3
        config:
          listeners: "CLIENT://:9093,OTHER:9094"
          advertised.listeners: "ADMIN://a:1,CLIENT://0.0.0.0:9093"
          listener.security.protocol.map: "CLIENT:SASL_SLL"
        """
    ) == [
        "topology.yaml:4:22 config.listeners: OTHER:9094 is not a listener like CLIENT://:9092",
        "topology.yaml:5:33 config.advertised.listeners: ADMIN is not one of `listeners`",
        "topology.yaml:5:33 config.advertised.listeners: clients cannot connect to 0.0.0.0",
        "topology.yaml:6:43 config.listener.security.protocol.map: CLIENT:SASL_SLL: no such"
        " protocol; did you mean SASL_SSL?",
    ]


def test_listeners__two_must_not_share_a_port() -> None:
    listeners = "{PLAINTEXT: {port: 9092}, SASL_PLAINTEXT: {port: 9093}}"
    assert problems(f"brokers: 2\nlisteners: {listeners}\n") == [
        "topology.yaml:1:10 listeners.PLAINTEXT.port: 9093 is already broker 1's; set another or"
        " leave it out for a free one"
    ]
