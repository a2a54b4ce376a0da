"""A topic of a topology as CreateTopics asks for it.

Owns: the request's field for each field of a TopicSpec.  Never: checks them.
Kafka: NewTopic.convertToCreatableTopic.
"""

from __future__ import annotations

from kcluster.config.topology.specs import TopicSpec
from kcluster.protocol import messages as m


def creatable_topic(spec: TopicSpec) -> m.CreateTopicsRequest.CreatableTopic:
    """The CreatableTopic of a spec.  With an assignment, which implies both counts, these are
    -1."""
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
