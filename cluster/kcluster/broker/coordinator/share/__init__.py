"""Share groups: members that share partitions, and the share partitions that they read (KIP-932).

Owns: members, the assignment, and the list of share partitions with a state.  Never: keeps a state
(share_state/ does), delivers a record (the share-partition leader does).  Kafka: modern.share;
GroupMetadataManager's part about share groups.

    member.py             a member, as a value
    state_partitions.py   which share partitions are being initialized, are initialized, or deleted
    assignor.py           the simple assignor: a partition may go to several members
    group.py              the group: the sum of its records; its requests to the persister
    heartbeat.py          ShareGroupHeartbeat: the changes by one heartbeat
    offsets.py            AlterShareGroupOffsets, DeleteShareGroupOffsets
"""
