"""What people type first: Apache Kafka's own tools, on a cluster of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kcluster import Cluster
from tests.compat.kafka_tools.conftest import CONFIGS, GROUPS, TOOLS, TOPICS, Tool
from tests.foreign_clients.real_clients import until

pytestmark = [
    pytest.mark.clients,
    pytest.mark.long,
    pytest.mark.xdist_group("kafka tools"),  # they share a cluster and archives
]

PRODUCE = f"{TOOLS}.ConsoleProducer"
CONSUME = f"{TOOLS}.consumer.ConsoleConsumer"


def test_topics__created_described_grown_and_deleted(kafka: Tool) -> None:
    shape = ("--partitions", "2", "--replication-factor", "3")
    kafka(TOPICS, "--create", "--topic", "tools-a", *shape, "--config", "retention.ms=60000")
    described = kafka(TOPICS, "--describe", "--topic", "tools-a")
    assert "PartitionCount: 2\tReplicationFactor: 3\t" in described
    assert "retention.ms=60000" in described
    assert len(re.findall(r"Partition: \d\tLeader: [123]\tReplicas: .*\tIsr: ", described)) == 2
    kafka(TOPICS, "--alter", "--topic", "tools-a", "--partitions", "4")
    assert "PartitionCount: 4" in kafka(TOPICS, "--describe", "--topic", "tools-a")
    output = kafka(TOPICS, "--create", "--topic", "tools-a", *shape, code=1)
    assert "Topic 'tools-a' already exists" in output
    kafka(TOPICS, "--delete", "--topic", "tools-a")
    assert "tools-a" not in kafka(TOPICS, "--list").splitlines()
    assert "does not exist" in kafka(TOPICS, "--describe", "--topic", "tools-a", code=1)


def test_console__produced_records_are_consumed_by_a_group_and_offsets_move(kafka: Tool) -> None:
    kafka(TOPICS, "--create", "--topic", "tools-b", "--partitions", "1")
    kafka(PRODUCE, "--topic", "tools-b", text="one\ntwo\nthree\n")
    read = kafka(
        CONSUME,
        "--topic",
        "tools-b",
        "--group",
        "tools-g",
        "--from-beginning",
        "--max-messages",
        "3",
    )
    assert [line for line in read.splitlines() if line in ("one", "two", "three")] == [
        "one",
        "two",
        "three",
    ]
    assert "tools-g" in kafka(GROUPS, "--list").splitlines()
    described = kafka(GROUPS, "--describe", "--group", "tools-g")
    row = r"tools-g\s+tools-b\s+0\s+{}\s+3\s+{}"
    assert re.search(row.format(3, 0), described), described
    reset = ("--reset-offsets", "--group", "tools-g", "--topic", "tools-b", "--to-offset", "1")
    kafka(GROUPS, *reset, "--execute")
    assert re.search(row.format(1, 2), kafka(GROUPS, "--describe", "--group", "tools-g"))
    kafka(GROUPS, "--delete-offsets", "--group", "tools-g", "--topic", "tools-b")
    assert "tools-b" not in kafka(GROUPS, "--describe", "--group", "tools-g")
    kafka(GROUPS, "--delete", "--group", "tools-g")
    assert "tools-g" not in kafka(GROUPS, "--list").splitlines()


def test_performance__both_ways(kafka: Tool) -> None:
    kafka(TOPICS, "--create", "--topic", "tools-c", "--partitions", "3")
    size = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    output = kafka(f"{TOOLS}.ProducerPerformance", "--topic", "tools-c", *size)
    assert "20000 records sent" in output
    output = kafka(f"{TOOLS}.ConsumerPerformance", "--topic", "tools-c", "--num-records", "20000")
    assert re.search(r", 20000, ", output), output


def test_verifiable__each_message_is_acked_and_consumed(kafka: Tool) -> None:
    kafka(TOPICS, "--create", "--topic", "tools-d", "--partitions", "1")
    output = kafka(f"{TOOLS}.VerifiableProducer", "--topic", "tools-d", "--max-messages", "50")
    acked = [json.loads(line) for line in output.splitlines() if "producer_send_success" in line]
    assert [int(line["offset"]) for line in acked] == list(range(50))
    output = kafka(
        f"{TOOLS}.VerifiableConsumer",
        "--topic",
        "tools-d",
        "--group-id",
        "tools-v",
        "--max-messages",
        "50",
        "--reset-policy",
        "earliest",
    )
    counts = [json.loads(line) for line in output.splitlines() if '"records_consumed"' in line]
    assert sum(line["count"] for line in counts) == 50


def test_offsets__listed_and_records_deleted(kafka: Tool, tmp_path: Path) -> None:
    kafka(TOPICS, "--create", "--topic", "tools-e", "--partitions", "1")
    kafka(PRODUCE, "--topic", "tools-e", text="a\nb\nc\nd\n")
    listed = kafka(f"{TOOLS}.GetOffsetShell", "--topic", "tools-e")
    assert "tools-e:0:4" in listed
    wanted = {"version": 1, "partitions": [{"topic": "tools-e", "partition": 0, "offset": 3}]}
    path = tmp_path / "delete.json"
    path.write_text(json.dumps(wanted))
    output = kafka(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(path))
    assert "low_watermark: 3" in output
    assert "tools-e:0:3" in kafka(
        f"{TOOLS}.GetOffsetShell", "--topic", "tools-e", "--time", "earliest"
    )


def test_configs__of_topics_and_brokers_are_set_shown_and_removed(kafka: Tool) -> None:
    kafka(TOPICS, "--create", "--topic", "tools-f", "--partitions", "1")
    topic = ("--entity-type", "topics", "--entity-name", "tools-f")
    kafka(CONFIGS, *topic, "--alter", "--add-config", "max.message.bytes=2000")
    assert "max.message.bytes=2000 sensitive=false" in kafka(CONFIGS, *topic, "--describe")
    kafka(CONFIGS, *topic, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in kafka(CONFIGS, *topic, "--describe")
    output = kafka(CONFIGS, *topic, "--alter", "--add-config", "nosuch.config=1", code=1)
    assert "nosuch.config" in output
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    kafka(CONFIGS, *broker, "--alter", "--add-config", "log.cleaner.threads=2")
    shown = kafka(CONFIGS, *broker, "--describe")
    assert "log.cleaner.threads=2 sensitive=false" in shown
    assert "DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2" in shown
    kafka(CONFIGS, *broker, "--alter", "--delete-config", "log.cleaner.threads")


def test_configs__of_groups_and_client_metrics(kafka: Tool) -> None:
    group = ("--entity-type", "groups", "--entity-name", "tools-h")
    kafka(CONFIGS, *group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in kafka(CONFIGS, *group, "--describe")
    metrics = f"{TOOLS}.ClientMetricsCommand"
    kafka(
        metrics,
        "--alter",
        "--name",
        "tools-m",
        "--metrics",
        "org.apache.kafka.producer.",
        "--interval",
        "30000",
    )
    assert "tools-m" in kafka(metrics, "--list")
    assert "interval.ms=30000" in kafka(metrics, "--describe", "--name", "tools-m")
    kafka(metrics, "--delete", "--name", "tools-m")
    assert "tools-m" not in kafka(metrics, "--list")


def test_quotas__of_users_and_clients_and_scram(kafka: Tool) -> None:
    client = ("--entity-type", "clients", "--entity-name", "tools-client")
    kafka(CONFIGS, *client, "--alter", "--add-config", "producer_byte_rate=100000")
    assert "producer_byte_rate=100000.0" in kafka(CONFIGS, *client, "--describe")
    kafka(CONFIGS, *client, "--alter", "--delete-config", "producer_byte_rate")
    user = ("--entity-type", "users", "--entity-name", "tools-user")
    scram = "SCRAM-SHA-256=[iterations=8192,password=secret]"
    kafka(CONFIGS, *user, "--alter", "--add-config", scram)
    assert "SCRAM-SHA-256=iterations=8192" in kafka(CONFIGS, *user, "--describe")
    kafka(CONFIGS, *user, "--alter", "--delete-config", "SCRAM-SHA-256")


def test_election__the_preferred_leader_leads_again(kafka: Tool, cluster: Cluster) -> None:
    preferred = next(p for p in cluster.status().partitions if p.topic == "orders").replicas[0]
    other = next(broker for broker in (1, 2, 3) if broker != preferred)
    cluster.move("orders", 0, other)
    election = ("--election-type", "preferred", "--topic", "orders", "--partition", "0")
    output = kafka(f"{TOOLS}.LeaderElectionCommand", *election)
    assert "Successfully completed leader election (PREFERRED)" in output
    assert cluster.leader("orders", 0) == preferred


def test_reassignment__executed_verified_and_listed(kafka: Tool, tmp_path: Path) -> None:
    tool = f"{TOOLS}.reassign.ReassignPartitionsCommand"
    kafka(TOPICS, "--create", "--topic", "tools-i", "--replica-assignment", "1:2,2:1")
    kafka(PRODUCE, "--topic", "tools-i", text="x\n" * 20)
    moves = [{"topic": "tools-i", "partition": p, "replicas": [3, 1]} for p in (0, 1)]
    path = tmp_path / "move.json"
    path.write_text(json.dumps({"version": 1, "partitions": moves}))
    output = kafka(tool, "--reassignment-json-file", str(path), "--execute")
    assert "Successfully started partition reassignments for tools-i-0,tools-i-1" in output

    def completed() -> int:
        return kafka(tool, "--reassignment-json-file", str(path), "--verify").count("is completed")

    until(lambda: completed() == 2, "end of the reassignment")
    described = kafka(TOPICS, "--describe", "--topic", "tools-i")
    assert len(re.findall(r"Replicas: 3,1\t", described)) == 2
    assert "No partition reassignments found." in kafka(tool, "--list")


def test_cluster__its_id_features_quorum_logs_versions_and_acls(kafka: Tool) -> None:
    assert "Cluster ID: " in kafka(f"{TOOLS}.ClusterTool", "cluster-id")
    features = kafka(f"{TOOLS}.FeatureCommand", "describe")
    # It is of 4.3.1, and has no name for the levels of 4.4.
    assert re.search(r"Feature: metadata.version\s.*FinalizedVersionLevel: UNKNOWN 33\s", features)
    quorum = kafka(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId:\s+3000", quorum)
    replication = kafka(f"{TOOLS}.MetadataQuorumCommand", "describe", "--replication")
    assert replication.count("Observer") == 3
    logs = kafka(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", "orders")
    found = json.loads(next(line for line in logs.splitlines() if line.startswith("{")))
    assert [broker["broker"] for broker in found["brokers"]] == [1, 2, 3]
    versions = kafka(f"{TOOLS}.BrokerApiVersionsCommand")
    assert versions.count("(id: ") == 3
    assert versions.count("UNKNOWN") == 3 * len((93, 94))  # what 4.4 added
    assert "No Authorizer is configured" in kafka(f"{TOOLS}.AclCommand", "--list", code=1)
