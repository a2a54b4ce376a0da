"""Consumer groups: who coordinates them, their members, their committed offsets.

Owns: groups and offsets of the __consumer_offsets partitions that a broker leads.  Never: stores
anything but in that topic's log.  Kafka: org.apache.kafka.coordinator.group.
"""

from kcluster.broker.coordinator.coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
