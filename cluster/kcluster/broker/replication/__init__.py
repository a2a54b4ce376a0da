"""Replicas on this broker: found, followed, kept in their ISRs, maintained.

Owns: everything about replication that is not within one replica (partition/replica.py) or one
request (handlers/).  Never: decides who leads.  Kafka: ReplicaManager, ReplicaFetcherThread,
AlterPartitionManager.
"""
