"""Conformance: requests to any Kafka-compatible cluster, and what Apache Kafka answered to them."""
