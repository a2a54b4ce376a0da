"""The brokers of the cluster, and which of them are alive."""
