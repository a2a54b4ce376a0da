"""One story for each protocol, request by request: every answer is what Apache Kafka 4.3.1 gave."""

from __future__ import annotations

from tests.broker.coordinator.transactions.transaction_rig import TransactionRig


def test_v2__answers_are_kafkas() -> None:
    rig = TransactionRig()
    producer = rig.producer(v2=True)
    assert producer.init() == "NONE"
    assert producer.end(commit=True) == "INVALID_TXN_STATE"
    assert producer.write(b"x") == "NONE"
    assert producer.end() == "NONE"
    # The answer was lost: the client asks again with the epoch of then.
    assert producer.as_of(epoch=0).end(commit=True) == "NONE"
    assert producer.as_of(epoch=0).end(commit=False) == "INVALID_TXN_STATE"
    # A transaction of which only the client knows can be aborted.
    assert producer.end(commit=True) == "INVALID_TXN_STATE"
    assert producer.end(commit=False) == "NONE"
    assert (rig.state_of(), producer.epoch) == ("CompleteAbort", 2)
    assert producer.end(commit=False) == "NONE"
    assert producer.as_of(epoch=0).end() == "PRODUCER_FENCED"
    assert producer.as_of(epoch=9).end() == "PRODUCER_FENCED"
    assert producer.as_of(producer_id=77).end() == "INVALID_PRODUCER_ID_MAPPING"
    # Each epoch begins with sequence 0.
    assert producer.as_of(sequence=1).write(b"x") == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert producer.as_of(epoch=2).write(b"x") == "INVALID_PRODUCER_EPOCH"
    assert producer.write(b"x") == "NONE"
    assert producer.as_of(sequence=0).write(b"x") == "NONE"
    assert producer.as_of(sequence=5).write(b"x") == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert producer.commit_offset(5) == "NONE"
    assert producer.as_of(epoch=2).commit_offset(5) == "INVALID_PRODUCER_EPOCH"
    assert rig.committed_offset() == "UNSTABLE_OFFSET_COMMIT"
    assert producer.end(commit=False) == "NONE"
    assert rig.committed_offset() == -1
    assert producer.commit_offset(5, version=3) == "INVALID_TXN_STATE"
    assert producer.commit_offset(5, version=4) == "TRANSACTION_ABORTABLE"
    # KIP-360: the same request again gets the same answer.
    again = producer.as_of()
    assert [producer.init(keep=True), producer.epoch] == ["NONE", 5]
    assert [again.init(keep=True), again.epoch] == ["NONE", 5]
    assert producer.as_of(epoch=2).init(keep=True) == "PRODUCER_FENCED"


def test_v1__answers_are_kafkas() -> None:
    rig = TransactionRig()
    producer = rig.producer()
    assert producer.init() == "NONE"
    assert producer.as_of(epoch=1).add() == "PRODUCER_FENCED"
    assert producer.as_of(epoch=1).add(version=1) == "INVALID_PRODUCER_EPOCH"
    assert producer.as_of(producer_id=77).add() == "INVALID_PRODUCER_ID_MAPPING"
    assert producer.add("nowhere") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert rig.producer("nobody").add() == "INVALID_PRODUCER_ID_MAPPING"
    assert rig.producer("").add() == "INVALID_REQUEST"
    assert producer.end() == "INVALID_TXN_STATE"
    assert [producer.add(), producer.add()] == ["NONE", "NONE"]
    assert producer.as_of(epoch=1).end() == "PRODUCER_FENCED"
    assert producer.as_of(epoch=1).end(version=1) == "INVALID_PRODUCER_EPOCH"
    assert producer.write(b"x") == "NONE"
    assert [producer.end(), producer.end()] == ["NONE", "NONE"]
    assert producer.end(commit=False) == "INVALID_TXN_STATE"
    assert producer.write(b"x") == "INVALID_TXN_STATE"
    assert producer.add_offsets() == "NONE"
    assert producer.commit_offset(5) == "NONE"
    assert producer.commit_offset(5, generation_id=3, member_id="x") == "UNKNOWN_MEMBER_ID"
    assert rig.committed_offset() == "UNSTABLE_OFFSET_COMMIT"
    assert producer.end() == "NONE"
    assert rig.committed_offset() == 5
