"""Offsets that groups are given although nobody has committed them, or not since their deletion."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator import offsets
from kcluster.broker.handlers.groups import group_offsets
from kcluster.contract import Reply, Request
from kcluster.invariants.offset_answers import MAX_VALUES, OffsetAnswers
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run


class Told:
    """A group's requests about partition 0 of the topic orders, and the answers."""

    def __init__(self) -> None:
        self.answers = OffsetAnswers(lambda name, topic_id: name or topic_id)

    def ask(self, api: ApiKey, body: Any) -> Request:
        request = Request(7, int(api), 8, 0, "c", body)
        self.answers.on_request(request)
        return request

    def begin_commit(self, offset: int, leader_epoch: int = 1, metadata: str = "") -> Request:
        kind = m.OffsetCommitRequest
        row = kind.OffsetCommitRequestPartition(
            0, offset, committed_leader_epoch=leader_epoch, committed_metadata=metadata
        )
        topic = kind.OffsetCommitRequestTopic("orders", partitions=[row])
        return self.ask(ApiKey.OFFSET_COMMIT, kind("g", topics=[topic]))

    def end_commit(self, request: Request, error: int = 0) -> None:
        kind = m.OffsetCommitResponse
        row = kind.OffsetCommitResponsePartition(0, error)
        topic = kind.OffsetCommitResponseTopic("orders", partitions=[row])
        self.answers.on_decided(Reply(request, kind(topics=[topic])))

    def commit(self, offset: int, leader_epoch: int = 1, metadata: str = "") -> None:
        self.end_commit(self.begin_commit(offset, leader_epoch, metadata))

    def begin_fetch(self) -> Request:
        kind = m.OffsetFetchRequest
        return self.ask(ApiKey.OFFSET_FETCH, kind(groups=[kind.OffsetFetchRequestGroup("g")]))

    def end_fetch(self, request: Request, offset: int, epoch: int = 1, metadata: str = "") -> bool:
        kind = m.OffsetFetchResponse
        row = kind.OffsetFetchResponsePartitions(0, offset, epoch, metadata)
        topic = kind.OffsetFetchResponseTopics("orders", partitions=[row])
        body = kind(groups=[kind.OffsetFetchResponseGroup("g", [topic])])
        return not list(self.answers.on_fetched(Reply(request, body)))

    def may_have(self, offset: int, leader_epoch: int = 1, metadata: str = "") -> bool:
        """Whether the group may be given this offset."""
        return self.end_fetch(self.begin_fetch(), offset, leader_epoch, metadata)

    def begin_deletion(self) -> Request:
        return self.ask(ApiKey.DELETE_GROUPS, m.DeleteGroupsRequest(["g"]))

    def end_deletion(self, request: Request, error: int = 0) -> None:
        result = m.DeleteGroupsResponse.DeletableGroupResult("g", error)
        self.answers.on_decided(Reply(request, m.DeleteGroupsResponse(results=[result])))

    def delete_offset(self, error: int = 0) -> None:
        asked, answered = m.OffsetDeleteRequest, m.OffsetDeleteResponse
        wanted = [asked.OffsetDeleteRequestPartition(0)]
        body = asked("g", [asked.OffsetDeleteRequestTopic("orders", wanted)])
        row = answered.OffsetDeleteResponsePartition(0, error)
        answer = answered(topics=[answered.OffsetDeleteResponseTopic("orders", [row])])
        self.answers.on_decided(Reply(self.ask(ApiKey.OFFSET_DELETE, body), answer))


@pytest.fixture
def told() -> Told:
    return Told()


def test_offset__that_was_committed_with_all_that_belongs_to_it(told: Told) -> None:
    told.commit(5, leader_epoch=2, metadata="x")
    assert told.may_have(-1, -1)
    assert told.may_have(5, 2, "x")
    assert not told.may_have(6, 2, "x")
    assert not told.may_have(5, -1, "x")
    assert not told.may_have(5, 2)


def test_offset__whose_commit_has_no_answer_yet_may_be_given(told: Told) -> None:
    told.commit(5)
    pending = told.begin_commit(6)
    assert told.may_have(6)
    told.end_commit(pending, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert told.may_have(6)


def test_offset__that_the_watch_did_not_see_is_not_judged(told: Told) -> None:
    assert told.may_have(4)
    told.end_commit(told.begin_commit(5), ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.may_have(4)


def test_offset__of_a_deleted_group_is_gone(told: Told) -> None:
    told.commit(5)
    told.end_deletion(told.begin_deletion(), ErrorCode.NON_EMPTY_GROUP)
    assert told.may_have(5)
    late = told.begin_fetch()
    told.end_deletion(told.begin_deletion())
    assert told.end_fetch(late, 5), "it was asked before the deletion was confirmed"
    assert not told.may_have(5)
    assert told.may_have(-1, -1)
    told.commit(5)
    assert told.may_have(5)


def test_offset__that_is_committed_while_its_group_is_deleted_may_stay(told: Told) -> None:
    told.commit(5)
    pending = told.begin_commit(6)
    deletion = told.begin_deletion()
    told.commit(7)
    told.end_commit(pending)
    told.end_deletion(deletion)
    assert told.may_have(6)
    assert told.may_have(7)
    assert not told.may_have(5)


def test_offset__that_was_deleted_alone(told: Told) -> None:
    told.commit(5)
    told.delete_offset(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    assert told.may_have(5)
    told.delete_offset()
    assert not told.may_have(5)


def test_partition__with_very_many_commits_is_not_judged(told: Told) -> None:
    for offset in range(MAX_VALUES + 1):
        told.commit(offset)
    assert told.may_have(0)


STORY = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers: {topics: orders, name: desk, group: billing, commit: after_poll}
duration: 3s
steps:
  - {at: 2s, kill: client desk, for: 300ms}
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_coordinator__that_forgets_the_leader_epoch_of_an_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(STORY).passed
    sound = offsets.committed_offset

    def without_epoch(commit: Any, *rest: Any) -> Any:
        commit.committed_leader_epoch, sent = -1, commit.committed_leader_epoch
        stored = sound(commit, *rest)
        commit.committed_leader_epoch = sent
        return stored

    monkeypatch.setattr(group_offsets, "committed_offset", without_epoch)
    assert "offset-unknown" in names(run(STORY))
