"""The epochs of a producer id run out: the transactional id gets another producer id.

Clients use epochs up to 32766.  The one above is the coordinator's own: with V1 it fences the last
client, with V2 it is the epoch of the last transaction's markers.
"""

from __future__ import annotations

import pytest

from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import parse_batches
from tests.broker.coordinator.transactions.transaction_rig import RawProducer, TransactionRig

LAST = 32766
V1_ONLY = {"transaction.version": 1}


def aged(rig: TransactionRig, epoch: int, v2: bool = True) -> RawProducer:
    """A producer whose last epochs are near, with no open transaction."""
    producer = rig.producer(v2=v2)
    assert producer.init() == "NONE"
    rig.age(producer, epoch)
    return producer


def marker_epochs(rig: TransactionRig) -> list[int]:
    records = rig.fetched().records
    batches = records if isinstance(records, list) else parse_batches(records)
    return [one.producer_epoch for one in batches if one.is_control]


def test_v2__after_the_last_epoch_comes_another_id() -> None:
    rig = TransactionRig()
    producer = aged(rig, LAST - 1)
    first_id = producer.producer_id
    assert [producer.write(b"one"), producer.end(), producer.epoch] == ["NONE", "NONE", LAST]
    last = producer.as_of()
    assert [producer.write(b"two"), producer.end(), producer.epoch] == ["NONE", "NONE", 0]
    assert producer.producer_id != first_id
    # The answer was lost: the client asks again, as the producer that it still is.
    again = last.as_of()
    assert [again.end(), again.producer_id, again.epoch] == ["NONE", producer.producer_id, 0]
    assert last.as_of().end(commit=False) == "INVALID_TXN_STATE"
    assert last.write(b"late") == "INVALID_PRODUCER_ID_MAPPING"
    assert [producer.write(b"three"), producer.end(), producer.epoch] == ["NONE", "NONE", 1]
    assert rig.read() == [b"one", b"two", b"three"]
    assert marker_epochs(rig) == [LAST, LAST + 1, 1]


def test_v2__the_next_coordinator_knows_the_next_id() -> None:
    rig = TransactionRig(brokers=4, replicas=(4,))
    producer = aged(rig, LAST)
    assert producer.write(b"one") == "NONE"
    # The decision is committed, and no marker is written: the coordinator cannot reach the leader.
    rig.cut(4, rig.coordinator)
    assert producer.end() == "NONE"
    assert (rig.state_of(), producer.epoch) == ("PrepareCommit", 0)
    rig.kill(rig.coordinator)
    rig.wait(lambda: rig.coordinator not in (2, -1))
    rig.wait(lambda: rig.state_of() == "CompleteCommit")
    assert rig.described().producer_id == producer.producer_id
    assert [producer.write(b"two"), producer.end()] == ["NONE", "NONE"]
    assert rig.read() == [b"one", b"two"]


def test_v2__an_open_transaction_of_the_last_epoch_is_aborted_by_a_new_producer() -> None:
    rig = TransactionRig()
    old = aged(rig, LAST)
    assert old.write(b"one") == "NONE"
    new = rig.producer(v2=True)
    assert [new.init(), new.epoch] == ["NONE", 1]
    assert new.producer_id != old.producer_id
    assert old.end() == "INVALID_PRODUCER_ID_MAPPING"
    assert [new.write(b"two"), new.end(), rig.read()] == ["NONE", "NONE", [b"two"]]


def test_v2__a_timeout_in_the_last_epoch_leaves_a_usable_id() -> None:
    rig = TransactionRig()
    producer = rig.producer(v2=True)
    producer.timeout_ms = 5_000
    producer.init()
    rig.age(producer, LAST)
    assert producer.write(b"one") == "NONE"
    rig.run_for(16_000)
    assert rig.state_of() == "CompleteAbort"
    # The producer goes on after the error (KIP-360); it learns the new id.
    first_id = producer.producer_id
    assert [producer.init(keep=True), producer.epoch] == ["NONE", 0]
    assert producer.producer_id != first_id
    assert [producer.write(b"two"), producer.end(), rig.read()] == ["NONE", "NONE", [b"two"]]


def test_v2__a_producer_that_timed_out_goes_on_with_the_epoch_of_the_abort() -> None:
    rig = TransactionRig()
    producer = rig.producer(v2=True)
    producer.timeout_ms = 5_000
    assert [producer.init(), producer.write(b"one")] == ["NONE", "NONE"]
    rig.run_for(16_000)
    assert [producer.init(keep=True), producer.epoch] == ["NONE", 1]


def test_v1__an_exhausted_epoch_gives_another_id_at_init() -> None:
    rig = TransactionRig()
    producer = aged(rig, LAST, v2=False)
    again = producer.as_of()
    assert [producer.add(), producer.write(b"one"), producer.end()] == ["NONE"] * 3
    assert [producer.init(keep=True), producer.epoch] == ["NONE", 0]
    assert producer.producer_id != again.producer_id
    # The same request again gets the same answer.
    assert [again.init(keep=True), again.epoch] == ["NONE", 0]
    assert again.producer_id == producer.producer_id
    rig.age(producer, LAST)
    new = rig.producer()
    assert [new.init(), new.epoch] == ["NONE", 0]
    assert producer.init(keep=True) == "PRODUCER_FENCED"


@pytest.mark.parametrize("by_timeout", [False, True])
def test_v1__the_coordinator_s_own_epoch_fences_the_last_producer(by_timeout: bool) -> None:
    rig = TransactionRig(features=V1_ONLY)
    old = rig.producer()
    old.timeout_ms = 5_000
    old.init()
    rig.age(old, LAST)
    assert [old.add(), old.write(b"one")] == ["NONE", "NONE"]
    if by_timeout:
        rig.run_for(16_000)
        assert (rig.state_of(), rig.described().producer_epoch) == ("CompleteAbort", LAST + 1)
    new = rig.producer()
    assert [new.init(), new.epoch] == ["NONE", 0]
    assert new.producer_id != old.producer_id
    assert marker_epochs(rig) == [LAST + 1]
    assert old.end() == "INVALID_PRODUCER_ID_MAPPING"
    assert old.write(b"late") == "INVALID_PRODUCER_ID_MAPPING"
    assert [new.add(), new.write(b"two"), new.end(), rig.read()] == ["NONE"] * 3 + [[b"two"]]


def test_v1__repetition_of_the_init_that_took_the_last_epoch_fails_as_in_kafka() -> None:
    rig = TransactionRig()
    producer = aged(rig, LAST - 1, v2=False)
    again = producer.as_of()
    assert [producer.init(keep=True), producer.epoch] == ["NONE", LAST]
    assert again.init(keep=True) == "UNKNOWN_SERVER_ERROR"


def test_v1__a_fenced_producer_hears_of_it_while_a_change_is_pending() -> None:
    rig = TransactionRig(latency_ms=5)
    producer = rig.producer()
    assert [producer.init(), producer.add()] == ["NONE", "NONE"]
    waiting = rig.ask(rig.coordinator, ApiKey.END_TXN, 3, producer.end_request(commit=True))
    fenced = rig.ask(
        rig.coordinator, ApiKey.END_TXN, 3, producer.as_of(epoch=7).end_request(commit=True)
    )
    same = rig.ask(rig.coordinator, ApiKey.END_TXN, 3, producer.end_request(commit=True))
    rig.wait(lambda: waiting.body is not None)
    answers = [each.body.error_code for each in (waiting, fenced, same)]
    assert [ErrorCode(error).name for error in answers] == [
        "NONE",
        "PRODUCER_FENCED",
        "CONCURRENT_TRANSACTIONS",
    ]
