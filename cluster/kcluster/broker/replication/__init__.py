"""Replicas on one broker: finding them, following leaders, keeping ISRs, maintenance.

Owns: replication beyond one replica (partition/replica.py) and one request (handlers/).  Never:
decides who leads.  Kafka: ReplicaManager, ReplicaFetcherThread, AlterPartitionManager.
"""
