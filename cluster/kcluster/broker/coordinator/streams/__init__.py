"""Streams groups: the coordinator assigns the tasks of a Kafka Streams application (KIP-1071).

Owns: a streams group's topology, its tasks, its assignment and reconciliation, its records and its
internal topics.  Never: the machinery that groups with epochs share (broker/coordinator).
Kafka: org.apache.kafka.coordinator.group.streams.

The path of a StreamsGroupHeartbeat:

    handlers/groups/streams_groups.py  checks that need no group
    heartbeat.py                       member, topology, group epoch, target assignment, answer
    configured.py                      the topology against the cluster's topics: tasks, or a status
    assignor.py                        which member should have which task
    reconciliation.py                  the member's next step towards its target

topology.py: what the application declares.  tasks.py: sets of tasks, and who holds them.
member.py: one member.  internal_topics.py: creating repartition and changelog topics.
"""
