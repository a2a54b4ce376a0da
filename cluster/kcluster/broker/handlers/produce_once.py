"""What a Produce request says of each partition, once.

Owns: putting together what a client should not have sent apart.  Never: appends.
Kafka: KafkaApis.handleProduceRequest, whose maps by partition do this without saying so.
"""

from __future__ import annotations

from kcluster.protocol import messages as m


def once_each(
    topic_data: list[m.ProduceRequest.TopicProduceData],
) -> list[m.ProduceRequest.TopicProduceData]:
    """The topics of a request, each once, with each of its partitions once: of a partition that is
    named twice the last batch is taken, the others are dropped.  A topic without partitions is
    left out.  The list itself, where there is nothing to put together."""
    topics: dict[tuple[str, bytes], dict[int, m.ProduceRequest.PartitionProduceData]] = {}
    named = 0
    for topic in topic_data:
        partitions = topic.partition_data
        named += len(partitions)
        if partitions:
            known = topics.setdefault((topic.name, topic.topic_id), {})
            for data in partitions:
                known[data.index] = data
    if len(topics) == len(topic_data) and sum(map(len, topics.values())) == named:
        return topic_data
    return [
        m.ProduceRequest.TopicProduceData(name, topic_id, list(partitions.values()))
        for (name, topic_id), partitions in topics.items()
    ]
