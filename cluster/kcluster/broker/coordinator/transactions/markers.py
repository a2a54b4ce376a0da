"""Markers on their way: from the coordinator to the leader of each partition of a transaction.

Owns: the partitions that still need their marker, WriteTxnMarkers and its retries.  Never: appends
a marker (the partition's leader does: handlers/transactions/write_markers.py), or decides on one.
Kafka: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.

DIFFERS: one request for each transaction and broker, sent at once; Kafka collects the markers of
many transactions.  Kafka retries in its sender's next turn; this sender after RETRY_MS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.transactions.transaction import (
    TopicPartition,
    Transaction,
    by_topic,
)
from kcluster.metadata.records import PartitionRegistration
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of

RETRY_MS: Final = 100
"""The time before a retry.  Kafka: retry.backoff.ms of clients, which the sender uses."""

_DROPS_ALL: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Errors that show that another coordinator, or a later epoch, has taken over: the sender gives
up."""

OnWritten = Callable[[Transaction, int], None]


class _Sending(Struct):
    """The markers of one transaction."""

    transaction: Transaction
    coordinator_epoch: int
    left: set[TopicPartition]
    in_flight: set[TopicPartition]


class MarkerSender:
    """The markers of one shard's transactions.  `on_written(transaction, now_ms)` is called when
    every partition has its marker."""

    def __init__(self, broker: CoordinatorBroker, shard: int, on_written: OnWritten) -> None:
        self._broker = broker
        self._shard = shard
        self._on_written = on_written
        self._sendings: dict[str, _Sending] = {}

    def start(self, transaction: Transaction, coordinator_epoch: int, now_ms: int) -> None:
        """Send the markers of a decided transaction, until each is written."""
        sending = _Sending(transaction, coordinator_epoch, set(transaction.partitions), set())
        self._sendings[transaction.transactional_id] = sending
        self._send(sending, now_ms)

    def complete_later(self, transaction: Transaction, now_ms: int) -> None:
        """Call `on_written` again after a pause: the markers are written, but the record of that is
        not."""
        sending = self._sendings.get(transaction.transactional_id)
        if sending is not None:
            self._retry(sending, now_ms)

    def stop(self, transactional_id: str) -> None:
        """Stop sending the markers of a transaction that is over."""
        if self._sendings.pop(transactional_id, None) is not None:
            self._broker.timers.cancel(self._timer(transactional_id))

    def stop_all(self) -> None:
        """Stop sending all markers, because this broker is not the coordinator any more."""
        for transactional_id in list(self._sendings):
            self.stop(transactional_id)

    # ----------------------------------------------------------------------- sending

    def _send(self, sending: _Sending, now_ms: int) -> None:
        by_broker: dict[int, list[TopicPartition]] = {}
        has_unknown = False
        for partition in sorted(sending.left - sending.in_flight):
            registration = self._registration(partition)
            if registration is None:
                sending.left.discard(partition)  # the topic was deleted
                continue
            leader = self._broker.image.brokers.get(registration.leader)
            if leader is None or leader.fenced:
                has_unknown = True
            else:
                by_broker.setdefault(leader.broker_id, []).append(partition)
        if not sending.left:
            self._on_written(sending.transaction, now_ms)
            return
        for broker_id, partitions in by_broker.items():
            self._send_to(broker_id, sending, partitions, now_ms)
        if has_unknown:
            self._retry(sending, now_ms)

    def _registration(self, partition: TopicPartition) -> PartitionRegistration | None:
        return self._broker.image.partition(*partition)

    def _send_to(
        self, broker_id: int, sending: _Sending, partitions: list[TopicPartition], now_ms: int
    ) -> None:
        sending.in_flight.update(partitions)
        transaction = sending.transaction
        marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=transaction.is_commit,
            topics=[
                m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=ids)
                for name, ids in by_topic(partitions).items()
            ],
            coordinator_epoch=sending.coordinator_epoch,
            transaction_version=transaction.client_version,
        )

        def answered(body: m.WriteTxnMarkersResponse | None, at_ms: int) -> None:
            sending.in_flight.difference_update(partitions)
            if self._sendings.get(transaction.transactional_id) is sending:
                self._on_answer(sending, body, at_ms)

        self._broker.ask_broker(
            broker_id,
            m.WriteTxnMarkersRequest(markers=[marker]),
            answered,
            self._broker.config.request_timeout_ms,
            now_ms,
        )

    def _on_answer(
        self, sending: _Sending, body: m.WriteTxnMarkersResponse | None, now_ms: int
    ) -> None:
        for result in [] if body is None else body.markers:
            for topic in result.topics:
                for partition in topic.partitions:
                    error = error_of(partition.error_code)
                    if error is ErrorCode.NONE:
                        sending.left.discard((topic.name, partition.partition_index))
                    elif error in _DROPS_ALL:
                        self.stop(sending.transaction.transactional_id)
                        return
        if not sending.left:
            self._on_written(sending.transaction, now_ms)
        elif sending.left - sending.in_flight:
            self._retry(sending, now_ms)

    def _retry(self, sending: _Sending, now_ms: int) -> None:
        transactional_id = sending.transaction.transactional_id

        def send(at_ms: int) -> None:
            if self._sendings.get(transactional_id) is sending:
                self._send(sending, at_ms)

        self._broker.timers.set(self._timer(transactional_id), now_ms + RETRY_MS, send)

    def _timer(self, transactional_id: str) -> tuple[object, ...]:
        return ("markers", self._shard, transactional_id)
