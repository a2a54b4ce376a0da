"""Records of __transaction_state: ours are byte for byte those of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.records import encode_records
from kcluster.broker.coordinator.transactions.transaction import TransactionState
from kcluster.broker.coordinator.transactions.transaction_log import (
    TransactionRecord,
    decode_transactions,
)
from kcluster.protocol.records.records import Record, build_batch, parse_batches, read_records

KEY = bytes.fromhex("000000056279746573")
SEEN = {
    "EMPTY": "0001000000000000000000000000ea600000000001a201f72c4affffffffffffffff"
    "0100080000000000000000",
    "ONGOING": "0001000000000000000000000000ea600102036274020000000000000001a201f72c85"
    "000001a201f72c850100080000000000000000",
    "PREPARE_COMMIT": "0001000000000000000000000000ea600202036274020000000000000001a201f72cbb"
    "000001a201f72c850100080000000000000000",
    "COMPLETE_ABORT": "0001000000000000000000000000ea600501000001a201f72d08000001a201f72cf4"
    "0100080000000000000000",
}
"""Values as read from a real broker's partition, whose producer was librdkafka."""


def decoded(value: bytes | None) -> TransactionRecord:
    (batch,) = parse_batches(build_batch([Record(0, 7, KEY, value)]))
    (record,) = decode_transactions(batch)
    return record


@pytest.mark.parametrize("state", SEEN)
def test_transaction_log__reads_and_writes_what_kafka_wrote(state: str) -> None:
    record = decoded(bytes.fromhex(SEEN[state]))
    assert record.transaction is not None
    assert record.transaction.state is TransactionState[state]
    assert record.transaction.transactional_id == "bytes"
    (again,) = read_records(parse_batches(encode_records([record], 7))[0])
    assert (again.key, again.value) == (KEY, bytes.fromhex(SEEN[state]))


def test_transaction_log__tombstone_forgets_the_id() -> None:
    assert decoded(None) == TransactionRecord("bytes", None)
