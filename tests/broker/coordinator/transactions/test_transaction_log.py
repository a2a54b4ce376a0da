"""Records of __transaction_state: ours are byte for byte those of Apache Kafka 4.3.1."""

from __future__ import annotations

from itertools import chain

import pytest

from kcluster.broker.coordinator.records import encode_records
from kcluster.broker.coordinator.transactions.transaction import TransactionState
from kcluster.broker.coordinator.transactions.transaction_log import (
    TransactionRecord,
    decode_transactions,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from kcluster.protocol.records.records import Record, build_batch, parse_batches, read_records
from tests.broker.coordinator.transactions.transaction_rig import TransactionRig

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


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_transaction_log__format_is_that_of_the_transaction_version(
    level: int, version: int
) -> None:
    rig = TransactionRig(features={"transaction.version": level})
    producer = rig.producer()
    assert [producer.init(), producer.add(), producer.write(b"x")] == ["NONE"] * 3
    assert written_versions(rig) == {version}
    rig.kill(rig.coordinator)
    rig.wait(lambda: rig.coordinator not in (2, -1))
    assert [producer.end(), rig.read(), rig.state_of()] == ["NONE", [b"x"], "CompleteCommit"]


def test_transaction_log__its_format_changes_with_the_feature_at_once() -> None:
    rig = TransactionRig()
    producer = rig.producer(v2=True)
    assert [producer.init(), producer.write(b"x")] == ["NONE", "NONE"]
    update = m.UpdateFeaturesRequest.FeatureUpdateKey("transaction.version", 0, False, 2)
    body = m.UpdateFeaturesRequest(feature_updates=[update])
    assert rig.ask_and_wait(1, ApiKey.UPDATE_FEATURES, 2, body).error_code == 0
    rig.run_for(100)
    assert producer.end() == "NONE"
    assert written_versions(rig) == {0, 1}
    assert (rig.read(), producer.epoch) == ([b"x"], 1)


def written_versions(rig: TransactionRig) -> set[int]:
    """The versions of the values in the transaction log."""
    log = rig.plan.disks[rig.coordinator].logs[
        rig.verbs.partition(TRANSACTION_STATE_TOPIC, 0).topic_id, 0
    ]
    records = chain.from_iterable(
        read_records(each) for each in log.read(0, 1 << 20, log.log_end_offset, True)
    )
    return {record.value[1] for record in records if record.value}


def test_transaction_log__tombstone_forgets_the_id() -> None:
    assert decoded(None) == TransactionRecord("bytes", None)
