"""A broker's own configs: their levels, the changes allowed while it runs, its loggers.

Owns: these rules.  Never: changes a config (publisher.py).  Kafka: DynamicBrokerConfig.
"""
