"""Events of topics, configs and features, which administrators change.

Owns: their facts.  Never: words for them (words/).
Kafka: the logs of ReplicationControlManager, ConfigurationControlManager and FeatureControlManager.
"""

from __future__ import annotations

from enum import StrEnum

from kcluster.events.base import TaggedEvent


class TopicEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a topic as a whole."""

    topic: str

    @property
    def subject(self) -> str:
        return self.topic


class TopicCreated(TopicEvent, frozen=True):
    partition_count: int
    replication_factor: int
    configs: dict[str, str | None]


class TopicDeleted(TopicEvent, frozen=True):
    """The topic was deleted, with its records."""


class PartitionsAdded(TopicEvent, frozen=True):
    """A topic got more partitions.  `partition_count`: their new number."""

    old_partition_count: int
    partition_count: int


class ResourceType(StrEnum):
    """The type of a resource: one of Kafka's ConfigResource types, quota entities, or users."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    CLIENT_METRICS = "client_metrics"
    QUOTA = "quota"
    USER = "user"


class ConfigChanged(TaggedEvent, frozen=True):
    """Configs, quotas or credentials were set or, with null, removed.  An empty `resource` means
    all brokers; for quotas it names the entity."""

    resource_type: ResourceType
    resource: str
    configs: dict[str, str | None]

    @property
    def subject(self) -> str:
        match self.resource_type:
            case ResourceType.TOPIC | ResourceType.QUOTA:
                return self.resource
            case ResourceType.BROKER:
                return f"broker {self.resource}" if self.resource else "all brokers"
        return f"{self.resource_type.replace('_', ' ')} {self.resource}"


class FeatureChanged(TaggedEvent, frozen=True):
    """The finalized level of a feature changed (KIP-584)."""

    feature: str
    old_level: int
    new_level: int

    @property
    def subject(self) -> str:
        return self.feature
