"""What serves Produce and Fetch beyond one request: sessions, reads, appends that wait.

Owns: the state of fetchers and producers that wait.  Never: answers (handlers/ do).
Kafka: FetchSession, DelayedProduce, ReplicaManager.readFromLog.
"""
