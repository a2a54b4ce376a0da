"""Who leads each partition, which replicas are in sync, and where its replicas are."""
