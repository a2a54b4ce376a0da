"""Consumer groups (KIP-848): members with epochs, assigned by the coordinator.

Owns: consumer groups with epochs.  Never: reads or writes the log itself (shard.py does).
Kafka: coordinator.group.modern.consumer, GroupMetadataManager.consumerGroup*.

The path of a ConsumerGroupHeartbeat:

    handlers/groups/consumer_groups.py  checks what needs no group
    coordinator.py    finds the shard and the group, or a new one
    heartbeat.py      the decision: the member, the group epoch, the target, the member's partitions
    reconcile.py      the partitions that the member may have or must revoke on its way there
    log_shard.py      the records are appended and replayed; timers; the answer, when committed

member.py: a member's value and its records.
"""
