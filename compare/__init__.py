"""The comparison with Apache Kafka: the same requests to a real cluster and to ours.

Owns: nothing itself; README.md says how to add a case.
"""
