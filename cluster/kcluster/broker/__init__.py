"""A broker: one node's decisions, from a request or a message to what is to be done.

Owns: everything that happens inside one broker.  Never: does I/O (network/ and runtime/ do), or
decides for the cluster (controller/ does).  Kafka: BrokerServer and what it is made of.
"""
