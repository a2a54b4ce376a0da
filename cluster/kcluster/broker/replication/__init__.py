"""Replicas on this broker: found, followed, kept in their ISRs, maintained.

Owns: replication beyond one replica (partition/replica.py) and one request (handlers/).  Never:
decides who leads.  Kafka: ReplicaManager, ReplicaFetcherThread, AlterPartitionManager.
"""
