"""Reading from the follower in the consumer's rack (KIP-392): the leader's choice and its answer.

Broker n is in rack r<n>; broker 1 leads, and the test fetches as its followers.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.serving.nearest_replica import LEADER, ReadableReplica, most_caught_up
from kcluster.config.kafka.broker import RACK_AWARE_SELECTOR
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import (
    TOPIC,
    OneBroker,
    broker_records,
    fetch_body,
    produce_body,
    topic_records,
)
from tests.rig.requests import batch, fetch_partition

READ_COMMITTED = 1
IN_R2: dict[str, Any] = {"rack_id": "r2", "max_wait_ms": 500}
"""A waiting consumer in the rack of broker 2."""


def led(isr: tuple[int, ...] = (1, 2, 3), fenced: tuple[int, ...] = (), **more: Any) -> OneBroker:
    """Broker 1 leads a partition of four replicas, with one record that no follower has fetched."""
    configs = {"replica_selector_class": RACK_AWARE_SELECTOR} | more
    broker = OneBroker(
        broker_records(1, 2, 3, 4, fenced=fenced),
        topic_records(TOPIC, (1, 2, 3, 4), isr=isr),
        **configs,
    )
    broker.produce(batch(b"v"), acks=1)
    return broker


def follow(broker: OneBroker, follower: int, offset: int, log_start_offset: int = 0) -> None:
    """Fetch as `follower`, which has the records before `offset`."""
    state = m.FetchRequest.ReplicaState(replica_id=follower, replica_epoch=follower)
    wanted = fetch_partition(
        offset=offset, current_leader_epoch=5, log_start_offset=log_start_offset
    )
    broker.ask(ApiKey.FETCH, 17, fetch_body(wanted, replica_state=state))


def consume(broker: OneBroker, rack: str, version: int = 17, **more: Any) -> Any:
    """A consumer's answer, for its one partition; None while it waits."""
    offset, isolation_level = more.pop("offset", 0), more.pop("isolation_level", 0)
    wanted = fetch_partition(offset=offset, **more)
    fields = {"isolation_level": isolation_level, "max_wait_ms": 500}
    response = broker.fetch(wanted, version=version, **fields | ({"rack_id": rack} if rack else {}))
    return None if response is None else response.responses[0].partitions[0]


def chosen(broker: OneBroker, rack: str, **more: Any) -> int:
    """The replica that a consumer's answer prefers."""
    replica: int = consume(broker, rack, **more).preferred_read_replica
    return replica


# -------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize(
    ("followers", "best"),
    [
        ([], LEADER),
        ([(5, 100, 2), (6, 90, 3)], 3),
        ([(5, 100, 2), (5, 90, 3)], 2),
        ([(5, 100, 2), (5, 100, 3)], 3),
    ],
)
def test_most_caught_up__has_the_most_records_or_was_caught_up_last(
    followers: list[tuple[int, int, int]], best: int
) -> None:
    assert most_caught_up(ReadableReplica(*follower) for follower in followers) == best


def test_preferred__a_consumer_is_sent_to_the_follower_in_its_rack_at_once() -> None:
    broker = led()
    follow(broker, 2, 1)
    follow(broker, 3, 1)
    answer = consume(broker, "r2")
    assert (answer.error_code, answer.preferred_read_replica) == (0, 2)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (1, 1, 0)
    assert not answer.records
    assert answer.aborted_transactions is None


@pytest.mark.parametrize("rack", ["", "r1", "r9"])
def test_preferred__the_leader_serves_every_other_rack(rack: str) -> None:
    broker = led()
    follow(broker, 2, 1)
    follow(broker, 3, 1)
    answer = consume(broker, rack)
    assert answer.preferred_read_replica == LEADER
    assert answer.records


def test_preferred__without_a_selector_or_before_version_11_the_leader_serves() -> None:
    plain = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    plain.produce(batch(b"v"), acks=1)
    follow(plain, 2, 1)
    assert chosen(plain, "r2") == LEADER
    broker = led(isr=(1, 2))
    follow(broker, 2, 1)
    assert (chosen(broker, "r2", version=11), chosen(broker, "", version=10)) == (2, LEADER)


