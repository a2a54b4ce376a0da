"""What is set for the cluster, its topics, groups, clients and users."""
