"""A broker: one node's decisions, from a request or a message to its effects.

Owns: everything that happens inside one broker.  Never: does I/O (network/ and runtime/ do), or
decides for the cluster (controller/ does).  Kafka: BrokerServer and what it is made of.

    channel.py    frames to requests, answers to bytes
    node.py       a step: an input to its effects, by handlers and parts
    handlers/     one module per API family, by subject
    broker.py     what handlers see of the broker: the parts below, and how to answer
    serving/      what outlives one Produce or Fetch: sessions, reads, appends that wait
    replication/  the replicas here, their fetchers, ISRs and periodic work
    quotas/       limits of clients, connections and replicas that catch up
    configs/      the broker's own configs
    coordinator/  consumer groups

Modules import downward in the order node, handlers, broker, then replication, quotas, serving.  No
part knows the broker: ports.py has what they see of it.
"""
