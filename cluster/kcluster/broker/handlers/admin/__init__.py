"""Administration: topics, leaders, replicas, features, metrics."""