def test_preferred__a_follower_needs_the_requested_offset() -> None:
    broker = led(isr=(1, 2))
    assert consume(broker, "r2") is None, "its offset is unknown in a new epoch"
    follow(broker, 2, 0)
    assert chosen(broker, "r2") == 2, "no records yet, but it has all before offset 0"
    follow(broker, 2, 1)
    broker.produce(batch(b"w"), acks=1)
    assert chosen(broker, "r2", offset=1) == 2
    assert consume(broker, "r2", offset=2) is None, "the leader's own to wait for"
    follow(broker, 2, 2, log_start_offset=1)
    assert chosen(broker, "r2", offset=0) == LEADER, "the follower has deleted it"
    assert chosen(broker, "r2", offset=1) == 2


def test_preferred__a_follower_outside_the_isr_or_fenced_serves_nobody() -> None:
    broker = led(isr=(1, 2))
    for follower in (2, 4):
        follow(broker, follower, 1)
    assert chosen(broker, "r4") == LEADER
    fenced = led(isr=(1, 2), fenced=(2,))
    follow(fenced, 2, 1)
    assert chosen(fenced, "r2") == LEADER


def test_preferred__an_epoch_is_checked_as_in_every_fetch() -> None:
    broker = led(isr=(1, 2))
    follow(broker, 2, 1)
    old, new = (consume(broker, "r2", current_leader_epoch=epoch) for epoch in (4, 6))
    assert old.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert new.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert old.preferred_read_replica == new.preferred_read_replica == LEADER


# ------------------------------------------------------------------------------- the answer


def test_preferred__has_the_last_stable_offset_and_no_list_of_aborted_transactions() -> None:
    broker = led(isr=(1, 2), transaction_partition_verification_enable=False)
    open_transaction = batch(
        b"t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    body = produce_body(open_transaction, acks=1)
    body.transactional_id = "shop"
    broker.ask(ApiKey.PRODUCE, 9, body)
    follow(broker, 2, 2)
    for isolation_level in (0, READ_COMMITTED):
        answer = consume(broker, "r2", isolation_level=isolation_level)
        assert answer.preferred_read_replica == 2
        assert (answer.high_watermark, answer.last_stable_offset) == (2, 1)
        assert answer.aborted_transactions is None


def test_preferred__a_session_repeats_it_until_the_partition_is_forgotten() -> None:
    broker = led(isr=(1, 2))
    follow(broker, 2, 1)
    first = broker.fetch(fetch_partition(offset=1), session_epoch=0, **IN_R2)
    for epoch in (1, 2):
        again = broker.fetch(session_id=first.session_id, session_epoch=epoch, **IN_R2)
        assert again.responses[0].partitions[0].preferred_read_replica == 2


def test_preferred__a_session_learns_of_it_after_a_fetch_without_news() -> None:
    broker = led(isr=(1, 2), replica_lag_time_max_ms=60_000)
    first = broker.fetch(fetch_partition(offset=1), session_epoch=0, **IN_R2 | {"max_wait_ms": 0})
    assert first.responses[0].partitions[0].preferred_read_replica == LEADER
    follow(broker, 2, 1)
    again = broker.fetch(session_id=first.session_id, session_epoch=1, **IN_R2)
    assert again.responses[0].partitions[0].preferred_read_replica == 2


def test_preferred__a_waiting_fetch_goes_on_until_there_are_records() -> None:
    broker = led(isr=(1, 2))
    fields = IN_R2 | {"min_bytes": 2 * len(batch(b"v"))}
    waiting = broker.send(ApiKey.FETCH, 17, fetch_body(fetch_partition(), **fields), connection=2)
    follow(broker, 2, 1)
    assert broker.answer(waiting) is None, "one record is not enough"
    broker.produce(batch(b"w"), acks=1)
    follow(broker, 2, 2)
    answer = broker.answer(waiting).responses[0].partitions[0]
    assert (answer.preferred_read_replica, answer.records or None) == (2, None)
