"""Scenarios played on Apache Kafka and on simulated brokers with the same times: `make certify`."""
