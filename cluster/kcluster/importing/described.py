"""A real cluster as it was described: brokers, topics, configs with their sources.

Owns: these types.  Never: reads anything (tool_output.py, admin.py), decides what can be taken over
(topology_draft.py).
Kafka: Cluster, TopicDescription, ConfigEntry with its ConfigSource.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NO_LEADER: Final = -1
DEFAULT_SOURCE: Final = "DEFAULT_CONFIG"
TOPIC_SOURCE: Final = "DYNAMIC_TOPIC_CONFIG"
"""Sources of a config, by Kafka's names."""


class DescribedConfig(Struct, frozen=True):
    """One config as it was described."""

    name: str
    value: str | None
    """None: sensitive, or not set."""
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
    """-1: none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class DescribedTopic(Struct, frozen=True):
    """One topic with its partitions in order."""

    name: str
    partitions: tuple[DescribedPartition, ...]
    configs: tuple[DescribedConfig, ...] = ()


class LeftOut(Struct, frozen=True):
    """Something that could not be taken over, or not as it was."""

    subject: str
    """`config ssl.keystore.location`, `topic payments`, `topics.txt:3:1`."""
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class DescribedCluster(Struct, frozen=True):
    """All that was described."""

    origin: str
    """Where it was read, for the head of the topology file."""
    brokers: tuple[DescribedBroker, ...] = ()
    topics: tuple[DescribedTopic, ...] = ()
    broker_configs: dict[int, tuple[DescribedConfig, ...]] = {}
    """By broker id."""
    default_configs: tuple[DescribedConfig, ...] = ()
    """The dynamic defaults of all brokers."""
    topic_configs: dict[str, tuple[DescribedConfig, ...]] = {}
    """By topic, with their sources; they win over what a topic's own line shows."""
    left_out: tuple[LeftOut, ...] = ()
    """What was not understood, or not shown."""
