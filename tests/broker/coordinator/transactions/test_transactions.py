"""Transactions on three brokers: both protocols, failures of each part, timers."""

from __future__ import annotations

import pytest

from kcluster.events.transactions import AbortReason, TransactionCompleted, TransactionEnded
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.broker.coordinator.transactions.transaction_rig import RawProducer, TransactionRig
from tests.rig.cluster import TOPIC

BOTH = pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])


def started(rig: TransactionRig, v2: bool = False, *values: bytes) -> RawProducer:
    """A producer with an open transaction, in which it has written `values`."""
    producer = rig.producer(v2=v2)
    assert producer.init() == "NONE"
    if not v2:
        assert producer.add() == "NONE"
    for value in values:
        assert producer.write(value) == "NONE"
    return producer


@BOTH
def test_transactions__commit_shows_the_records_and_abort_hides_them(v2: bool) -> None:
    rig = TransactionRig()
    producer = started(rig, v2, b"one")
    assert (rig.state_of(), rig.read()) == ("Ongoing", [])
    assert producer.end(commit=True) == "NONE"
    rig.run_for(100)
    assert (rig.state_of(), rig.read()) == ("CompleteCommit", [b"one"])
    if not v2:
        assert producer.add() == "NONE"
    assert producer.write(b"two") == "NONE"
    assert producer.end(commit=False) == "NONE"
    rig.run_for(100)
    assert (rig.state_of(), rig.read()) == ("CompleteAbort", [b"one"])
    ended = rig.events_of(TransactionEnded)
    assert [one.abort_reason for one in ended] == [None, AbortReason.PRODUCER]
    assert len(rig.events_of(TransactionCompleted)) == 2


