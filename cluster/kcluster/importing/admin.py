"""Reads a running cluster with kafka-python's admin client.

Owns: the requests, all of them Describe or Metadata; the client's answers as values.
Never: changes anything in the cluster, decides on the content of a topology (topology_draft.py).
Kafka: Admin.describeCluster, describeTopics, describeConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kcluster.extras import how_to_install
from kcluster.importing.described import (
    DescribedBroker,
    DescribedCluster,
    DescribedConfig,
    DescribedPartition,
    DescribedTopic,
    LeftOut,
)

TIMEOUT_MS: Final = 10_000
_TOPICS_PER_REQUEST: Final = 500
_NOT_SHOWN: Final = "not shown to this user"


class AdminError(Exception):
    """The error for a cluster that cannot be read; str() is one line for the user."""


def read_cluster(bootstrap: str, timeout_ms: int | None = None) -> DescribedCluster:
    """Describe the cluster behind `bootstrap`, `host:port` or several
    with commas.  AdminError if that is impossible."""
    timeout_ms = TIMEOUT_MS if timeout_ms is None else timeout_ms
    try:
        from kafka import errors
        from kafka.admin import KafkaAdminClient
    except ImportError:
        text = f"--bootstrap needs kafka-python: {how_to_install('clients')}"
        raise AdminError(text) from None
    try:
        client = KafkaAdminClient(
            bootstrap_servers=bootstrap,
            bootstrap_timeout_ms=timeout_ms,
            request_timeout_ms=timeout_ms,
            client_id="kcluster-import",
        )
    except errors.KafkaError as error:
        raise AdminError(_unreachable(bootstrap, timeout_ms, error)) from None
    try:
        return _described(client, bootstrap)
    except errors.KafkaError as error:
        raise AdminError(f"{bootstrap}: {error}") from None
    finally:
        client.close()


def _unreachable(bootstrap: str, timeout_ms: int, error: Exception) -> str:
    hint = "a listener without TLS and SASL is needed; else use --topics and --configs"
    seconds = f"{timeout_ms / 1000:g} s"
    return (
        f"{bootstrap}: no Kafka broker answered within {seconds} ({type(error).__name__}); {hint}"
    )


def _described(client: Any, bootstrap: str) -> DescribedCluster:
    cluster = client.describe_cluster()
    brokers = sorted(
        (DescribedBroker(int(one["broker_id"]), one["rack"]) for one in cluster["brokers"]),
        key=lambda broker: broker.id,
    )
    left_out: list[LeftOut] = []
    topics: list[DescribedTopic] = []
    for row in client.describe_topics():
        if row["error_code"]:
            left_out.append(LeftOut(f"topic {row['name']}", f"error {row['error_code']}"))
        else:
            topics.append(_topic(row))
    broker_configs: dict[int, tuple[DescribedConfig, ...]] = {}
    for broker in brokers:
        found = _configs(client, "BROKER", [broker.id]).get(str(broker.id), ())
        broker_configs[broker.id] = found
        if not found:
            left_out.append(LeftOut(f"configs of broker {broker.id}", _NOT_SHOWN))
    topic_configs: dict[str, tuple[DescribedConfig, ...]] = {}
    names = [topic.name for topic in topics]
    for start in range(0, len(names), _TOPICS_PER_REQUEST):
        batch = names[start : start + _TOPICS_PER_REQUEST]
        topic_configs |= _configs(client, "TOPIC", batch)
    hidden = [name for name in names if not topic_configs.get(name)]
    left_out += [LeftOut(f"configs of topic {name}", _NOT_SHOWN) for name in hidden]
    return DescribedCluster(
        origin=f"the cluster at {bootstrap}",
        brokers=tuple(brokers),
        topics=tuple(topics),
        broker_configs=broker_configs,
        topic_configs=topic_configs,
        left_out=tuple(left_out),
    )


def _topic(row: Mapping[str, Any]) -> DescribedTopic:
    partitions = [
        DescribedPartition(
            one["partition_index"],
            one["leader_id"],
            tuple(one["replica_nodes"]),
            tuple(one["isr_nodes"]),
        )
        for one in row["partitions"]
    ]
    return DescribedTopic(row["name"], tuple(sorted(partitions, key=lambda one: one.number)))


def _configs(
    client: Any, kind: str, names: Sequence[str | int]
) -> dict[str, tuple[DescribedConfig, ...]]:
    """The configs of some brokers or topics, defaults included, by name."""
    from kafka.admin import ConfigResource

    resources = [ConfigResource(kind, str(name)) for name in names]
    answer = client.describe_configs(resources, config_filter="all")
    return {
        name: tuple(
            DescribedConfig(config, one["value"], one["config_source"], one["is_sensitive"])
            for config, one in sorted(configs.items())
        )
        for found in answer.values()
        for name, configs in found.items()
    }
