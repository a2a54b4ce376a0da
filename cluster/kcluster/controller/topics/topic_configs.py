"""A topic's effective configs, and the source of each value.

Owns: the effective configs of a topic in the answer of CreateTopics.  Never: changes or checks any.
Kafka: KafkaConfigSchema.resolveEffectiveTopicConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.config.kafka.definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    BrokerConfig,
    ConfigDef,
    TopicConfig,
    describe,
)
from kcluster.controller.ports import MetadataPort
from kcluster.metadata.records import BROKER_RESOURCE, CLUSTER_DEFAULT

# Kafka's DescribeConfigsResponse.ConfigSource codes.
_TOPIC: Final = 1
_DYNAMIC_DEFAULT_BROKER: Final = 3
_STATIC_BROKER: Final = 4
_DEFAULT: Final = 5


class EffectiveConfig(Struct, frozen=True, gc=False):
    """One config of a topic: its value as text, and its source by Kafka's code."""

    name: str
    value: str | None
    source: int


def describe_configs(metadata: MetadataPort, configs: Mapping[str, str]) -> list[EffectiveConfig]:
    """The effective configs, by name, of a topic on which `configs` are set."""
    effective = TopicConfig.resolve(metadata.cluster_config, configs)
    dynamic = metadata.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    return [
        EffectiveConfig(
            name,
            configs[name] if name in configs else describe(definition, effective),
            _source(metadata.config, definition, configs, dynamic),
        )
        for name, definition in sorted(TOPIC_CONFIGS.items())
        if not definition.internal and definition.is_in(metadata.release.number)
    ]


def _source(
    broker: BrokerConfig,
    definition: ConfigDef,
    configs: Mapping[str, str],
    dynamic: Mapping[str, str],
) -> int:
    if definition.name in configs:
        return _TOPIC
    if any(synonym in dynamic for synonym in definition.synonyms):
        return _DYNAMIC_DEFAULT_BROKER
    for synonym in definition.synonyms:
        default = BROKER_CONFIGS[synonym]
        if getattr(broker, default.field) != default.default:
            return _STATIC_BROKER
    return _DEFAULT
