"""What Kafka's tools print, read as values; what is no such output, refused with its place."""

from __future__ import annotations

import pytest

from kcluster.importing.described import DescribedBroker, DescribedConfig, DescribedPartition
from kcluster.importing.tool_output import (
    SeenConfigs,
    ToolText,
    read_brokers,
    read_configs_output,
    read_tools,
    read_topics,
    topic_line_configs,
)
from tests.importing.outputs import cluster_of, output


def problems_of(text: str, option: str) -> list[str]:
    """The problems of a text that is given with an option."""
    file = ToolText("saved.txt", text)
    if option == "--topics":
        read_topics(file)
    elif option == "--configs":
        read_configs_output(file, SeenConfigs())
    else:
        read_brokers(file)
    return [str(problem) for problem in file.problems]


def test_topics__have_their_replicas_leaders_and_configs() -> None:
    topics = {topic.name: topic for topic in read_topics(output("topics.txt"))}
    assert list(topics) == ["orders", "audit.log", "__consumer_offsets", "plain", "payments"]
    assert topics["payments"].partitions == (
        DescribedPartition(0, 1, (1, 2), (1, 2)),
        DescribedPartition(1, 2, (2, 3), (2, 3)),
        DescribedPartition(2, 3, (3, 1), (3, 1)),
    )
    assert len(topics["orders"].partitions) == 6


def test_topics__a_comma_separates_configs_and_the_items_of_lists() -> None:
    (orders,) = [t for t in read_topics(output("topics.txt")) if t.name == "orders"]
    assert {config.name: config.value for config in orders.configs} == {
        "leader.replication.throttled.replicas": "0:1,1:2",
        "min.insync.replicas": "2",
        "cleanup.policy": "compact,delete",
        "retention.ms": "604800000",
        "max.message.bytes": "2000000",
    }
    assert topic_line_configs("") == ()


def test_topics__a_partition_may_have_no_leader_and_nobody_in_sync() -> None:
    topics = {t.name: t for t in read_topics(output("topics_two_brokers_down.txt"))}
    assert topics["audit.log"].partitions == (DescribedPartition(0, -1, (2, 3), ()),)


def test_topics__spaces_instead_of_tabs_are_read_too() -> None:
    copied = output("topics.txt")
    copied.text = copied.text.replace("\t", "    ")
    assert read_topics(copied) == read_topics(output("topics.txt"))


def test_topics__a_replica_that_is_being_removed_is_left_out() -> None:
    (topic,) = read_topics(
        ToolText(
            "t",
            "Topic: a\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: \n"
            "\tTopic: a\tPartition: 0\tLeader: 2\tReplicas: 3,2,1\tAdding Replicas: 3"
            "\tRemoving Replicas: 1\tIsr: 1,2\tElr: \tLastKnownElr: \n",
        )
    )
    assert topic.partitions == (DescribedPartition(0, 2, (3, 2), (1, 2)),)


def test_configs__have_their_sources_and_unset_ones_are_defaults() -> None:
    seen = cluster_of("topics.txt", "broker_configs_all.txt", "topic_configs_all.txt")
    second = {config.name: config for config in seen.broker_configs[2]}
    assert second["num.io.threads"] == DescribedConfig(
        "num.io.threads", "9", "DYNAMIC_BROKER_CONFIG"
    )
    assert second["broker.rack"].value == "b"
    assert second["ssl.keystore.password"] == DescribedConfig(
        "ssl.keystore.password", None, "DEFAULT_CONFIG", True
    )
    assert seen.default_configs == (
        DescribedConfig("log.retention.ms", "86400000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        DescribedConfig("message.max.bytes", "2000000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        DescribedConfig("min.insync.replicas", "1", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    )
    orders = {config.name: config for config in seen.topic_configs["orders"]}
    assert orders["cleanup.policy"] == DescribedConfig(
        "cleanup.policy", "compact,delete", "DYNAMIC_TOPIC_CONFIG"
    )
    assert orders["flush.ms"].source == "DEFAULT_CONFIG"


def test_configs__of_groups_are_listed_as_left_out() -> None:
    text = "Dynamic configs for group billing are:\n  a=1 sensitive=false synonyms={}\n"
    seen, problems = read_tools(output("topics.txt"), [ToolText("groups.txt", text)], [])
    assert problems == []
    assert [str(one) for one in seen.left_out] == [
        "configs of group billing: no part of a topology"
    ]


@pytest.mark.parametrize("name", ["endpoints.txt", "api_versions.txt"])
def test_brokers__have_their_racks(name: str) -> None:
    brokers = sorted(read_brokers(output(name)), key=lambda broker: broker.id)
    assert brokers == [DescribedBroker(1, "a"), DescribedBroker(2, "b"), DescribedBroker(3, "c")]


def test_brokers__without_a_rack_have_none() -> None:
    assert read_brokers(output("endpoints_without_racks.txt")) == [DescribedBroker(1, None)]


@pytest.mark.parametrize(
    ("name", "option", "problem"),
    [
        (
            "topics.txt",
            "--configs",
            "saved.txt:1:1: this is the output of kafka-topics --describe; give it with --topics;"
            " --configs takes the output of kafka-configs --describe",
        ),
        (
            "broker_configs.txt",
            "--topics",
            "saved.txt:1:1: this is the output of kafka-configs --describe; give it with --configs;"
            " --topics takes the output of kafka-topics --describe",
        ),
        (
            "endpoints.txt",
            "--topics",
            "saved.txt:1:1: this is the output of kafka-cluster list-endpoints or"
            " kafka-broker-api-versions; give it with --brokers; --topics takes the output of"
            " kafka-topics --describe",
        ),
    ],
)
def test_files__of_another_kind_are_refused_with_their_option(
    name: str, option: str, problem: str
) -> None:
    assert problems_of(output(name).text, option) == [problem]


def test_files__that_are_empty_or_no_output_are_refused() -> None:
    takes = "takes the output of kafka-topics --describe"
    assert problems_of("", "--topics") == [f"saved.txt:1:1: empty; --topics {takes}"]
    assert problems_of("\n\n", "--topics") == [f"saved.txt:1:1: empty; --topics {takes}"]
    assert problems_of("\nhello there\n", "--topics") == [
        f"saved.txt:2:1: hello there: --topics {takes}"
    ]


def test_files__every_problem_is_reported_with_its_place() -> None:
    head = "Topic: a\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \n"
    text = (
        f"{head}\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1;2\tIsr: 1\n"
        "\tTopic: a\tPartition: 1\tLeader: 1\tReplicas: 1\n"
        "\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    assert problems_of(text, "--topics") == [
        "saved.txt:2:44: 1;2: not ids separated by commas",
        "saved.txt:3:45: the line of a partition without `Isr:`",
        "saved.txt:4:9: a partition of b before the line of that topic",
    ]
    assert problems_of(head, "--topics") == [
        "saved.txt:1:1: a has 2 partitions; 0 lines of them follow"
    ]
    assert problems_of("  a=1 sensitive=false synonyms={}\n", "--configs") == [
        "saved.txt:1:3: a config before the line that says what it belongs to"
    ]


def test_files__a_line_not_understood_is_left_out_with_its_place() -> None:
    text = output("topics.txt").text
    warning = "WARNING: Due to limitations in metric names\n[2026-11-22 04:47:50,1] WARN x\n"
    seen, problems = read_tools(ToolText("t.txt", f"{warning}{text}  what?\n"), [], [])
    assert problems == []
    assert [str(one) for one in seen.left_out] == ["t.txt:30:3: not understood: what?"]
