"""From a topology to the server.properties of each node."""

from __future__ import annotations

from pathlib import Path

from kcluster import Topology
from kcluster.apache_kafka.properties import (
    INNER_LISTENER,
    ListenerAddress,
    NodeAddresses,
    inner_protocol,
    needs_inner_listener,
    server_properties,
    write_properties,
)

HOME = Path("/tmp/kafka")


def properties(topology: Topology, node_id: int = 1) -> dict[str, str]:
    addresses = {3000: NodeAddresses(controller=("127.0.0.1", 9000))}
    for spec in topology.brokers:
        listeners = [
            ListenerAddress(one.name, one.protocol, "127.0.0.1", 9100 + 10 * spec.id + at)
            for at, one in enumerate(spec.all_listeners)
        ]
        protocol = inner_protocol(topology)
        inner = ListenerAddress(INNER_LISTENER, protocol, "127.0.0.1", 9200 + spec.id)
        has_inner = needs_inner_listener(topology)
        addresses[spec.id] = NodeAddresses(tuple(listeners), inner if has_inner else None)
    return server_properties(topology, node_id, addresses, HOME, "inner-secret")


def test_properties__of_a_plain_broker() -> None:
    topology = Topology.of(brokers=[{"id": 1, "rack": "a"}, {"id": 2}, {"id": 3}])
    assert properties(topology) == {
        "process.roles": "broker",
        "node.id": "1",
        "broker.rack": "a",
        "controller.quorum.voters": "3000@127.0.0.1:9000",
        "controller.listener.names": "KCLUSTER_CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:9110",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9110",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "KCLUSTER_CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "default.replication.factor": "3",
        "log.dirs": "/tmp/kafka/logs",
    }


def test_properties__of_the_controller() -> None:
    config = {"auto.create.topics.enable": False, "listener.name.plaintext.ssl.client.auth": "none"}
    found = properties(Topology.of(brokers=3, config=config), 3000)
    assert found["process.roles"] == "controller"
    assert found["listeners"] == "KCLUSTER_CONTROLLER://127.0.0.1:9000"
    assert found["auto.create.topics.enable"] == "false"
    assert not any(name.startswith("listener.name") for name in found)


def test_properties__a_broker_s_own_config_wins() -> None:
    own = {"id": 1, "config": {"num.io.threads": 3}}
    topology = Topology.of(brokers=[own, {"id": 2}], config={"num.io.threads": 5})
    assert properties(topology, 1)["num.io.threads"] == "3"
    assert properties(topology, 2)["num.io.threads"] == "5"


def test_properties__fast_is_as_fast_as_a_jvm_can_be() -> None:
    """Ten times as fast as Kafka, unless the file says more."""
    found = properties(Topology.of(brokers=1, profile="fast"))
    assert found["broker.session.timeout.ms"] == "900"
    assert found["broker.heartbeat.interval.ms"] == "200"
    assert found["group.consumer.min.session.timeout.ms"] == "450"  # a bound for clients' values
    config = {"broker.session.timeout.ms": 300}
    found = properties(Topology.of(brokers=1, profile="fast", config=config))
    assert found["broker.session.timeout.ms"] == "300"
    assert found["broker.heartbeat.interval.ms"] == "20"
    found = properties(Topology.of(brokers=1, profile="slow"))
    assert found["broker.session.timeout.ms"] == "27000"


def test_properties__logs_stay_below_the_node_s_directory() -> None:
    config = {"log.dirs": "/var/lib/kafka/a, /b,../../c"}
    found = properties(Topology.of(brokers=1, config=config))
    assert found["log.dirs"].split(",") == [
        "/tmp/kafka/logs/var/lib/kafka/a",
        "/tmp/kafka/logs/b",
        "/tmp/kafka/logs/_/_/c",
    ]


def test_properties__made_certificates_are_pem_files() -> None:
    listeners = {"OPEN": {"protocol": "PLAINTEXT"}, "SAFE": {"protocol": "SSL"}}
    topology = Topology.of(brokers=1, listeners=listeners, security={"tls": "auto"})
    found = properties(topology)
    assert {name: text for name, text in found.items() if "ssl." in name} == {
        "listener.name.safe.ssl.keystore.type": "PEM",
        "listener.name.safe.ssl.keystore.location": "/tmp/kafka/keystore.pem",
        "listener.name.safe.ssl.truststore.type": "PEM",
        "listener.name.safe.ssl.truststore.location": "/tmp/kafka/truststore.pem",
    }
    tls = {"truststore": "/own/ca.p12", "client_auth": "required"}
    topology = Topology.of(brokers=1, listeners=listeners, security={"tls": tls})
    found = properties(topology)
    assert found["ssl.truststore.location"] == "/own/ca.p12"
    assert "listener.name.safe.ssl.truststore.location" not in found


def test_properties__logins_concern_clients_alone() -> None:
    topology = Topology.of(
        brokers=1,
        listeners={"CLIENTS": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {"alice": 'a"b'}, "super_users": ["admin"]},
    )
    found = properties(topology)
    assert found["inter.broker.listener.name"] == INNER_LISTENER
    assert found["super.users"] == "User:admin;User:kcluster-inner"
    mechanisms = "listener.name.clients.sasl.enabled.mechanisms"
    assert found[mechanisms] == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    jaas = found["listener.name.clients.plain.sasl.jaas.config"]
    assert jaas.endswith('PlainLoginModule required user_alice="a\\"b";')
    assert "inner-secret" in found["listener.name.kcluster_inner.plain.sasl.jaas.config"]


def test_properties__without_acls_brokers_need_no_login() -> None:
    topology = Topology.of(
        brokers=1,
        listeners={"CLIENTS": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {"alice": "alice-secret"}},
    )
    found = properties(topology)
    assert found["inter.broker.listener.name"] == INNER_LISTENER
    protocols = "KCLUSTER_CONTROLLER:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,KCLUSTER_INNER:PLAINTEXT"
    assert found["listener.security.protocol.map"] == protocols
    assert "super.users" not in found


def test_write_properties__as_java_reads_them() -> None:
    written = write_properties({"a:b": " x\\y\nz", "c": "ü€😀"})
    assert written == "a\\:b=\\ x\\\\y\\nz\nc=\\u00fc\\u20ac\\ud83d\\ude00\n"
