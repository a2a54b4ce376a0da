"""Transactional producers: both protocols, what the application aborts, errors and their ends."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster import rule
from kcluster.clients.ledger import Outcome, TransactionOffsets
from kcluster.clients.producer.producer import TransactionalProducer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings, TransactionPlan
from kcluster.clients.producer.transactions import NO_NEW_EPOCH
from kcluster.deaths import DeathKind
from kcluster.events.transactions import AbortReason, TransactionEnded
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from tests.clients.story import Story
from tests.rig.cluster import TOPIC

BOTH = pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])


def transactional(story: Story, name: str = "p", version: int = 2, **more: Any) -> Any:
    settings: dict[str, Any] = {"transactional_id": more.pop("id", name)} | more.pop("settings", {})
    transactions = TransactionPlan(
        every=more.pop("every", 5), abort_share=more.pop("abort", 0.0), max_version=version
    )
    values: dict[str, Any] = {
        "topics": (TOPIC,),
        "rate_per_s": 100.0,
        "transactions": transactions,
    } | more
    producer = TransactionalProducer(
        name, story.ledger, ProducerPlan(**values), ProducerSettings(**settings)
    )
    story._add(name, producer)
    return producer


def seen(story: Story) -> list[str]:
    return [(read.value or b"").decode() for read in story.reads("c")]


def outcomes(story: Story, name: str = "p") -> list[str]:
    return [str(one.outcome) for one in story.ledger.transactions if one.producer == name]


@BOTH
def test_transactions__readers_see_what_was_committed_and_nothing_else(version: int) -> None:
    story = Story()
    story.consumer(isolation_level="read_committed")
    producer = transactional(story, version=version, abort=0.5, count=20)
    assert story.until(lambda: producer.is_done)
    story.run(1_000)
    assert outcomes(story) == ["committed", "aborted"] * 2
    assert {one.version for one in story.ledger.transactions} == {version}
    assert seen(story) == [f"p:{n}" for n in (0, 1, 2, 3, 4, 10, 11, 12, 13, 14)]
    assert {send.outcome for send in story.ledger.sends} == {Outcome.ACKED}
    epochs = [one.producer_epoch for one in story.ledger.transactions]
    assert epochs == ([0, 1, 2, 3] if version == 2 else [0] * 4)


@BOTH
def test_transactions__the_coordinator_dies_and_all_goes_on(version: int) -> None:
    story = Story(config={"transaction.state.log.num.partitions": 1})
    story.consumer(isolation_level="read_committed")
    producer = transactional(story, version=version)
    assert story.until(lambda: outcomes(story).count("committed") > 3)
    story.driver.verbs.kill(story.driver.verbs.leader(TRANSACTION_STATE_TOPIC, 0), DeathKind.KILL)
    before = len(outcomes(story))
    assert story.until(lambda: outcomes(story)[before + 3 :].count("committed") > 3)
    producer.stop(story.driver.now_ms)
    assert story.until(lambda: producer.is_done)
    story.run(2_000)
    assert set(outcomes(story)) == {"committed"}
    assert len(seen(story)) == producer.acked


def test_transactions__a_new_producer_of_the_same_id_fences_the_old_one() -> None:
    story = Story()
    old = transactional(story, "old", version=1, id="t", every=1_000)
    assert story.until(lambda: old.acked > 10)
    new = transactional(story, "new", version=1, id="t")
    assert story.until(lambda: old.is_done)
    assert story.until(lambda: outcomes(story, "new").count("committed") > 2)
    assert outcomes(story, "old") == ["aborted"]
    (zombie, *_) = story.ledger.transactions
    assert zombie.error == "PRODUCER_FENCED"
    assert not new.is_done


def test_transactions__of_version_2_an_abort_gives_a_fenced_producer_the_next_epoch() -> None:
    """As seen on Apache Kafka 4.3.1: the abort counts as a repeated one of the transaction that the
    coordinator aborted for the new producer."""
    story = Story()
    old = transactional(story, "old", id="t", every=1_000)
    assert story.until(lambda: old.acked > 10)
    transactional(story, "new", id="t")
    assert story.until(lambda: len(outcomes(story, "old")) > 2)
    first, second, *_ = story.ledger.transactions
    assert (first.error, first.producer_epoch) == ("INVALID_PRODUCER_EPOCH", 0)
    assert (second.producer, second.producer_epoch) == ("old", 1)


@BOTH
def test_transactions__that_take_too_long_are_aborted_by_the_coordinator(version: int) -> None:
    story = Story(config={"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000})
    settings = {"transaction_timeout_ms": 2_000}
    transactional(story, version=version, every=1_000, rate_per_s=10.0, settings=settings)
    assert story.until(lambda: "aborted" in outcomes(story))
    (first, *_) = story.ledger.transactions
    assert first.error == ("PRODUCER_FENCED" if version == 1 else "INVALID_PRODUCER_EPOCH")
    ended = [x.event for x in story.driver.notes if isinstance(x.event, TransactionEnded)]
    assert ended[0].abort_reason is AbortReason.TIMEOUT


def test_transactions__of_an_application_that_stops_are_committed() -> None:
    story = Story()
    producer = transactional(story, every=1_000)
    assert story.until(lambda: producer.acked > 10)
    producer.stop(story.driver.now_ms)
    assert story.until(lambda: producer.is_done)
    assert outcomes(story) == ["committed"]


def test_transactions__need_a_cluster_that_has_version_2() -> None:
    story = Story()
    producer = transactional(story)
    producer.network.transaction_version = 1
    producer.network._features_epoch = 1 << 40
    assert story.until(lambda: len(story.ledger.transactions) > 2)
    assert {one.version for one in story.ledger.transactions} == {1}


@pytest.mark.parametrize(
    ("topic", "error"),
    [(TOPIC, "GROUP_ID_NOT_FOUND"), (TRANSACTION_STATE_TOPIC, "ILLEGAL_GENERATION")],
    ids=["known", "unknown"],
)
def test_offsets__are_sent_by_topic_ids_if_all_of_them_are_known(topic: str, error: str) -> None:
    """Only from version 6 on, with topic ids, a coordinator returns GROUP_ID_NOT_FOUND."""
    story = Story()
    producer = transactional(story, every=1_000)
    assert story.until(lambda: producer.acked > 10)
    offsets = TransactionOffsets("nobody", {(topic, 0): (5, 0)}, generation=3, member="m")
    producer.transactions.send_offsets(offsets)
    assert story.until(lambda: ("TxnOffsetCommit", error) in story.errors("p"))
    assert story.until(lambda: outcomes(story)[:1] == ["aborted"])


def test_transactions__of_version_1_an_abort_may_leave_the_producer_without_an_epoch() -> None:
    """Seen with Kafka's Java client 4.4.0 on `features: {transaction.version: 1}`: batches time out
    during abortTransaction(), which returns; then beginTransaction() throws "Invalid transition
    attempted from state INITIALIZING to state IN_TRANSACTION"."""
    story = Story()
    settings = {"request_timeout_ms": 1_000, "delivery_timeout_ms": 1_500}
    producer = transactional(story, version=1, every=1_000, settings=settings)
    assert story.until(lambda: producer.acked > 10)
    story.driver.verbs.add_rule(rule(api="Produce", answer="NOT_ENOUGH_REPLICAS"))
    story.run(200)
    producer.transactions.end(commit=False)
    assert story.until(lambda: producer.is_done)
    assert producer.transactions.error == NO_NEW_EPOCH
    assert Outcome.ACKED not in {send.outcome for send in story.ledger.sends[-10:]}
