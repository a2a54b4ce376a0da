"""Share groups as Kafka's own tools use them: Java's share consumer, kafka-share-groups, and the
formatters that print the records of the internal topics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcluster import Cluster
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.compat.kafka_tools.conftest import CONFIGS, LONG, TOOLS, Tool

pytestmark = [
    pytest.mark.clients,
    pytest.mark.long,
    pytest.mark.timeout_s(240),
    pytest.mark.xdist_group("kafka tools"),  # they share a cluster and archives
    LONG,
]

CONSUMER = f"{TOOLS}.consumer.ConsoleShareConsumer"
SHARE_GROUPS = f"{TOOLS}.consumer.group.ShareGroupCommand"
PRODUCER = f"{TOOLS}.ConsoleProducer"
READER = f"{TOOLS}.consumer.ConsoleConsumer"
GROUP = "sharers"
TOPIC = "shared-orders"
OFFSETS_PARTITIONS = 50
"""offsets.topic.num.partitions."""


def described(kafka: Tool, *what: str) -> list[list[str]]:
    """The table of kafka-share-groups --describe, without its head."""
    text = kafka(SHARE_GROUPS, "--describe", "--group", GROUP, *what)
    return [line.split() for line in text.splitlines() if line.startswith(GROUP)]


def formatted(kafka: Tool, formatter: str, count: int, topic: str, *where: str) -> list[Any]:
    """Records of an internal topic, as a formatter prints them: JSON, unseparated."""
    text = kafka(
        READER, "--topic", topic, *where, "--formatter", formatter,
        "--max-messages", str(count), "--timeout-ms", "30000",
    )  # fmt: skip
    text, found = text[text.index("{") :], []
    while text.startswith("{"):
        value, end = json.JSONDecoder().raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def test_share_groups__read_describe_reset_and_delete(cluster: Cluster, kafka: Tool) -> None:
    kafka(PRODUCER, "--topic", TOPIC, text="".join(f"m{number}\n" for number in range(20)))
    earliest = "share.auto.offset.reset=earliest"
    kafka(CONFIGS, "--alter", "--entity-type", "groups", "--entity-name", GROUP,
          "--add-config", earliest)  # fmt: skip
    read = kafka(CONSUMER, "--topic", TOPIC, "--group", GROUP, "--max-messages", "20",
                 "--timeout-ms", "30000")  # fmt: skip
    assert {f"m{number}" for number in range(20)} <= set(read.split())
    assert described(kafka, "--state")[0][-2:] == ["Empty", "0"]
    kafka(SHARE_GROUPS, "--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-earliest",
          "--execute")  # fmt: skip
    assert sum(int(row[-1]) for row in described(kafka, "--offsets")) == 20
    assert "Successful" in kafka(
        SHARE_GROUPS, "--delete-offsets", "--group", GROUP, "--topic", TOPIC
    )
    kafka(SHARE_GROUPS, "--delete", "--group", GROUP)
    assert GROUP not in kafka(SHARE_GROUPS, "--list").split()

    formatter = f"{TOOLS}.consumer.group.share.ShareGroupStateMessageFormatter"
    states = formatted(kafka, formatter, 3, "__share_group_state", "--from-beginning")
    assert {one["key"]["data"]["groupId"] for one in states} == {GROUP}
    first = states[0]
    assert first["key"]["type"] == 0  # a snapshot: the share partition was initialized
    assert first["value"]["data"]["startOffset"] == -1
    formatter = f"{TOOLS}.consumer.ShareGroupMessageFormatter"
    # Only the group's partition: in the others are the groups of the tools themselves.
    partition = str(coordinator_partition(GROUP, OFFSETS_PARTITIONS))
    where = "--partition", partition, "--offset", "earliest"
    records = formatted(kafka, formatter, 12, GROUP_METADATA_TOPIC, *where)
    of_group = [one for one in records if one["key"]["data"]["groupId"] == GROUP]
    assert {one["key"]["type"] for one in of_group} == {10, 11, 12, 13, 14, 15}
