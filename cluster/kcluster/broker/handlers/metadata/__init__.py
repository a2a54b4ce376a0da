"""What clients learn about the cluster: brokers, topics, versions."""
