"""The shards of one kind of coordinator on one broker, and their internal topic.

Owns: this broker's shards, the shard of a key, creating the topic when first needed. Never: knows
the state of a shard (its class does), answers a request.  Kafka: CoordinatorRuntime (without its
threads), AutoTopicCreationManager (for internal topics).

The broker calls `on_elected` and `on_resigned` at the beginning and at the end of its leadership of
a partition of `topic`.  Loading takes no time here.  COORDINATOR_LOAD_IN_PROGRESS is returned where
an answer depends on records that the new leader does not yet know to be committed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Generic, TypeVar

from kcluster.broker.auto_topics import auto_created_topic
from kcluster.broker.coordinator.interface import (
    A,
    CoordinatorBroker,
    CoordinatorResult,
    OnAnswer,
    RequestRefused,
)
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

S = TypeVar("S", bound=LogShard[Any])


class ShardedCoordinator(ABC, Generic[S]):
    """A sharded coordinator.  `shards`: the shards by partition of `topic`, for the partitions that
    this broker leads."""

    topic: ClassVar[str]

    def __init__(self, broker: CoordinatorBroker) -> None:
        self.broker = broker
        self.shards: dict[int, S] = {}
        self._creating_topic = False

    @property
    @abstractmethod
    def default_partitions(self) -> int:
        """The number of partitions that the topic will have when it is created."""

    @abstractmethod
    def new_shard(self, partition: int) -> S:
        """An empty shard, to be loaded."""

    # ------------------------------------------------------------------- who coordinates

    @property
    def led(self) -> Collection[int]:
        """The partitions of the topic that this broker leads."""
        return self.shards.keys()

    def partition_for(self, key: str) -> int:
        """Partition of the topic whose leader coordinates `key`."""
        topic = self.broker.image.topics.get(self.topic)
        count = self.default_partitions if topic is None else len(topic.partitions)
        return coordinator_partition(key, count)

    def shard_for(self, key: str) -> S | ErrorCode:
        """The shard that has `key`, or NOT_COORDINATOR."""
        shard = self.shards.get(self.partition_for(key))
        return ErrorCode.NOT_COORDINATOR if shard is None else shard

    def ready_shard(self, key: str, now_ms: int) -> S | ErrorCode:
        """The shard that has `key`, after applying everything committed; NOT_COORDINATOR, or
        COORDINATOR_LOAD_IN_PROGRESS."""
        shard = self.shard_for(key)
        if isinstance(shard, ErrorCode):
            return shard
        error = shard.check_loaded()
        if error is not ErrorCode.NONE:
            return error
        shard.catch_up(now_ms)
        return shard

    def write(
        self,
        key: str,
        decide: Callable[[S], CoordinatorResult[A] | RequestRefused],
        on_answer: OnAnswer[A],
        now_ms: int,
    ) -> None:
        """Have the shard of `key` carry out the decision of `decide`, and answer.  Kafka:
        CoordinatorRuntime.scheduleWriteOperation."""
        shard = self.ready_shard(key, now_ms)
        if isinstance(shard, ErrorCode):
            on_answer(RequestRefused(shard), now_ms)
        else:
            shard.write(decide(shard), on_answer, now_ms)

    # ----------------------------------------------------------------------------- topic

    def create_topic(self, now_ms: int) -> None:
        """Have the controller create the topic, unless that request is in flight."""
        if self._creating_topic:
            return
        self._creating_topic = True
        config = self.broker.config
        timeout_ms = config.request_timeout_ms
        request = m.CreateTopicsRequest(
            topics=[auto_created_topic(self.topic, config)], timeout_ms=timeout_ms
        )
        self.broker.ask_controller(request, self._on_topic_answer, timeout_ms, now_ms)

    def _on_topic_answer(self, _body: object, _now_ms: int) -> None:
        # Ignore the result: the client asks again, and either finds the topic or causes a new
        # request.
        self._creating_topic = False

    # ---------------------------------------------------------------- the broker's calls

    def on_elected(self, partition: int, now_ms: int) -> None:
        """Load the log of `partition`, which this broker now leads."""
        if partition in self.shards:
            return
        shard = self.shards[partition] = self.new_shard(partition)
        shard.load(now_ms)

    def on_resigned(self, partition: int, now_ms: int) -> None:
        """Forget the state of `partition`, which this broker no longer leads."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.unload(now_ms)

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        """Take note that a topic, of any name, was deleted."""
