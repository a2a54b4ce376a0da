"""Groups of consumers: their coordinators, their members, their committed offsets.

Owns: groups and offsets of the __consumer_offsets partitions that a broker leads.  Never: stores
anything outside of that topic's log.  Kafka: org.apache.kafka.coordinator.group.

The path of a JoinGroup:

    handlers/groups/groups.py  join_group         checks what needs no group
    coordinator.py             join               finds the shard, and finds or creates the group
    classic_group.py           ClassicGroup.join  checks, parks the request, starts a rebalance
                               _complete_join     the join phase ends: answers all JoinGroups
    shard.py                   append             SyncGroup of the leader: the assignment is written
    classic_group.py           stored             it is committed: answers all SyncGroups

The path of an OffsetCommit:

    handlers/groups/group_offsets.py  offset_commit    checks topics, shapes the answer
    coordinator.py                    commit_offsets   finds the shard
    shard.py                          admit_commit     finds the group and asks it
    classic_group.py                  admit_commit     checks member and generation
    shard.py                          append, then apply the offset and answer when it is committed

The path of a heartbeat of a group with epochs:

    handlers/groups/consumer_groups.py  checks what needs no group, shapes the answer
    coordinator.py                      modern_heartbeat: finds the shard and the group
    consumer/heartbeat.py               decide_heartbeat: RequestRefused, or a CoordinatorResult
    log_shard.py                        write: records, replay, effects; the answer when committed

log_shard.py: a partition as the log of a coordinator of any kind; shards.py: all shards of one
broker. records.py: the common part of all records. metadata/placement.py: the partition that
coordinates a key.  interface.py: the ports to the broker and to the shard, and the results of
requests. group.py: the interface of a group of any kind; group_kinds.py: the existing kinds.
modern/: the common part of groups with epochs; consumer/: consumer groups (KIP-848); share/: share
groups (KIP-932), with share_state/, the share coordinator, which keeps the state of their share
partitions; streams/: streams groups (KIP-1071). offsets.py: committed offsets.  group_log.py: the
records; group_records.py: the readers of all kinds.  group_timers.py: a group's timers.
classic_members.py, classic_calls.py: values of classic groups.
"""

from kcluster.broker.coordinator.coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
