"""Requests of transactions in orders that no client sends: nobody dies, and nobody else is harmed.

Made-up producers share a partition, a group and the coordinators with an honest one.  Whatever they
send, in the name of anybody but it, its transactions stay whole.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.broker.coordinator.transactions.transaction_rig import GROUP, RawProducer, TransactionRig
from tests.fuzz.values import MadeUp
from tests.rig.cluster import TOPIC
from tests.rig.requests import batch, produce_request

SEEDS = range(int(os.environ.get("KCLUSTER_ANY_TRANSACTIONS", "4")))
REQUESTS = 120
IDS = ("t1", "t2", "nobody", "")
TOPICS = (TOPIC, TOPIC, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, "nope", "")


class Mischief:
    """Sends requests in the name of two producers, of none, and of brokers."""

    def __init__(self, rig: TransactionRig, seed: int) -> None:
        (topic_id, _), *_ = rig.plan.disks[1].logs
        self.rig = rig
        self.made_up = MadeUp(Random(f"any transaction/{seed}"), (topic_id,), old_formats=False)
        self.rng = self.made_up.rng
        self.known = [(4711, 0)]
        """Producer ids and epochs that were given out to it."""
        self.sequences = 0

    def act(self) -> None:
        """One request to a broker that may be the right one; its answer may never come."""
        rng = self.rng
        api_key, version, body = rng.choice(self.requests)()
        waiting = self.rig.ask(rng.randint(1, 3), api_key, version, body)
        self.rig.run_for(rng.choice((0, 0, 0, 1, 20, 150)))
        answer = waiting.body
        if api_key is ApiKey.INIT_PRODUCER_ID and answer is not None and not answer.error_code:
            self.known.append((answer.producer_id, answer.producer_epoch))

    @property
    def requests(self) -> tuple[Any, ...]:
        return (self.init, self.add, self.verify, self.add_group, self.commit_offset, self.end,
                self.end, self.mark, self.write, self.write, self.anything)  # fmt: skip

    def who(self) -> tuple[str, int, int]:
        """A transactional id, a producer id and an epoch, which may belong together."""
        rng = self.rng
        producer_id, epoch = rng.choice(self.known)
        epoch += rng.choice((0, 0, 0, 0, 1, -1, 2, 32766))
        return rng.choice(IDS), producer_id, max(-1, min(epoch, 32767))

    def init(self) -> tuple[ApiKey, int, Any]:
        transactional_id, producer_id, epoch = self.who()
        keep = self.rng.random() < 0.3
        body = m.InitProducerIdRequest(
            transactional_id=transactional_id or None,
            transaction_timeout_ms=self.rng.choice((1_000, 60_000, 0, 10**9)),
            producer_id=producer_id if keep else -1,
            producer_epoch=epoch if keep else -1,
        )
        return ApiKey.INIT_PRODUCER_ID, self.rng.randint(3, 5), body

    def add(self) -> tuple[ApiKey, int, Any]:
        transactional_id, producer_id, epoch = self.who()
        topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            self.rng.choice(TOPICS), self.rng.choice(([0], [0, 0], [1], [], [-1, 0]))
        )
        body = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[topic],
        )
        return ApiKey.ADD_PARTITIONS_TO_TXN, self.rng.randint(0, 3), body

    def verify(self) -> tuple[ApiKey, int, Any]:
        transactional_id, producer_id, epoch = self.who()
        topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(self.rng.choice(TOPICS), [0])
        transaction = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=self.rng.random() < 0.5,
            topics=[topic],
        )
        body = m.AddPartitionsToTxnRequest(transactions=[transaction])
        return ApiKey.ADD_PARTITIONS_TO_TXN, self.rng.randint(4, 5), body

    def add_group(self) -> tuple[ApiKey, int, Any]:
        body = m.AddOffsetsToTxnRequest(*self.who(), self.rng.choice((GROUP, "other", "")))
        return ApiKey.ADD_OFFSETS_TO_TXN, self.rng.randint(0, 4), body

    def commit_offset(self) -> tuple[ApiKey, int, Any]:
        transactional_id, producer_id, epoch = self.who()
        partition = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(0, 99, -1, None)
        Topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        body = m.TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id="other",
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=self.rng.choice((-1, -1, 3)),
            member_id=self.rng.choice(("", "", "me")),
            group_instance_id=self.rng.choice((None, None, "i")),
            topics=[Topic(TOPIC, self.rig.topic_id, [partition])],
        )
        return ApiKey.TXN_OFFSET_COMMIT, self.rng.randint(0, 6), body

    def end(self) -> tuple[ApiKey, int, Any]:
        body = m.EndTxnRequest(*self.who(), self.rng.random() < 0.5)
        return ApiKey.END_TXN, self.rng.randint(0, 5), body

    def mark(self) -> tuple[ApiKey, int, Any]:
        """A marker of a coordinator that is none, or not any more."""
        _, producer_id, epoch = self.who()
        topic = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(
            self.rng.choice(TOPICS), self.rng.choice(([0], [0, 0], [], [7]))
        )
        marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=self.rng.choice((producer_id, -1)),
            producer_epoch=epoch,
            transaction_result=self.rng.random() < 0.5,
            topics=[topic],
            coordinator_epoch=self.rng.choice((-1, 0, 1, 5)),
            transaction_version=self.rng.choice((0, 1, 2, 9)),
        )
        body = m.WriteTxnMarkersRequest(markers=[marker] * self.rng.choice((1, 1, 2)))
        return ApiKey.WRITE_TXN_MARKERS, self.rng.randint(1, 2), body

    def write(self) -> tuple[ApiKey, int, Any]:
        transactional_id, producer_id, epoch = self.who()
        records = batch(
            b"mischief",
            timestamp_ms=self.rig.now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.rng.choice((0, 0, 1, self.sequences)),
            transactional=self.rng.random() < 0.8,
        )
        self.sequences += 1
        body = produce_request(TOPIC, 0, records)
        body.transactional_id = self.rng.choice((transactional_id, None))
        return ApiKey.PRODUCE, self.rng.randint(3, 12), body

    def anything(self) -> tuple[ApiKey, int, Any]:
        """Fields that do not even belong together."""
        api_key = self.rng.choice(
            (ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_PRODUCERS)
        )
        body = self.made_up.message(f"{api_key.name.title().replace('_', '')}Request", 0)
        return api_key, 0, body


def honest_transaction(producer: RawProducer, number: int, commit: bool) -> None:
    """One transaction as a client of its protocol has it: a record, and an offset."""
    if not producer.v2:
        assert retried(producer.add) == "NONE"
        assert retried(producer.add_offsets) == "NONE"
    assert retried(lambda: producer.write(b"%d" % number)) == "NONE"
    assert retried(lambda: producer.commit_offset(number)) == "NONE"
    assert retried(lambda: producer.end(commit)) == "NONE"


def retried(ask: Any) -> str:
    for _ in range(50):
        error: str = ask()
        if error != "CONCURRENT_TRANSACTIONS":
            break
    return error


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_transaction__harms_nobody_else(seed: int, v2: bool) -> None:
    rig = TransactionRig(seed=seed)
    honest = rig.producer("honest", v2=v2)
    honest.init()
    mischief = Mischief(rig, seed)
    committed = []
    for number in range(12):
        for _ in range(REQUESTS // 12):
            mischief.act()
        commit = mischief.rng.random() < 0.7
        honest_transaction(honest, number, commit)
        committed += [number] if commit else []
    assert [broker.state for broker in rig.status().brokers] == ["up", "up", "up"]
    rig.wait(lambda: rig.committed_offset() == (committed[-1] if committed else -1))
    # All that the others left open is aborted by hand, as kafka-transactions would do it.
    rig.end_all_transactions()
    values = [value for value in rig.read() if value != b"mischief"]
    assert values == [b"%d" % number for number in committed]
