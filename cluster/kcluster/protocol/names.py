"""Names of the internal topics of brokers and controllers.

Owns: each of these names, and which topics are internal.  Never: creates a topic or decides
who may write to it.  Kafka: org.apache.kafka.common.internals.Topic.

There are two tests.  `is_internal` is Kafka's: it holds for exactly the topics that clients see
marked as internal.  `has_internal_prefix` is this project's: reports and workloads leave out every
topic whose name starts with two underscores.
"""

from __future__ import annotations

from typing import Final

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
"""The controllers' log.  Clients never see it as a topic, so it is not in the list below."""

INTERNAL_TOPICS: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)

INTERNAL_PREFIX: Final = "__"


def is_internal(topic: str) -> bool:
    """Kafka: Topic.isInternal."""
    return topic in INTERNAL_TOPICS


def has_internal_prefix(name: str) -> bool:
    """Whether a topic's name, or a partition's such as `__consumer_offsets-7`, starts with `__`."""
    return name.startswith(INTERNAL_PREFIX)
