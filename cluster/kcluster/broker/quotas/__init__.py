"""Quotas: of clients, of connections, of replicas that catch up.

Owns: the rates, and the consequences of exceeding a limit.  Never: stores a limit (the image does).
Kafka: ClientQuotaManager, ConnectionQuotas, ReplicationQuotaManager.
"""
