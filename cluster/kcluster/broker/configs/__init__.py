"""A broker's own configs: their levels, what may be changed while it runs, its loggers.

Owns: these rules.  Never: changes a config (publisher.py).  Kafka: DynamicBrokerConfig.
"""
