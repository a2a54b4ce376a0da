"""Topics for groups with epochs: partitions by topic id, and a hash of their metadata.

Owns: `Assignment`, and the hash by which a group notices a change of its topics.  Never: assigns.
Kafka: Assignment, Utils.computeGroupHash; KIP-1101 (the hash).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.metadata.image import MetadataImage, TopicImage

Assignment = Mapping[bytes, frozenset[int]]
"""Topic id -> partitions; no topic without partitions."""

NO_PARTITIONS: Final[Assignment] = {}
NO_HASH: Final = 0
"""The hash without topics."""


def metadata_hash(image: MetadataImage, topics: Iterable[str]) -> int:
    """A hash that changes when one of these topics is created or deleted, gets partitions, or has
    its replicas moved to other racks.

    DIFFERS: Kafka's hash is XXH3, in a format of its own.  Nothing but its coordinators reads it.
    """
    return TopicHashes().of_topics(image, topics)


class TopicHashes:
    """The hashes of topics, each kept until the cluster's metadata changes."""

    def __init__(self) -> None:
        self._offset = -1
        self._by_name: dict[str, bytes] = {}

    def of_topics(self, image: MetadataImage, topics: Iterable[str]) -> int:
        from hashlib import blake2b  # it loads OpenSSL, which the start of a cluster can do without

        if self._offset != image.offset:
            self._offset = image.offset
            self._by_name.clear()
        names = sorted(name for name in topics if name in image.topics)
        if not names:
            return NO_HASH
        hashed = blake2b(digest_size=8)
        for name in names:
            if name not in self._by_name:
                metadata = repr(_metadata(image, image.topics[name])).encode()
                self._by_name[name] = blake2b(metadata, digest_size=8).digest()
            hashed.update(self._by_name[name])
        return int.from_bytes(hashed.digest(), "big", signed=True)


def _metadata(image: MetadataImage, topic: TopicImage) -> tuple[object, ...]:
    racks = [sorted(partition_racks(image, topic, one)) for one in range(len(topic.partitions))]
    return topic.topic_id, topic.name, len(topic.partitions), racks


def partition_racks(image: MetadataImage, topic: TopicImage, partition: int) -> set[str]:
    """The racks that have a replica of a partition."""
    registered = (image.brokers.get(one) for one in topic.partitions[partition].replicas)
    return {one.rack for one in registered if one is not None and one.rack is not None}


def topic_ids(image: MetadataImage, names: Iterable[str]) -> dict[bytes, TopicImage]:
    """Topic id -> topic, for existing topics."""
    topics = (image.topics.get(name) for name in sorted(names))
    return {topic.topic_id: topic for topic in topics if topic is not None}
