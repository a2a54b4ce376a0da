"""Quotas: of clients, of connections, of replicas that catch up.

Owns: the rates, and what follows from exceeding a limit.  Never: stores a limit (the image does).
Kafka: ClientQuotaManager, ConnectionQuotas, ReplicationQuotaManager.
"""
