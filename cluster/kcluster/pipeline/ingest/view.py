"""A view of a cluster's topics at one moment: ids, log starts and ends, leader epochs.

Owns: the lookups that make a view, the timeout of the first answer.  Never: talks to brokers itself
(source/lookups.py), decides what is lost (losses.py).
Kafka: Admin.describeTopics and listOffsets; OffsetsForLeaderEpochClient (KIP-320).
"""

from __future__ import annotations

from typing import Final

from kcluster.config.files.problems import unknown
from kcluster.pipeline.ingest.losses import Known, PartitionNow, TopicNow, View
from kcluster.pipeline.ingest.options import BadInput, IngestError
from kcluster.pipeline.source.client import BlockingClient
from kcluster.pipeline.source.errors import SourceError, Unreachable
from kcluster.pipeline.source.lookups import Lookups
from kcluster.pipeline.source.losses import NO_EPOCH, Wanted
from kcluster.pipeline.source.options import ReadSettings, read_settings

_FIRST_MS: Final = 2_000
"""Timeout of the first check; later lookups use default.api.timeout.ms."""


class ClusterView:
    """Views of some topics of a cluster.  Raises IngestError if no broker answers in time."""

    def __init__(self, bootstrap: str, topics: tuple[str, ...]) -> None:
        self.bootstrap, self.topics = bootstrap, topics
        self._settings = self._read()
        self._lookups = Lookups(BlockingClient(self._settings.client), self._settings)

    def check(self, may_be_gone: bool = False) -> None:
        """Check that a broker answers, and that the topics exist; BadInput (with the closest name)
        if not."""
        client = BlockingClient(self._read(_FIRST_MS).client)
        try:
            client.refresh(None)
        except Unreachable as error:
            raise BadInput(f"no broker at {self.bootstrap}: {error}") from None
        finally:
            client.close()
        there = sorted(name for name, topic in client.topics.items() if not topic.is_internal)
        for topic in self.topics:
            if topic not in client.topics and not may_be_gone:
                raise BadInput(f"topic {topic}: {unknown('topic', topic, there)}")

    def look(self, known: Known | None = None) -> View:
        """The current topics, without missing ones; waits while partitions have no leader.
        `known`: the epochs whose ends are requested."""
        try:
            topics = self._lookups.partitions(expected=self.topics)
            wanted = [
                _wanted(name, partition, topic.id, known or {})
                for name, topic in topics.items()
                for partition in topic.partitions
            ]
            logs = self._lookups.logs_now(wanted)
        except SourceError as error:
            raise IngestError(str(error)) from None
        logs_by_topic: dict[str, dict[int, PartitionNow]] = {}
        ids: dict[str, str] = {}
        for one, log in zip(wanted, logs, strict=True):
            if log is not None and ids.setdefault(one.topic, log.topic_id) == log.topic_id:
                epoch = self._lookups.client.leader(one.topic, one.partition).epoch
                now = PartitionNow(log.start, log.end, epoch, log.epoch_end)
                logs_by_topic.setdefault(one.topic, {})[one.partition] = now
        return {name: TopicNow(ids[name], partitions) for name, partitions in logs_by_topic.items()}

    def close(self) -> None:
        """Close the connections."""
        self._lookups.client.close()

    def _read(self, timeout_ms: int | None = None) -> ReadSettings:
        chosen = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": ",".join(self.topics)}
        if timeout_ms is not None:
            chosen["kafka.default.api.timeout.ms"] = str(timeout_ms)
        return read_settings({**chosen, "kafka.client.id": "kcluster-ingest"}, True)


def _wanted(topic: str, partition: int, topic_id: str, known: Known) -> Wanted:
    was = known.get(topic)
    last_known = None if was is None or was.topic_id != topic_id else was.partitions.get(partition)
    return Wanted(topic, partition, 0, None, NO_EPOCH if last_known is None else last_known.epoch)
