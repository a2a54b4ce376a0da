"""A broker: one node's decisions, from a request or a message to its effects.

Owns: everything that happens inside one broker.  Never: does I/O (network/ and runtime/ do), or
decides for the cluster (controller/ does).  Kafka: BrokerServer and its parts.

    channel.py    frames to requests, answers to bytes
    node.py       a step: an input to its effects, by handlers and parts
    handlers/     one module per API family, by subject
    broker.py     the broker for its handlers: the parts below, and replies
    serving/      state beyond one Produce or Fetch: sessions, reads, waiting appends
    replication/  the replicas here, their fetchers, ISRs and periodic work
    quotas/       limits of clients, connections and replicas that catch up
    configs/      the broker's own configs
    coordinator/  consumer groups

Modules import downward in the order node, handlers, broker, then replication, quotas, serving.  No
part knows the broker; ports.py has their interface to it.
"""
