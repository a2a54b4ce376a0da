"""A broker: one node's decisions, from a request or a message to its effects.

Owns: everything that happens inside one broker.  Never: does I/O (network/ and runtime/ do), or
decides for the cluster (controller/ does).  Kafka: BrokerServer and what it is made of.

    channel.py    frames to requests, answers to bytes
    node.py       a step: an event to its effects, by the parts below
    handlers/     one module per API family, by subject
    serving/      what outlives one Produce or Fetch: sessions, reads, appends that wait
    replication/  the replicas here, their fetchers, ISRs and periodic work
    quotas/       limits of clients, connections and replicas that catch up
    configs/      the broker's own configs
    coordinator/  consumer groups

Modules import downward in the order handlers, replication, quotas, serving; none of them imports
the node (they see it through ports.py), except that handlers name its type.
"""
