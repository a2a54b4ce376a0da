"""The error of one partition in a Produce response."""

from __future__ import annotations

from kcluster.checks.stories.sends import code_of
from kcluster.config.topology.model import Topology
from kcluster.evidence.lookups import Facts
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.testing.handles import VirtualCluster

REFUSED = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_code__of_another_topic_does_not_count() -> None:
    cluster = VirtualCluster(Topology.of(brokers=1, topics={"orders": {}, "others": {}}), 1, "two")
    cluster.run_for(1_000)
    cluster.recorder.check_last_step()
    facts = Facts(cluster.recorder, cluster.ledger)
    ids = {each.topic: key[0] for key, each in cluster.recorder.partitions.items()}
    by_name, by_id = m.ProduceResponse(), m.ProduceResponse()
    for topic, code in (("others", REFUSED), ("orders", 0)):
        answers = [m.ProduceResponse.PartitionProduceResponse(index=0, error_code=code)]
        of_topic = m.ProduceResponse.TopicProduceResponse
        by_name.responses.append(of_topic(name=topic, partition_responses=answers))
        by_id.responses.append(of_topic(topic_id=ids[topic], partition_responses=answers))
    for body in (by_name, by_id):
        assert code_of(facts, body, ("others", 0)) == REFUSED
        assert code_of(facts, body, ("orders", 0)) == 0
