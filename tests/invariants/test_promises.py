"""Answers of coordinators that break what earlier answers promised."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import Reply, Request
from kcluster.events.transactions import TransactionCompleted, TransactionEnded
from kcluster.invariants.promises import Promises
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode


class Coordinators:
    """The answers of brokers; `epochs`: the leader epoch in which each broker coordinates."""

    def __init__(self) -> None:
        self.owner: str | None = None
        """The member that has the partition, if the group is one with epochs."""
        self.member_epochs: dict[str, int] = {}
        """The epochs of its members."""
        self.promises = Promises(lambda *_: self.owner, self.epoch_of)
        self.epochs = {1: 5, 2: 6}
        self.broken: list[str] = []
        self.now_ms = 0

    def say(self, api: ApiKey, body: Any, answer: Any, broker: int = 1, client: str = "c") -> None:
        request = Request(7, int(api), 0, 0, client, body)
        self.promises.on_request(request, self.now_ms)
        self.answer(request, answer, broker)

    def answer(self, request: Request, answer: Any, broker: int = 1) -> None:
        found = self.promises.on_reply(
            broker, Reply(request, answer), self.leader_epoch, self.now_ms
        )
        self.broken += [name for name, _, _ in found]

    def epoch_of(self, _group: str, member: str) -> int | None:
        return self.member_epochs.get(member)

    def leader_epoch(self, broker: int, _group: str) -> int:
        return self.epochs[broker]

    def sync(self, generation: int, assignment: bytes = b"a", broker: int = 1) -> None:
        body = m.SyncGroupRequest(group_id="g", generation_id=generation, member_id="m")
        answer = m.SyncGroupResponse(assignment=assignment)
        self.say(ApiKey.SYNC_GROUP, body, answer, broker)

    def join(self, generation: int, broker: int = 1, error: int = 0) -> None:
        answer = m.JoinGroupResponse(generation_id=generation, error_code=error)
        self.say(ApiKey.JOIN_GROUP, m.JoinGroupRequest(group_id="g"), answer, broker)

    def commit(self, member: str, generation: int, error: int = 0) -> None:
        self.answer(self.ask_to_commit(member, generation), self.committed(error))

    def ask_to_commit(self, member: str, generation: int) -> Request:
        body = m.OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=generation, member_id=member
        )
        request = Request(7, int(ApiKey.OFFSET_COMMIT), 0, 0, "c", body)
        self.promises.on_request(request, self.now_ms)
        return request

    def committed(self, error: int = 0) -> m.OffsetCommitResponse:
        partition = m.OffsetCommitResponse.OffsetCommitResponsePartition(
            partition_index=0, error_code=error
        )
        topic = m.OffsetCommitResponse.OffsetCommitResponseTopic(
            name="orders", partitions=[partition]
        )
        return m.OffsetCommitResponse(topics=[topic])

    def end(self, epoch: int, error: ErrorCode, client: str = "c") -> None:
        body = m.EndTxnRequest(transactional_id="t", producer_id=3, producer_epoch=epoch)
        self.say(ApiKey.END_TXN, body, m.EndTxnResponse(error_code=error), client=client)

    def init(self, client: str, timeout_ms: int = 60_000) -> None:
        body = m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=timeout_ms)
        self.say(ApiKey.INIT_PRODUCER_ID, body, m.InitProducerIdResponse(), client=client)

    def ask_again(self, epoch: int, error: ErrorCode) -> None:
        body = m.InitProducerIdRequest(transactional_id="t", producer_id=3, producer_epoch=epoch)
        answer = m.InitProducerIdResponse(error_code=error)
        self.say(ApiKey.INIT_PRODUCER_ID, body, answer)

    def fenced(self) -> list[str]:
        return [fact.error for _, _, _, fact in self.promises.fenced_alone()]


@pytest.fixture
def said() -> Coordinators:
    return Coordinators()


def test_generation__of_a_classic_member_of_a_consumer_group_is_its_epoch(
    said: Coordinators,
) -> None:
    """Others may have later ones, and it gets more partitions in it once they are free."""
    body = m.ConsumerGroupHeartbeatRequest("g", "n", 0)
    answer = m.ConsumerGroupHeartbeatResponse(member_id="n", member_epoch=5)
    said.say(ApiKey.CONSUMER_GROUP_HEARTBEAT, body, answer)
    said.sync(5)
    said.join(4)
    said.sync(4, b"a")
    said.sync(5, b"ab")
    assert said.broken == []


def test_generation__below_one_that_was_assigned_goes_back(said: Coordinators) -> None:
    said.sync(4)
    said.join(4)
    said.join(5)
    assert said.broken == []
    said.join(3)
    assert said.broken == ["generation-back"]


def test_generation__of_a_coordinator_that_was_replaced_does_not_count(said: Coordinators) -> None:
    said.sync(4, broker=2)
    said.join(3, broker=1)
    assert said.broken == []
    said.join(3, broker=2)
    assert said.broken == ["generation-back"]


def test_generation__the_first_one_is_of_a_new_group(said: Coordinators) -> None:
    said.sync(4)
    said.join(1)
    said.join(2)
    assert said.broken == []


def test_assignment__differs_within_a_generation(said: Coordinators) -> None:
    said.sync(4, b"a")
    said.sync(4, b"a", broker=2)
    said.sync(5, b"b")
    assert said.broken == []
    said.sync(5, b"c")
    assert said.broken == ["assignment-differs"]


def test_member_epoch__goes_back(said: Coordinators) -> None:
    for asked, answered, error in [(3, 4, 0), (4, 0, 110), (0, 2, 0), (4, 3, 0)]:
        body = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=asked)
        answer = m.ConsumerGroupHeartbeatResponse(
            member_id="m", member_epoch=answered, error_code=error
        )
        said.say(ApiKey.CONSUMER_GROUP_HEARTBEAT, body, answer)
    assert said.broken == ["member-epoch-back"]


def test_commit__of_a_member_that_does_not_have_the_partition_says_nothing(
    said: Coordinators,
) -> None:
    said.owner = "a"
    said.commit("b", 5)
    said.commit("a", 4)
    assert said.broken == []
    said.owner = "b"
    said.commit("b", 5)
    said.commit("a", 4)
    assert said.broken == ["stale-commit"]


def test_commit__of_a_partition_that_another_member_has_needs_the_members_own_epoch_only(
    said: Coordinators,
) -> None:
    """A member that was given nothing yet commits what it had before it joined again."""
    said.owner = "b"
    said.commit("b", 5)
    said.member_epochs = {"a": 4, "b": 5}
    said.commit("a", 4)
    assert said.broken == []
    said.member_epochs = {"b": 5}
    said.commit("a", 4)
    assert said.broken == ["stale-commit"]


def test_commit__of_an_older_generation_than_anothers(said: Coordinators) -> None:
    said.commit("a", 4)
    said.commit("b", 5)
    said.commit("a", 4, error=22)
    assert said.broken == []
    said.commit("a", 4)
    assert said.broken == ["stale-commit"]


def test_commit__that_was_appended_in_time_and_is_answered_late(said: Coordinators) -> None:
    """Its broker was paused; it resumes as a leader, and the record is in all logs."""
    early = said.ask_to_commit("a", 4)
    said.commit("b", 5)
    said.answer(early, said.committed())
    assert said.broken == []
    said.commit("a", 4)
    assert said.broken == ["stale-commit"]


def test_commit__for_a_topic_that_was_created_again(said: Coordinators) -> None:
    beat = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=4)
    answer = m.ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=4)
    said.say(ApiKey.CONSUMER_GROUP_HEARTBEAT, beat, answer)
    said.promises.on_topic_deleted("orders")
    said.commit("b", 5)
    said.commit("a", 4)
    assert said.broken == []


def test_groups__are_forgotten_with_a_disk(said: Coordinators) -> None:
    said.sync(4)
    said.commit("b", 5)
    said.promises.forget_groups()
    said.join(3)
    said.commit("a", 4)
    assert said.broken == []


def test_fence__of_a_producer_without_a_rival(said: Coordinators) -> None:
    said.init("c")
    said.end(2, ErrorCode.NONE)
    assert said.fenced() == []
    said.end(2, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == ["PRODUCER_FENCED"]
    assert said.fenced() == []


def test_fence__by_another_producer_or_by_an_abort_is_none(said: Coordinators) -> None:
    said.init("c")
    said.end(2, ErrorCode.PRODUCER_FENCED)
    said.promises.on_transaction(TransactionCompleted("t", 3, 3, False), 0)
    assert said.fenced() == []
    said.end(3, ErrorCode.INVALID_PRODUCER_EPOCH)
    said.init("other")
    assert said.fenced() == []


def test_fence__while_the_last_transaction_waits_for_its_markers_is_none(
    said: Coordinators,
) -> None:
    said.init("c")
    said.promises.on_transaction(TransactionEnded("t", 3, 3, True), 0)
    said.end(3, ErrorCode.PRODUCER_FENCED)
    said.promises.on_transaction(TransactionCompleted("t", 3, 3, True), 0)
    assert said.fenced() == []
    said.end(3, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == ["PRODUCER_FENCED"]


def test_fence__of_a_producer_that_asks_again_for_its_next_epoch(said: Coordinators) -> None:
    said.ask_again(2, ErrorCode.NONE)
    said.ask_again(2, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == ["PRODUCER_FENCED"]
    said.promises.on_new_coordinator()
    said.ask_again(2, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == []


def test_fence__while_a_transaction_takes_too_long_is_none(said: Coordinators) -> None:
    """The coordinator may be aborting it, and lose the decision before it is committed."""
    said.init("c", timeout_ms=2_000)
    said.now_ms = 2_001
    said.end(0, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == []
    said.promises.on_transaction(TransactionCompleted("t", 3, 0, committed=True), 3_000)
    said.now_ms = 5_000
    said.end(0, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == ["PRODUCER_FENCED"]


def test_fence__of_a_client_that_has_given_up_does_not_count(said: Coordinators) -> None:
    said.init("c")
    said.promises.on_closed(7)
    said.end(2, ErrorCode.PRODUCER_FENCED)
    assert said.fenced() == []
