"""The configs of the cluster, its topics and groups, clients' quotas, and users' credentials."""
