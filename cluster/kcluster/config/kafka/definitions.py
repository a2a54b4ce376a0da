"""Every config by Kafka's name: the one place to import them from.

Owns: the names below.  Never: defines a config (values.py, broker.py, topic.py do).
Kafka: KafkaConfig, LogConfig.
"""

from __future__ import annotations

from kcluster.config.kafka.broker import (
    BROKER_CONFIGS,
    DEFAULT_PERSISTER,
    BrokerConfig,
    check_broker_config,
)
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.config.kafka.client_metrics import CLIENT_METRICS_CONFIGS
from kcluster.config.kafka.group import GROUP_CONFIGS, GroupConfig
from kcluster.config.kafka.topic import (
    TOPIC_CONFIGS,
    TopicConfig,
    broker_defaults,
    check_topic_config,
    check_topic_overrides,
    describe,
)
from kcluster.config.kafka.values import ConfigDef, ConfigError, Value, format_value, parse_value

__all__ = [
    "BROKER_CONFIGS",
    "CLIENT_METRICS_CONFIGS",
    "DEFAULT_PERSISTER",
    "GROUP_CONFIGS",
    "TOPIC_CONFIGS",
    "BrokerConfig",
    "ConfigDef",
    "ConfigError",
    "GroupConfig",
    "TopicConfig",
    "Value",
    "broker_catalog",
    "broker_defaults",
    "check_broker_config",
    "check_topic_config",
    "check_topic_overrides",
    "describe",
    "format_value",
    "parse_value",
]
