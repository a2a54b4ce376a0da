"""The judge of what clients saw: a history in, its anomalies out, without a look into a cluster.

Owns: histories and their files, the logs that reads show, the judgement and its proofs.  Never:
finds an anomaly by itself where checks/anomalies/ does; knows a broker, a driver or a clock.
Kafka: no counterpart; the checker of jepsen.tests.kafka.
"""
