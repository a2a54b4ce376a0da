"""Share state: what has become of the records that share groups read, kept by coordinators.

Owns: the state of the share partitions whose partition of __share_group_state a broker leads, and
the other side: how any broker has a state kept.  Never: knows a member of a group, or what is in
flight.  Kafka: share-coordinator, org.apache.kafka.server.share.persister; KIP-932.
"""
