"""A topic of a topology as CreateTopics asks for it.

Owns: which fields of a TopicSpec become which of the request's.  Never: checks them.
Kafka: NewTopic.convertToCreatableTopic.
"""

from __future__ import annotations

from kcluster.config.topology.specs import TopicSpec
from kcluster.protocol import messages as m


def creatable_topic(spec: TopicSpec) -> m.CreateTopicsRequest.CreatableTopic:
    """The CreatableTopic of a spec.  Beside an assignment both counts are -1: it implies them."""
    assignment = spec.assignment or ()
    request = m.CreateTopicsRequest
    return request.CreatableTopic(
        name=spec.name,
        num_partitions=-1 if assignment else spec.partitions,
        replication_factor=-1 if assignment else spec.replication_factor,
        assignments=[
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(assignment)
        ],
        configs=[
            request.CreatableTopicConfig(name=name, value=value)
            for name, value in spec.config.items()
        ],
    )
