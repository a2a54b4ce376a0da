"""The state behind Produce and Fetch beyond one request: sessions, reads, waiting appends.

Owns: the state of fetchers and producers that wait.  Never: answers (handlers/ do). Kafka:
FetchSession, DelayedProduce, ReplicaManager.readFromLog.
"""
