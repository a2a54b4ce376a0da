"""Records that a consumer asks for, and that a broker keeps back.

Owns: the position of each partition in the fetch sessions of consumers, by their requests, and each
Fetch answer without any record although there was one at such a position.  Never: looks into a
broker's sessions.  Kafka: FetchSession, ReplicaManager.fetchMessages, DelayedFetch; KIP-227.

    records-kept-back   an answer has no record at all, though the broker has had records for the
                        position of one of the partitions, and the answer has no error for it

A broker answers a fetch as soon as it has enough, or else after fetch.max.wait.ms with what it has.
A client that is throttled gets an empty answer.  Requests before version 3 may get nothing because
the first batch is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.serving.reading import READ_COMMITTED
from kcluster.broker.serving.sessions import FINAL_EPOCH, INITIAL_EPOCH
from kcluster.contract import Reply, Request
from kcluster.invariants.concerned import named_replica
from kcluster.invariants.facts import KeptBack
from kcluster.invariants.observed import Move, ObservedPartition, PartitionKey
from kcluster.invariants.promises import forget_oldest
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import ZERO_UUID

_OF_ALL: Final = (INITIAL_EPOCH, FINAL_EPOCH)
"""The session epochs of requests that name all of their partitions."""
_FIRST_WHOLE_BATCH: Final = 3
"""The first version in which the first batch comes whole, however large it is."""
_Place = tuple[bytes, str, int]
"""(topic id, the name before there were ids, partition)."""
PartitionOf = Callable[[str, PartitionKey], ObservedPartition]


class AskedPositions:
    """The fetch sessions of one run.  `look` is called after each step of a broker."""

    def __init__(self, partition_of: PartitionOf) -> None:
        self._partition_of = partition_of
        self._positions: dict[tuple[int, int], dict[_Place, int]] = {}
        """By broker and session id."""
        self._decided: list[Reply] = []
        """The answers of the last step."""
        self._held_back: dict[Request, None] = {}
        """The requests whose answer a fault rule sends later, or never."""

    def on_decided(self, reply: Reply, *, is_sent: bool) -> None:
        """Record an answer when it is decided, and again when it is sent."""
        if reply.body is None or reply.is_of_rule or reply.request in self._held_back:
            return
        self._decided.append(reply)
        if not is_sent:
            self._held_back[reply.request] = None
            forget_oldest(self._held_back)

    def look(self, node: BrokerNodeView, now_ms: int) -> Iterator[tuple[Replica, KeptBack]]:
        """The partitions whose records a broker has kept back in its last step."""
        if self._decided:
            decided, self._decided = self._decided, []
            for reply in decided:
                yield from self._kept_back(node, reply, now_ms)

    def _kept_back(
        self, node: BrokerNodeView, reply: Reply, now_ms: int
    ) -> Iterator[tuple[Replica, KeptBack]]:
        """The first partition whose records an answer keeps back."""
        broker = node.node_id
        asked: m.FetchRequest = reply.request.body
        answer: m.FetchResponse = reply.body
        if asked.replica_id >= 0 or asked.replica_state.replica_id >= 0:
            return
        positions = self._asked_for(broker, asked, answer)
        has_records = any(one.records for topic in answer.responses for one in topic.partitions)
        if has_records or answer.throttle_time_ms or reply.request.api_version < _FIRST_WHOLE_BATCH:
            return
        refused = {
            named_replica(node.replicas, topic.topic_id, topic.topic, one.partition_index)
            for topic in answer.responses
            for one in topic.partitions
            if one.error_code or one.preferred_read_replica >= 0 or one.diverging_epoch.epoch >= 0
        }
        is_committed = asked.isolation_level == READ_COMMITTED
        for place, offset in positions.items():
            replica = named_replica(node.replicas, *place)
            if replica is None or replica in refused:
                continue
            moves = self._partition_of(replica.topic, replica.key).moves
            end = _readable_end(moves, broker, now_ms, is_committed)
            if offset < end and _has_batch(replica, offset, end):
                yield replica, KeptBack(offset, end)
                return

    def _asked_for(
        self, broker: int, asked: m.FetchRequest, answer: m.FetchResponse
    ) -> dict[_Place, int]:
        """The positions of all partitions that a request asks for."""
        named = {
            _place(topic, one.partition): one.fetch_offset
            for topic in asked.topics
            for one in topic.partitions
        }
        key = (broker, asked.session_id)
        if answer.error_code:
            self._positions.pop(key, None)
            return {}
        if asked.session_epoch in _OF_ALL:
            self._positions.pop(key, None)
            if answer.session_id:
                self._positions[broker, answer.session_id] = named
                forget_oldest(self._positions)
            return named
        positions = self._positions.get(key)
        if positions is None:
            return {}  # forgotten here
        for topic in asked.forgotten_topics_data:
            for partition in topic.partitions:
                positions.pop(_place(topic, partition), None)
        positions.update(named)
        return positions


def _place(
    topic: m.FetchRequest.FetchTopic | m.FetchRequest.ForgottenTopic, partition: int
) -> _Place:
    return (topic.topic_id, topic.topic if topic.topic_id == ZERO_UUID else "", partition)


def _readable_end(moves: list[Move], broker: int, now_ms: int, is_committed: bool) -> int:
    """The offset up to which a broker could give records to a consumer before this moment; -1: it
    is not known."""
    for move in reversed(moves):
        if move.broker == broker and move.at_ms < now_ms:
            return move.last_stable_offset if is_committed else move.high_watermark
    return -1


def _has_batch(replica: Replica, offset: int, end: int) -> bool:
    """Whether a log has a batch in a range of offsets: compaction leaves gaps."""
    batches = replica.log.batches_from(offset)
    return bool(batches) and batches[0].base_offset < end and batches[0].last_offset >= offset
