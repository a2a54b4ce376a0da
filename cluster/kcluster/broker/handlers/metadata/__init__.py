"""What a client learns of the cluster: brokers, topics, versions."""
