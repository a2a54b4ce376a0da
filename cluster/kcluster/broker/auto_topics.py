"""The topics that a broker creates automatically: internal topics, and topics that clients request.

Owns: their partitions, replication factor and configs.  Never: asks the controller (handlers and
the coordinator do).  Kafka: DefaultAutoTopicCreationManager.creatableTopic.
"""

from __future__ import annotations

from kcluster.config.creatable_topic import creatable_topic
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.config.topology.specs import TopicSpec
from kcluster.protocol import messages as m
from kcluster.protocol.names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)


def auto_created_topic(name: str, config: BrokerConfig) -> m.CreateTopicsRequest.CreatableTopic:
    """The CreatableTopic that a broker requests.  Internal topics have their own configs."""
    if name == GROUP_METADATA_TOPIC:
        spec = TopicSpec(
            name=name,
            partitions=config.offsets_topic_num_partitions,
            replication_factor=config.offsets_topic_replication_factor,
            config={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    elif name == TRANSACTION_STATE_TOPIC:
        spec = TopicSpec(
            name=name,
            partitions=config.transaction_state_log_num_partitions,
            replication_factor=config.transaction_state_log_replication_factor,
            config={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    elif name == SHARE_GROUP_STATE_TOPIC:
        spec = TopicSpec(
            name=name,
            partitions=config.share_coordinator_state_topic_num_partitions,
            replication_factor=config.share_coordinator_state_topic_replication_factor,
            config={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            },
        )
    else:
        spec = TopicSpec(
            name=name,
            partitions=config.num_partitions,
            replication_factor=config.default_replication_factor,
        )
    return creatable_topic(spec)
