"""The description of a real cluster: brokers, topics, configs with their sources.

Owns: these types.  Never: reads anything (tool_output.py, admin.py), decides on the content of a
topology (topology_draft.py).  Kafka: Cluster, TopicDescription, ConfigEntry with its ConfigSource.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NO_LEADER: Final = -1
DEFAULT_SOURCE: Final = "DEFAULT_CONFIG"
TOPIC_SOURCE: Final = "DYNAMIC_TOPIC_CONFIG"
"""Sources of a config, by Kafka's names."""


class DescribedConfig(Struct, frozen=True):
    """A described config."""

    name: str
    value: str | None
    """The config's value; None if it is sensitive or not set."""
    source: str = ""
    """Kafka's name: STATIC_BROKER_CONFIG, DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG, ...; empty if the
    output does not show it."""
    sensitive: bool = False


class DescribedBroker(Struct, frozen=True):
    """One broker."""

    id: int
    rack: str | None = None


class DescribedPartition(Struct, frozen=True):
    """One partition; the first replica is the preferred leader."""

    number: int
    leader: int
    """The leader's broker id; -1 if there is none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class DescribedTopic(Struct, frozen=True):
    """One topic with its partitions in order."""

    name: str
    partitions: tuple[DescribedPartition, ...]
    configs: tuple[DescribedConfig, ...] = ()


class LeftOut(Struct, frozen=True):
    """A part of the description that is not taken over, or only changed."""

    subject: str
    """The part's name: `config ssl.keystore.location`, `topic payments`, `topics.txt:3:1`."""
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class DescribedCluster(Struct, frozen=True):
    """The whole description."""

    origin: str
    """The source of the description, for the head of the topology file."""
    brokers: tuple[DescribedBroker, ...] = ()
    topics: tuple[DescribedTopic, ...] = ()
    broker_configs: dict[int, tuple[DescribedConfig, ...]] = {}
    """The configs of each broker, by broker id."""
    default_configs: tuple[DescribedConfig, ...] = ()
    """The dynamic defaults of all brokers."""
    topic_configs: dict[str, tuple[DescribedConfig, ...]] = {}
    """The configs by topic, with their sources; they override the configs in a topic's own line."""
    left_out: tuple[LeftOut, ...] = ()
    """Parts that were not understood, or not shown."""
