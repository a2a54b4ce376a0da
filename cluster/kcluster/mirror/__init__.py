"""The mirrors of a real Apache Kafka: what its own answers show, in the types of a simulated
cluster."""
