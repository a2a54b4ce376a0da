"""The keys of topology files: what is written for each, its default, what it is.

Owns: these tables; the checks, the JSON Schema and the reference use them.  Never: checks a value.
Kafka: server.properties, kafka-topics.sh.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kcluster.config.kafka.broker import PROFILES


class TopologyKey(NamedTuple):
    """One key.  `default`: as a file would have it; "" for none."""

    key: str
    form: str
    default: str
    words: str


_CONFIG: Final = "mapping such as {min.insync.replicas: 2}"

TOPOLOGY: Final = (
    TopologyKey("name", "text", "kcluster", "The cluster's name, for `--name` of other verbs."),
    TopologyKey("host", "host name or address", "127.0.0.1", "Where all brokers listen."),
    TopologyKey(
        "profile",
        f"{', '.join(PROFILES[:-1])} or {PROFILES[-1]}",
        "kafka",
        "kafka: Kafka's time constants; fast: the same divided by 100; slow: times 3.",
    ),
    TopologyKey("config", _CONFIG, "", "Configs of all brokers by Kafka's names."),
    TopologyKey(
        "features",
        "mapping such as {transaction.version: 1}",
        "",
        "Levels of features in the new cluster by Kafka's names; 0 is off.  Without it, those that"
        " Kafka formats in the release of the oldest broker, which is 4.0 or later; a lower"
        " metadata.version lowers the others' defaults.",
    ),
    TopologyKey("brokers", "number, or a list", "", "The number of brokers, or a list of them."),
    TopologyKey(
        "base_port",
        "port",
        "",
        "The first broker's port, with a number of brokers; without it, free ports.",
    ),
    TopologyKey("topics", "mapping of topics by name", "", "Topics that exist from the start."),
    TopologyKey("network", "mapping", "", "Latency between brokers."),
    TopologyKey(
        "kafka_version",
        "release such as 2.8",
        "",
        "The release as which brokers serve clients; without it, the newest.",
    ),
    TopologyKey(
        "write_back",
        "time such as 30s",
        "",
        "The age at which the operating system writes records to the disk, as Linux does after 30s;"
        " `kill: {how: power}` loses younger ones.  Without it, only flushed records survive.",
    ),
)
BROKER: Final = (
    TopologyKey("id", "number", "", "Its id; without it, its place in the list, from 1."),
    TopologyKey("port", "port", "", "Its port; without it, a free one."),
    TopologyKey("rack", "text", "", "Its rack (broker.rack)."),
    TopologyKey(
        "advertised", "host, or host:port", "", "The address that clients are given, if it differs."
    ),
    TopologyKey("config", _CONFIG, "", "Configs of this broker, over those of all brokers."),
    TopologyKey("kafka_version", "release such as 2.8", "", "Its release, if it differs."),
)
TOPIC: Final = (
    TopologyKey("partitions", "number from 1", "", "Without it as num.partitions says."),
    TopologyKey(
        "replication_factor",
        "number from 1",
        "",
        "Replicas of each partition; without it as default.replication.factor says: 3, or as many"
        " as there are brokers.",
    ),
    TopologyKey(
        "assignment",
        "list such as [[1, 2], [2, 3]]",
        "",
        "The replicas of each partition, the preferred leader first; instead of the two above.",
    ),
    TopologyKey(
        "config",
        _CONFIG,
        "",
        "Configs of the topic by Kafka's names.  They may also stand beside the other keys:"
        " {partitions: 3, min.insync.replicas: 2}.",
    ),
)
NETWORK: Final = (
    TopologyKey("default_latency_ms", "milliseconds", "0", "One way, between any two nodes."),
    TopologyKey("links", "list of links", "", "Links that differ from the default."),
)
LINK: Final = (
    TopologyKey("between", "list such as [1, 3]", "", "The two brokers."),
    TopologyKey("latency_ms", "milliseconds", "", "One way, in both directions."),
)


def keys_of(table: tuple[TopologyKey, ...]) -> tuple[str, ...]:
    """The keys of a table."""
    return tuple(line.key for line in table)
