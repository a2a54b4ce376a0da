"""Facts about the cluster for clients: brokers, topics, versions."""
