"""Who leads a partition, who is in sync, where its replicas are."""
