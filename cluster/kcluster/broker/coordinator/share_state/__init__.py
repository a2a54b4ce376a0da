"""Share state: the progress of share groups on their records, kept by share coordinators.

Owns: the state of the share partitions whose partition of __share_group_state a broker leads, and
the client side, by which any broker reads and writes a state.  Never: knows a member of a group, or
what is in flight.  Kafka: share-coordinator, org.apache.kafka.server.share.persister; KIP-932.
"""