@BOTH
@pytest.mark.parametrize("ids", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_transactions__broker_0_is_a_broker_like_any_other(
    ids: tuple[int, int, int], v2: bool
) -> None:
    rig = TransactionRig(ids)
    producer = started(rig, v2, b"one")
    if not v2:
        assert producer.add_offsets() == "NONE"
    assert producer.commit_offset(1) == "NONE"
    rig.kill(0)
    rig.wait(lambda: 0 not in (rig.leader_id, rig.coordinator, rig.group_coordinator))
    assert producer.end() == "NONE"
    rig.run_for(1_000)
    assert (rig.read(), rig.committed_offset()) == ([b"one"], 1)
    rig.start(0)
    rig.wait(lambda: rig.isr == sorted(ids))


def test_transactions__only_v2_has_an_epoch_for_each() -> None:
    rig = TransactionRig()
    first = started(rig, False, b"one")
    first.end()
    assert first.epoch == 0
    second = rig.producer("u", v2=True)
    second.init()
    second.write(b"two")
    second.end()
    assert second.epoch == 1


def test_transactions__records_outside_of_a_transaction_wait_for_it() -> None:
    rig = TransactionRig()
    producer = started(rig, False, b"one")
    assert rig.produce(b"plain").error == "NONE"
    rig.run_for(100)
    data = rig.fetched()
    assert (data.high_watermark, data.last_stable_offset, rig.read()) == (2, 0, [])
    producer.end()
    rig.run_for(100)
    assert rig.fetched().last_stable_offset == 3
    assert rig.read() == [b"one", b"plain"]


def test_transactions__partition_that_was_not_added_is_refused() -> None:
    rig = TransactionRig()
    producer = rig.producer()
    producer.init()
    assert producer.write(b"one", version=10) == "INVALID_TXN_STATE"
    assert producer.write(b"one", version=11) == "TRANSACTION_ABORTABLE"
    assert producer.add() == "NONE"
    assert producer.write(b"one", version=11) == "NONE"


def test_transactions__without_verification_a_late_batch_is_appended() -> None:
    rig = TransactionRig(of_brokers={"transaction.partition.verification.enable": False})
    producer = rig.producer()
    producer.init()
    assert producer.write(b"one") == "NONE"
    assert rig.fetched().last_stable_offset == 0  # and nobody will end it (KAFKA-14402)


def test_transactions__whose_change_timed_out_wait_until_it_counts() -> None:
    """The change is in the log; one that was decided without it would take it back."""
    rig = TransactionRig(of_brokers={"request.timeout.ms": 1_000})
    producer = rig.producer()
    producer.init()
    rig.cut_off(3)
    assert producer.add() == "COORDINATOR_NOT_AVAILABLE"
    assert producer.add_offsets() == "CONCURRENT_TRANSACTIONS"
    rig.run_for(10_000)
    assert producer.add_offsets() == "NONE"
    assert {one.topic for one in rig.described().topics} == {TOPIC, GROUP_METADATA_TOPIC}


@BOTH
def test_transactions__new_producer_aborts_and_fences(v2: bool) -> None:
    rig = TransactionRig()
    old = started(rig, v2, b"of the old one")
    new = rig.producer(v2=v2)
    assert new.init() == "NONE"
    assert new.epoch == old.epoch + 2
    assert old.end(commit=True) == "PRODUCER_FENCED"
    assert old.write(b"late") == "INVALID_PRODUCER_EPOCH"
    if not v2:
        assert new.add() == "NONE"
    assert new.write(b"of the new one") == "NONE"
    assert new.end() == "NONE"
    rig.run_for(100)
    assert rig.read() == [b"of the new one"]
    assert rig.events_of(TransactionEnded)[0].abort_reason is AbortReason.NEW_PRODUCER


@BOTH
def test_transactions__open_for_too_long_is_aborted(v2: bool) -> None:
    rig = TransactionRig()
    producer = rig.producer(v2=v2)
    producer.timeout_ms = 5_000
    producer.init()
    if not v2:
        producer.add()
    producer.write(b"one")
    rig.run_for(16_000)
    assert (rig.state_of(), rig.read()) == ("CompleteAbort", [])
    assert rig.fetched().last_stable_offset == 2
    # A V2 producer takes the abort for that of an earlier request of its own (KAFKA-20785).
    assert producer.end(commit=True) == ("INVALID_TXN_STATE" if v2 else "PRODUCER_FENCED")


@BOTH
def test_transactions__retention_deletes_the_records_of_an_open_one(v2: bool) -> None:
    often = {"log.retention.check.interval.ms": 1_000}
    rig = TransactionRig(of_brokers=often, retention_ms=1_000)
    producer = rig.producer(v2=v2)
    producer.timeout_ms = 900_000
    assert producer.init() == "NONE"
    if not v2:
        assert producer.add() == "NONE"
    assert producer.write(b"one") == "NONE"
    assert rig.produce(b"plain").error == "NONE"
    rig.run_for(3_000)
    data = rig.fetched(offset=2)
    assert (data.log_start_offset, data.last_stable_offset, data.high_watermark) == (2, 2, 2)
    assert rig.produce(b"later").error == "NONE"
    rig.run_for(100)
    data = rig.fetched(offset=2)
    assert (data.last_stable_offset, data.high_watermark) == (2, 3)  # it is open all the same
    assert producer.end() == "NONE"
    assert rig.fetched(offset=2).last_stable_offset == 4


def test_transactions__id_without_a_transaction_expires() -> None:
    rig = TransactionRig(
        of_brokers={
            "transactional.id.expiration.ms": 60_000,
            "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
        }
    )
    producer = started(rig, False, b"one")
    producer.end()
    rig.run_for(50_000)
    assert rig.state_of() == "CompleteCommit"
    rig.run_for(30_000)
    assert rig.state_of() == "TRANSACTIONAL_ID_NOT_FOUND"
    assert producer.add() == "INVALID_PRODUCER_ID_MAPPING"


# ---------------------------------------------------------------------------------- offsets


@BOTH
def test_offsets__of_a_transaction_are_pending_until_its_marker(v2: bool) -> None:
    rig = TransactionRig()
    producer = rig.producer(v2=v2)
    producer.init()
    if not v2:
        assert producer.add_offsets() == "NONE"
    assert producer.commit_offset(5) == "NONE"
    assert rig.committed_offset() == "UNSTABLE_OFFSET_COMMIT"
    assert rig.committed_offset(require_stable=False) == -1
    producer.end()
    rig.run_for(100)
    assert rig.committed_offset() == 5


def test_offsets__of_two_requests_that_are_verified_together_are_both_taken() -> None:
    """The first one opens the transaction in the log, so the second needs no verification, as in
    Kafka's UnifiedLog; a client that repeats a late request sends two."""
    rig = TransactionRig(latency_ms=5)
    producer = rig.producer()
    producer.init()
    producer.add_offsets()
    broker = rig.group_coordinator
    answers = [
        rig.ask(broker, ApiKey.TXN_OFFSET_COMMIT, 3, producer.offset_request(offset))
        for offset in (5, 6)
    ]
    rig.wait(lambda: all(answer.body is not None for answer in answers))
    errors = [answer.body.topics[0].partitions[0].error_code for answer in answers]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE]
    assert producer.end() == "NONE"
    assert rig.committed_offset() == 6


@pytest.mark.parametrize("commit", [True, False])
def test_offsets__survive_the_coordinators_death_as_they_were(commit: bool) -> None:
    rig = TransactionRig()
    producer = rig.producer()
    producer.init()
    producer.add_offsets()
    producer.commit_offset(5)
    dead = rig.group_coordinator
    rig.kill(dead)
    rig.wait(lambda: rig.group_coordinator not in (dead, -1), "another coordinator")
    rig.wait(lambda: rig.coordinator not in (dead, -1), "another coordinator")
    rig.run_for(1_000)
    assert rig.committed_offset() == "UNSTABLE_OFFSET_COMMIT"
    producer.end(commit)
    rig.run_for(1_000)
    assert rig.committed_offset() == (5 if commit else -1)


