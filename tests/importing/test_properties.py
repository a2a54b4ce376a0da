"""A broker's server.properties becomes a topology that describes the same configs."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.importing.properties import pairs, read_properties
from kcluster.importing.tool_output import ToolText
from kcluster.importing.topology_draft import draft_topology
from kcluster.importing.topology_text import topology_text

PRODUCTION = """\
# Licensed to somebody
process.roles=broker
node.id=1
broker.rack = eu-west-1a
controller.quorum.voters=9@c1:9093
listeners=SASL_SSL://:9092
advertised.listeners=SASL_SSL://kafka-1.example:9092
listener.name.sasl_ssl.ssl.keystore.location=/etc/kafka/keystore.p12
log.dirs=/var/lib/kafka/a,\\
    /var/lib/kafka/b
num.network.threads=8
num.io.threads: 16
min.insync.replicas 2
log.retention.hours=72
!unclean.leader.election.enable=true
confluent.balancer.enable=true
"""


def imported(*texts: str) -> tuple[Topology, dict[str, str]]:
    """The topology of these files, and what was left out with its reason."""
    draft = draft_topology(read_properties([ToolText("f", text) for text in texts]))
    return Topology.parse(topology_text(draft)), {x.subject: x.reason for x in draft.left_out}


def test_properties__of_a_production_broker_become_a_topology() -> None:
    second = PRODUCTION.replace("node.id=1", "node.id=2").replace("1a", "1b")
    topology, left_out = imported(PRODUCTION, second)
    assert [(broker.id, broker.rack) for broker in topology.brokers] == [
        (1, "eu-west-1a"),
        (2, "eu-west-1b"),
    ]
    config = topology.broker_config(1)
    assert (config.min_insync_replicas, config.log_retention_hours) == (2, 72)
    assert set(topology.without_effect) == {"num.network.threads", "num.io.threads"}
    assert left_out["config log.dirs"].startswith("a path on that machine")
    assert left_out["config confluent.balancer.enable"] == "no config of Apache Kafka 4.3"
    assert "config listener.name.sasl_ssl.ssl.keystore.location" in left_out


def test_properties__are_read_as_java_reads_them() -> None:
    text = "a=1\n b : x=y\nc\\:d=e\\\n   f\n\\u0061b=\\t.\ng\n"
    assert [pair[1:] for pair in pairs(ToolText("f", text))] == [
        ("a", "1"),
        ("b", "x=y"),
        ("c:d", "ef"),
        ("ab", "."),
        ("g", ""),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("log.dirs=/x", "no node.id"),
        ("node.id=one", "node.id one is not the id of a broker"),
        ("process.roles=controller\nnode.id=9", "the file of a controller"),
        ("node.id=1", "broker 1 has another file already"),
    ],
)
def test_properties__what_is_not_a_brokers_file_is_a_problem(text: str, reason: str) -> None:
    files = [ToolText("1", "node.id=1"), ToolText("2", text)]
    read_properties(files)
    assert reason in str(files[1].problems[0])
