"""Formats of the coordinator's records on __transaction_state.

Owns: their bytes, equal to Kafka's.  Never: decides what is written, keeps state.
Kafka: TransactionLog, TransactionLogKey/Value.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct as Layout
from typing import Final

from kcluster.broker.coordinator.records import Encoded, decode_records
from kcluster.broker.coordinator.transactions.transaction import (
    Transaction,
    TransactionState,
    by_topic,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.records.records import Batch
from kcluster.structs import Frozen

_KEY_VERSION: Final = 0
_INT16: Final = Layout(">h")


class TransactionRecord(Frozen, frozen=True):
    """A transactional id with its transaction.  `transaction` None: a tombstone.  `version`: the
    version of the value; version 1 has tagged fields (transaction.version 1 and above)."""

    transactional_id: str
    transaction: Transaction | None
    version: int = 1

    def encode(self) -> Encoded:
        key = m.TransactionLogKey(transactional_id=self.transactional_id)
        encoded_key = record_codec("TransactionLogKey", _KEY_VERSION).encode_prefixed(key)
        if self.transaction is None:
            return encoded_key, None
        value = _value(self.transaction)
        return encoded_key, record_codec("TransactionLogValue", self.version).encode_prefixed(value)


def _value(transaction: Transaction) -> m.TransactionLogValue:
    partitions = [
        m.TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids)
        for topic, ids in by_topic(transaction.in_order).items()
    ]
    return m.TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )


def decode_transactions(batch: Batch) -> Iterator[TransactionRecord]:
    """The records of a batch, in the order in which they were written."""
    for _, record in decode_records(batch, _decode):
        yield record


def _decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    if _INT16.unpack_from(key)[0] != _KEY_VERSION:
        return None
    decoded = record_codec("TransactionLogKey", _KEY_VERSION).decode_prefixed(key)
    transactional_id = decoded.transactional_id
    if value is None:
        return TransactionRecord(transactional_id, None)
    return _read_transaction(transactional_id, value)


def _read_transaction(transactional_id: str, encoded: bytes) -> TransactionRecord:
    (version,) = _INT16.unpack_from(encoded)
    value = record_codec("TransactionLogValue", version).decode_prefixed(encoded)
    transaction = Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            (topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        last_update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
    return TransactionRecord(transactional_id, transaction, version)
