"""The leader of each partition, its in-sync replicas, and the places of its replicas."""