# --------------------------------------------------------------------------------- failures


@BOTH
def test_markers__are_sent_until_the_leader_can_be_reached(v2: bool) -> None:
    rig = TransactionRig(brokers=4, replicas=(4,))
    producer = started(rig, v2, b"one")
    rig.cut(2, 4, one_way=True)
    assert producer.end() == "NONE"
    rig.run_for(5_000)
    assert (rig.state_of(), rig.read()) == ("PrepareCommit", [])
    rig.heal(2, 4)
    rig.run_for(40_000)
    assert (rig.state_of(), rig.read()) == ("CompleteCommit", [b"one"])


@BOTH
def test_markers__are_sent_by_the_next_coordinator(v2: bool) -> None:
    rig = TransactionRig(brokers=4, replicas=(4,))
    producer = started(rig, v2, b"one")
    rig.cut(2, 4, one_way=True)
    assert producer.end() == "NONE"
    rig.kill(2)
    rig.wait(lambda: rig.coordinator not in (2, -1), "another coordinator")
    rig.run_for(1_000)
    assert (rig.state_of(), rig.read()) == ("CompleteCommit", [b"one"])


def test_markers__of_a_deleted_topic_are_not_needed() -> None:
    rig = TransactionRig()
    producer = started(rig, False, b"one")
    rig.delete_orders(via=1)
    rig.run_for(1_000)
    assert producer.end() == "NONE"
    rig.run_for(1_000)
    assert rig.state_of() == "CompleteCommit"


@BOTH
def test_offsets__in_a_transaction_end_with_their_topic(v2: bool) -> None:
    """The transaction commits later; the offset is not valid for a new topic of that name."""
    rig = TransactionRig()
    producer = started(rig, v2, b"one")
    assert v2 or producer.add_offsets() == "NONE"
    assert producer.commit_offset(5) == "NONE"
    rig.delete_orders(via=1)
    rig.run_for(1_000)
    assert producer.end() == "NONE"
    rig.run_for(1_000)
    assert (rig.state_of(), rig.committed_offset()) == ("CompleteCommit", -1)


def test_transactions__open_one_outlives_the_coordinator() -> None:
    rig = TransactionRig()
    producer = started(rig, False, b"one")
    rig.kill(2)
    rig.wait(lambda: rig.coordinator not in (2, -1), "another coordinator")
    rig.run_for(1_000)
    assert producer.end() == "NONE"
    rig.run_for(1_000)
    assert rig.read() == [b"one"]


def test_transactions__open_one_outlives_the_leader() -> None:
    rig = TransactionRig()
    producer = started(rig, False, b"one")
    rig.kill(1)
    rig.wait(lambda: rig.leader_id != 1, "another leader")
    rig.run_for(1_000)
    assert producer.write(b"two") == "NONE"
    assert producer.end(commit=False) == "NONE"
    rig.run_for(1_000)
    assert (rig.read(), rig.fetched().last_stable_offset) == ([], 3)


# -------------------------------------------------------------------------- configs of the logs


@pytest.mark.parametrize("codec", range(5))
def test_offsets__are_compressed_as_configured_and_loaded_again(codec: int) -> None:
    rig = TransactionRig(of_brokers={"offsets.topic.compression.codec": codec})
    producer = rig.producer()
    assert [producer.init(), producer.add_offsets(), producer.commit_offset(5)] == ["NONE"] * 3
    assert producer.end() == "NONE"
    topic_id = rig.verbs.partition(GROUP_METADATA_TOPIC, 0).topic_id
    log = rig.plan.disks[rig.group_coordinator].logs[topic_id, 0]
    batches = log.read(0, 1 << 20, log.log_end_offset, True)
    assert {one.attributes & 7 for one in batches if not one.is_control} == {codec}
    rig.kill(rig.group_coordinator)
    rig.wait(lambda: rig.group_coordinator not in (3, -1))
    rig.wait(lambda: rig.committed_offset() == 5)


def test_logs__are_loaded_whole_whatever_is_read_at_a_time() -> None:
    small = {"transaction.state.log.load.buffer.size": 1, "offsets.load.buffer.size": 1}
    rig = TransactionRig(of_brokers=small)
    producer = rig.producer()
    assert [producer.init(), producer.add_offsets(), producer.commit_offset(5)] == ["NONE"] * 3
    for broker in (2, 3):
        rig.kill(broker)
        rig.wait(lambda: rig.coordinator not in (2, -1))
        rig.start(broker)
        rig.wait(lambda: rig.isr == [1, 2, 3])
    rig.wait(lambda: rig.group_coordinator not in (3, -1))
    assert (rig.state_of(), rig.committed_offset()) == ("Ongoing", "UNSTABLE_OFFSET_COMMIT")
    assert producer.end() == "NONE"
    rig.wait(lambda: rig.committed_offset() == 5)
