"""Groups of KIP-848 with Apache Kafka's own tools: consumed, described, their records printed."""

from __future__ import annotations

import re
import time

import confluent_kafka
import pytest

from kcluster import Cluster
from tests.compat.kafka_tools.conftest import GROUPS, LONG, TOOLS, TOPICS, Tool

pytestmark = [
    pytest.mark.clients,
    pytest.mark.long,
    pytest.mark.xdist_group("kafka tools"),  # they share a cluster and archives
    LONG,
]

PRODUCE = f"{TOOLS}.ConsoleProducer"
CONSUME = f"{TOOLS}.consumer.ConsoleConsumer"
FORMATTERS = f"{TOOLS}.consumer"
BY_CONSUMER_PROTOCOL = ("--command-property", "group.protocol=consumer")


def printed(kafka: Tool, formatter: str) -> str:
    """All records of __consumer_offsets that a formatter knows."""
    return kafka(
        CONSUME,
        "--topic",
        "__consumer_offsets",
        "--from-beginning",
        "--timeout-ms",
        "6000",
        "--formatter",
        f"{FORMATTERS}.{formatter}",
    )


def test_consumer_protocol__a_console_consumer_reads_as_a_member(kafka: Tool) -> None:
    kafka(TOPICS, "--create", "--topic", "modern-a", "--partitions", "2")
    kafka(PRODUCE, "--topic", "modern-a", text="one\ntwo\nthree\n")
    read = kafka(
        CONSUME,
        "--topic",
        "modern-a",
        "--group",
        "modern-g",
        "--from-beginning",
        "--max-messages",
        "3",
        *BY_CONSUMER_PROTOCOL,
    )
    assert sorted(line for line in read.splitlines() if line in ("one", "two", "three")) == [
        "one",
        "three",
        "two",
    ]
    listed = kafka(GROUPS, "--list", "--type", "consumer", "--state")
    assert re.search(r"modern-g +Consumer +Empty", listed), listed
    described = kafka(GROUPS, "--describe", "--group", "modern-g")
    assert len(re.findall(r"modern-g +modern-a +\d +", described)) == 2
    state = kafka(GROUPS, "--describe", "--group", "modern-g", "--state", "--verbose")
    assert re.search(r"modern-g .* Empty +", state)

    offsets = printed(kafka, "OffsetsMessageFormatter")
    assert '"group":"modern-g"' in offsets
    # In 4.3.1 this one prints classic groups only, and must not stumble over the others.
    assert '"type":2' in printed(kafka, "GroupMetadataMessageFormatter")

    kafka(GROUPS, "--delete", "--group", "modern-g")
    assert "modern-g" not in kafka(GROUPS, "--list").splitlines()


def test_consumer_protocol__members_are_described(kafka: Tool, cluster: Cluster) -> None:
    kafka(TOPICS, "--create", "--topic", "modern-b", "--partitions", "4")
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "modern-h",
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
    }
    members = [confluent_kafka.Consumer({**settings, "client.id": name}) for name in ("x", "y")]
    try:
        for member in members:
            member.subscribe(["modern-b"])
        deadline = time.monotonic() + 30
        while [len(member.assignment()) for member in members] != [2, 2]:
            for member in members:
                member.poll(0.1)
            assert time.monotonic() < deadline, [member.assignment() for member in members]
        verbose = ("--describe", "--group", "modern-h", "--members", "--verbose")
        described = kafka(GROUPS, *verbose)
        assert len(re.findall(r"modern-h .* modern-b:[0-9,]+ +.* modern-b:", described)) == 2, (
            described
        )
    finally:
        for member in members:
            member.close()
