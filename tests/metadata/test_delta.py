"""A delta changes an image exactly as its records do, one by one, and shares what it found."""

from __future__ import annotations

from random import Random

import pytest

from kcluster.metadata.delta import MetadataDelta
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    TOPIC_RESOURCE,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kcluster.principals import BrokerEndpoint

BROKERS = range(1, 6)


def random_records(random: Random, image: MetadataImage, count: int) -> list[MetadataRecord]:
    """Records that fit `image`, which follows them."""
    records: list[MetadataRecord] = []
    epoch = 0
    while len(records) < count:
        epoch += 1
        record: MetadataRecord
        name = random.choice("abc")
        topic = image.topics.get(name)
        replicas = tuple(random.sample(BROKERS, 3))
        match random.randrange(8):
            case 0 if topic is None:
                record = TopicRecord(name, random.randbytes(16))
            case 1 if topic is not None:
                record = RemoveTopicRecord(topic.topic_id)
            case 2:
                broker = random.choice(BROKERS)
                record = RegisterBrokerRecord(
                    BrokerRegistration(broker, epoch, (BrokerEndpoint("h", 9),), None)
                )
            case 3 if image.brokers:
                broker, registration = random.choice(sorted(image.brokers.items()))
                fenced = not registration.fenced
                record = BrokerRegistrationChangeRecord(broker, registration.epoch, fenced=fenced)
            case 4:
                record = ProducerIdsRecord(1, 1, epoch)
            case 5 if topic is not None:
                record = ConfigRecord(TOPIC_RESOURCE, name, "retention.ms", str(epoch))
            case _ if topic is not None:
                number = random.randrange(len(topic.partitions) + 1)
                new = PartitionRegistration(
                    topic.topic_id, number, replicas, replicas, replicas[0], epoch, epoch
                )
                record = PartitionRecord(new, (1, epoch))
            case _:
                continue
        image.apply(record)
        records.append(record)
    return records


def contents(image: MetadataImage) -> object:
    return (
        image.offset,
        list(image.brokers.items()),
        [(name, topic.topic_id, topic.partitions) for name, topic in image.topics.items()],
        list(image.topic_names.items()),
        image.configs,
        image.next_producer_id,
    )


@pytest.mark.parametrize("seed", range(5))
def test_delta__images_by_deltas_are_images_by_records(seed: int) -> None:
    random = Random(seed)
    by_records = MetadataImage()
    ahead, behind = MetadataImage(), MetadataImage()
    deltas: list[MetadataDelta] = []
    for _ in range(20):
        records = random_records(random, by_records, random.randrange(1, 30))
        deltas.append(MetadataDelta(ahead.offset + 1, records))
        deltas[-1].apply_to(ahead)
        assert contents(ahead) == contents(by_records)
    for delta in deltas:
        # Later records have changed neither what the others share nor what this one found.
        delta.apply_to(behind)
    assert contents(behind) == contents(by_records)
    assert all(behind.topics[name] is topic for name, topic in ahead.topics.items())


@pytest.mark.parametrize("seed", range(5))
def test_delta__names_each_partition_to_the_brokers_that_have_or_had_it(seed: int) -> None:
    random = Random(seed)
    by_records, image = MetadataImage(), MetadataImage()
    for _ in range(10):
        before = {
            (topic.topic_id, number): partition.replicas
            for topic in image.topics.values()
            for number, partition in enumerate(topic.partitions)
        }
        records = random_records(random, by_records, 20)
        delta = MetadataDelta(image.offset + 1, records)
        delta.apply_to(image)
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                key = (topic.topic_id, number)
                changed = any(
                    isinstance(record, PartitionRecord)
                    and (record.registration.topic_id, record.registration.partition) == key
                    for record in records
                )
                for broker in {*partition.replicas, *before.get(key, ())}:
                    assert (key in delta.partitions_of(broker)) == changed


def test_delta__is_not_applied_out_of_order() -> None:
    with pytest.raises(AssertionError):
        MetadataDelta(1, [ProducerIdsRecord(1, 1, 1)]).apply_to(MetadataImage())
