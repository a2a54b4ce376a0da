"""A proxy before any Kafka cluster: it passes requests on, records them, and applies rules."""
