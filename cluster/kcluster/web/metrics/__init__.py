"""The metrics of clusters, under the names that Kafka's have in Prometheus."""
