"""Kafka's configs: names, types, ranges, defaults."""
