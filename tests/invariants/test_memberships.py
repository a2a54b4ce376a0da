"""Members that coordinators must refuse, because of what they have told them."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import Reply, Request
from kcluster.events.clients import GroupMemberExpired
from kcluster.invariants.memberships import SLACK_MS, Memberships
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

TOPIC = b"t" * 16
TIMEOUT_MS = 1_000
OVER_MS = TIMEOUT_MS + SLACK_MS + 1


class Told:
    """Requests and answers of coordinators; `leaders`: the leader epoch of each broker that leads,
    or believes so."""

    def __init__(self) -> None:
        self.memberships = Memberships()
        self.memberships.slack_ms = SLACK_MS
        self.memberships.tenures.name_of = lambda topic_id: "orders" if topic_id == TOPIC else ""
        self.leaders = {1: 5}
        self.now_ms = 0
        self.broken: list[str] = []

    def ask(self, api: ApiKey, body: Any, broker: int = 1, version: int = 0) -> Request:
        request = Request(7, int(api), version, 0, "c", body)
        self.memberships.on_request(broker, request, self.leader_epoch, self.now_ms)
        return request

    def leader_epoch(self, broker: int, _group: str) -> int | None:
        return self.leaders.get(broker)

    def answer(self, request: Request, body: Any) -> None:
        found = self.memberships.on_decided(Reply(request, body), self.now_ms)
        self.broken += [name for _, (name, _, _) in found]

    # classic members

    def join(
        self,
        member: str,
        generation: int,
        broker: int = 1,
        instance: str | None = None,
        error: int = 0,
        asked: str | None = None,
    ) -> None:
        asked = member if asked is None else asked
        body = m.JoinGroupRequest("g", 3_000, TIMEOUT_MS, asked, instance)
        answer = m.JoinGroupResponse(error_code=error, generation_id=generation, member_id=member)
        self.answer(self.ask(ApiKey.JOIN_GROUP, body, broker), answer)

    def sync(self, member: str, generation: int, instance: str | None = None) -> None:
        body = m.SyncGroupRequest("g", generation, member, instance)
        self.answer(self.ask(ApiKey.SYNC_GROUP, body), m.SyncGroupResponse())

    def beat(
        self,
        member: str,
        generation: int,
        error: int = 0,
        broker: int = 1,
        instance: str | None = None,
    ) -> None:
        body = m.HeartbeatRequest("g", generation, member, instance)
        self.answer(self.ask(ApiKey.HEARTBEAT, body, broker), m.HeartbeatResponse(error_code=error))

    def leave(self, member: str) -> None:
        kind, answered = m.LeaveGroupRequest, m.LeaveGroupResponse
        body = kind("g", members=[kind.MemberIdentity(member)])
        answer = answered(members=[answered.MemberResponse(member)])
        self.answer(self.ask(ApiKey.LEAVE_GROUP, body), answer)

    # members with epochs

    def consume(
        self,
        member: str,
        asked: int,
        epoch: int,
        assigned: list[int] | None = None,
        owned: list[int] | None = None,
        instance: str | None = None,
        error: int = 0,
        broker: int = 1,
    ) -> None:
        body = m.ConsumerGroupHeartbeatRequest("g", member, asked, instance)
        body.rebalance_timeout_ms = TIMEOUT_MS
        if owned is not None:
            body.topic_partitions = [m.ConsumerGroupHeartbeatRequest.TopicPartitions(TOPIC, owned)]
        answer = m.ConsumerGroupHeartbeatResponse(
            error_code=error, member_id=member, member_epoch=epoch
        )
        if assigned is not None:
            entry = m.ConsumerGroupHeartbeatResponse.TopicPartitions(TOPIC, assigned)
            answer.assignment = m.ConsumerGroupHeartbeatResponse.Assignment([entry])
        self.answer(self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, body, broker), answer)

    def run_tasks(self, member: str, asked: int, epoch: int, tasks: list[int]) -> None:
        """A heartbeat of a member of a streams group, which reads the topic orders."""
        kind, answered = m.StreamsGroupHeartbeatRequest, m.StreamsGroupHeartbeatResponse
        body = kind("g", member, member_epoch=asked, rebalance_timeout_ms=TIMEOUT_MS)
        body.topology = kind.Topology(0, [kind.Subtopology("0", ["orders"])])
        answer = answered(member_id=member, member_epoch=epoch)
        answer.active_tasks = [answered.TaskIds("0", tasks)]
        self.answer(self.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, body), answer)

    def fetch(self, member: str, epoch: int, error: int = 0) -> None:
        asked, answered = m.OffsetFetchRequest, m.OffsetFetchResponse
        body = asked(groups=[asked.OffsetFetchRequestGroup("g", member, epoch)])
        answer = answered(groups=[answered.OffsetFetchResponseGroup("g", error_code=error)])
        self.answer(self.ask(ApiKey.OFFSET_FETCH, body, version=9), answer)

    def commit(
        self, member: str, generation: int, partition: int = 0, *others: int, error: int = 0
    ) -> None:
        asked, answered = m.OffsetCommitRequest, m.OffsetCommitResponse
        wanted = [asked.OffsetCommitRequestPartition(one) for one in (partition, *others)]
        topic = asked.OffsetCommitRequestTopic("orders", TOPIC, wanted)
        body = asked("g", generation, member, topics=[topic])
        rows = [answered.OffsetCommitResponsePartition(one, error) for one in (partition, *others)]
        answer = answered(topics=[answered.OffsetCommitResponseTopic("orders", TOPIC, rows)])
        self.answer(self.ask(ApiKey.OFFSET_COMMIT, body), answer)


@pytest.fixture
def told() -> Told:
    return Told()


def test_generation__that_is_over_is_refused(told: Told) -> None:
    told.join("a", 1)
    told.sync("a", 1)
    told.commit("a", 1)
    told.join("a", 2)
    told.sync("a", 2)
    told.beat("a", 1, ErrorCode.ILLEGAL_GENERATION)
    told.commit("a", 1, error=ErrorCode.ILLEGAL_GENERATION)
    told.beat("a", 2)
    assert told.broken == []
    told.beat("a", 1)
    told.commit("a", 1)
    assert told.broken == ["stale-member", "stale-commit"]


def test_generation__that_was_lost_with_its_coordinator_does_not_count(told: Told) -> None:
    told.join("a", 2)
    told.leaders = {1: 5, 2: 6}
    told.beat("a", 1, broker=2)
    told.join("a", 7, broker=2)
    told.beat("a", 2, broker=1)  # the broker does not know of its successor
    assert told.broken == []


def test_member__that_has_left_is_refused(told: Told) -> None:
    told.join("a", 1)
    told.sync("a", 1)
    told.leave("a")
    told.beat("a", 1, ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.broken == []
    told.commit("a", 1)
    assert told.broken == ["stale-commit"]


def test_member__that_was_replaced_by_its_twin_is_refused(told: Told) -> None:
    told.join("a", 1, instance="desk")
    told.join("b", 1, instance="desk")
    told.beat("b", 1)
    assert told.broken == []
    told.beat("a", 1)
    assert told.broken == ["stale-member"]


def test_static_member__is_not_fenced_for_one_that_is_gone(told: Told) -> None:
    told.join("a", 1, instance="desk")
    told.sync("a", 1, instance="desk")
    told.beat("a", 1, instance="desk")
    told.now_ms = 100
    told.join("b", 1, instance="desk", asked="")
    told.beat("a", 1, ErrorCode.FENCED_INSTANCE_ID, instance="desk")
    told.sync("b", 1, instance="desk")
    told.leaders = {1: 5, 2: 6}
    told.beat("a", 1, ErrorCode.FENCED_INSTANCE_ID, broker=2, instance="desk")
    assert told.broken == []
    told.beat("b", 1, ErrorCode.FENCED_INSTANCE_ID, broker=2, instance="desk")
    assert told.broken == ["lost-member"]


def test_static_member__may_be_fenced_while_its_place_is_not_in_the_log(told: Told) -> None:
    told.join("a", 1, instance="desk")
    told.leaders = {1: 5, 2: 6}
    told.beat("a", 1, ErrorCode.FENCED_INSTANCE_ID, broker=2, instance="desk")
    assert told.broken == []


def test_static_member__may_be_fenced_once_another_one_asks_for_its_place(told: Told) -> None:
    told.join("a", 1, instance="desk")
    told.sync("a", 1, instance="desk")
    refused = ErrorCode.COORDINATOR_NOT_AVAILABLE
    told.join("b", 0, instance="desk", asked="", error=refused)
    told.beat("a", 1, ErrorCode.FENCED_INSTANCE_ID, instance="desk")
    assert told.broken == []


def test_static_member__may_be_fenced_by_a_broker_that_was_replaced(told: Told) -> None:
    told.leaders = {1: 5, 2: 4}
    told.join("a", 1, instance="desk")
    told.sync("a", 1, instance="desk")
    told.beat("a", 1, ErrorCode.FENCED_INSTANCE_ID, broker=2, instance="desk")
    assert told.broken == []


def test_member__that_does_not_sync_ends_its_generation(told: Told) -> None:
    told.join("a", 1)
    told.join("b", 1)
    told.sync("a", 1)
    told.now_ms = TIMEOUT_MS
    told.beat("a", 1)
    told.now_ms = OVER_MS
    told.beat("a", 1, ErrorCode.REBALANCE_IN_PROGRESS)
    assert told.broken == []
    told.beat("a", 1)
    assert told.broken == ["late-member"]


def test_member__that_was_served_is_known_until_it_is_removed(told: Told) -> None:
    told.join("a", 1)
    told.sync("a", 1)
    told.beat("a", 1)
    told.memberships.on_removed("g", "a")
    told.beat("a", 1, ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.broken == []
    told.join("b", 3)
    told.beat("b", 3)
    told.beat("b", 3, ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.broken == ["lost-member"]


def test_epoch__that_is_over_is_refused_but_for_a_repetition(told: Told) -> None:
    told.consume("a", 0, 2)
    told.consume("a", 2, 3, [0])
    told.consume("a", 2, 3, [0], owned=[])
    told.consume("a", 2, 0, error=ErrorCode.FENCED_MEMBER_EPOCH)
    assert told.broken == []
    told.consume("a", 2, 3)
    told.consume("a", 3, 4)
    told.consume("a", 2, 4, owned=[])
    assert told.broken == ["stale-member", "stale-member"]


def test_epoch__at_a_coordinator_that_was_replaced_does_not_count(told: Told) -> None:
    told.consume("a", 0, 2)
    told.leaders = {1: 5, 2: 6}
    told.consume("a", 2, 3, broker=2)
    told.consume("a", 2, 2, broker=1)
    assert told.broken == []


def test_partitions__that_are_not_given_up_in_time_end_the_membership(told: Told) -> None:
    told.consume("a", 0, 2, [0, 1], owned=[])
    told.consume("a", 2, 2, [0])
    told.now_ms = OVER_MS
    told.consume("a", 2, 3, [0], owned=[0])
    told.consume("a", 3, 3, [])
    told.now_ms += TIMEOUT_MS
    told.consume("a", 3, 3, [], owned=[0])
    assert told.broken == []
    told.now_ms += OVER_MS
    told.consume("a", 3, 3, [], owned=[0])
    assert told.broken == ["late-member"]


def test_partitions__are_waited_for_by_a_new_coordinator_from_its_election_on(told: Told) -> None:
    told.consume("a", 0, 2, [0, 1], owned=[])
    told.consume("a", 2, 2, [0])
    told.leaders = {1: 5, 2: 6}
    told.consume("a", 2, 2, owned=[0, 1], error=ErrorCode.NOT_COORDINATOR)
    told.now_ms = OVER_MS
    told.consume("a", 2, 2, owned=[0, 1], broker=2)
    assert told.broken == []
    told.now_ms += OVER_MS
    told.consume("a", 2, 2, owned=[0, 1], broker=2)
    assert told.broken == ["late-member"]


def test_partitions__are_not_waited_for_while_a_broker_is_paused(told: Told) -> None:
    told.consume("a", 0, 2, [0, 1], owned=[])
    told.consume("a", 2, 2, [0])
    told.memberships.on_pause()
    told.now_ms = OVER_MS
    told.consume("a", 2, 2, owned=[0, 1])
    assert told.broken == []


def test_commit__of_a_partition_that_another_member_was_given(told: Told) -> None:
    told.consume("a", 0, 2, [0, 1])
    told.consume("a", 2, 3, [1], owned=[1])
    told.commit("a", 2, 1)
    told.commit("a", 2, 0)  # nobody else was given it yet
    told.consume("b", 0, 4, [0])
    told.commit("a", 3, 0)
    told.commit("a", 2, 0, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []
    told.commit("a", 2, 0)
    assert told.broken == ["stale-commit"]


def test_member_with_epochs__that_has_left_or_was_removed(told: Told) -> None:
    told.consume("a", 0, 2)
    told.consume("a", -1, -1)
    told.consume("a", 2, 0, error=ErrorCode.UNKNOWN_MEMBER_ID)
    told.consume("b", 0, 3)
    told.memberships.on_removed("g", "b")
    told.consume("b", 3, 0, error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.broken == []
    told.consume("a", 2, 2)
    told.consume("c", 0, 4)
    told.consume("c", 4, 0, error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.broken == ["stale-member", "lost-member"]


def test_member_with_epochs__a_replaced_coordinator_does_not_know_of_its_removal(
    told: Told,
) -> None:
    told.consume("a", 0, 2)
    told.memberships.on_removed("g", "a")  # by the new coordinator, which no member has asked yet
    told.consume("a", 2, 2)
    told.leaders = {1: 5, 2: 6}
    told.consume("a", 2, 0, error=ErrorCode.UNKNOWN_MEMBER_ID, broker=2)
    assert told.broken == []


def test_member_with_epochs__answers_from_before_its_removal_say_nothing(told: Told) -> None:
    told.consume("a", 0, 2)
    body = m.ConsumerGroupHeartbeatRequest("g", "a", 2)
    asked = told.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, body)
    told.memberships.on_removed("g", "a")
    told.answer(asked, m.ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=2))
    told.consume("a", 2, 0, error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert told.broken == []


def test_static_member__that_is_there_keeps_its_instance_id(told: Told) -> None:
    told.consume("a", 0, 2, instance="desk")
    told.consume("a", -2, -2, instance="desk")
    told.consume("b", 0, 3, instance="desk")
    assert told.broken == []
    told.consume("c", 0, 4, instance="desk")
    assert told.broken == ["lost-member"]


def test_memberships__are_forgotten_with_a_disk(told: Told) -> None:
    told.join("a", 4)
    told.consume("b", 0, 4)
    told.memberships.forget()
    told.beat("a", 3)
    told.consume("b", 3, 3)
    assert told.broken == []


def test_fetch__of_offsets_with_an_epoch_that_is_over_is_refused(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0])
    told.fetch("a", 3)
    told.consume("a", 3, 4, assigned=[0])
    told.fetch("a", 3, ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []
    told.fetch("a", 3)
    assert told.broken == ["stale-member"]


def test_fetch__of_a_group_that_is_gone_is_served(told: Told) -> None:
    """A group that does not exist has no offsets, whoever asks."""
    told.consume("a", 0, 3, assigned=[0])
    told.consume("a", -1, -1)
    told.fetch("a", 3)
    told.memberships.on_removed("g", "a")
    told.fetch("a", 2)
    assert told.broken == []


def test_commit__of_a_partition_that_came_back_after_another_member_had_it(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0])
    told.consume("a", 3, 4, assigned=[], owned=[0])
    told.consume("b", 0, 5, assigned=[0])
    told.consume("b", 5, 6, assigned=[], owned=[0])
    told.consume("a", 4, 7, assigned=[0])
    told.commit("a", 3, error=ErrorCode.STALE_MEMBER_EPOCH)
    told.commit("a", 7)
    assert told.broken == []
    told.commit("a", 3)
    assert told.broken == ["stale-commit"]


def test_commit__of_a_partition_that_its_member_has_kept(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0, 1])
    told.consume("a", 3, 4, assigned=[0], owned=[0, 1])
    told.consume("a", 4, 5)
    told.commit("a", 3, 0)
    told.commit("a", 3, 1, error=ErrorCode.STALE_MEMBER_EPOCH)
    told.commit("a", 2, 0, error=ErrorCode.STALE_MEMBER_EPOCH)
    told.commit("a", 3, 0, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert told.broken == []
    told.commit("a", 3, 0, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == ["commit-refused"]


def test_commit__of_which_the_member_has_kept_a_part_only(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0, 1])
    told.consume("a", 3, 4, assigned=[0], owned=[0, 1])
    told.consume("a", 4, 5)
    told.commit("a", 3, 0, 1, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []


def test_commit__of_a_partition_that_was_away(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0])
    told.consume("a", 3, 4, assigned=[], owned=[0])
    told.consume("a", 4, 5, assigned=[0], owned=[])
    told.commit("a", 4, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []


def test_commit__of_a_topic_that_was_created_again(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0])
    told.memberships.tenures.name_of = lambda topic_id: "" if topic_id == TOPIC else "orders"
    told.consume("a", 3, 4)
    told.commit("a", 3, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []


def test_commit__while_a_heartbeat_may_take_its_partition(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0])
    told.consume("a", 3, 4, owned=[0])
    told.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, m.ConsumerGroupHeartbeatRequest("g", "a", 4))
    told.commit("a", 3, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []


def test_commit__after_a_coordinator_that_was_replaced_has_answered(told: Told) -> None:
    told.consume("a", 0, 3, assigned=[0])
    late = told.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, m.ConsumerGroupHeartbeatRequest("g", "a", 3))
    told.leaders = {2: 6}
    told.consume("b", 0, 4, assigned=[], broker=2)
    told.answer(late, m.ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=4))
    told.consume("a", 3, 5, broker=2)
    told.leaders = {1: 7}
    told.commit("a", 3, error=ErrorCode.STALE_MEMBER_EPOCH)
    assert told.broken == []


def test_commit__of_a_static_member_that_is_back_under_another_id(told: Told) -> None:
    """It has its old partitions from the beginning, whatever epoch it names."""
    told.consume("a", 0, 4, assigned=[0], instance="till")
    told.consume("a", -2, -2, instance="till")
    told.consume("b", 0, 4, assigned=[0], instance="till")
    told.consume("b", 4, 5, assigned=[0], instance="till")
    told.commit("b", 4)
    assert told.broken == []


def test_commit__of_a_task_that_came_back_after_another_member_had_it(told: Told) -> None:
    told.run_tasks("a", 0, 3, [0])
    told.run_tasks("a", 3, 4, [])
    told.run_tasks("b", 0, 5, [0])
    told.run_tasks("b", 5, 6, [])
    told.run_tasks("a", 4, 7, [0])
    told.commit("a", 6, error=ErrorCode.STALE_MEMBER_EPOCH)
    told.commit("a", 7)
    assert told.broken == []
    told.commit("a", 3)
    assert told.broken == ["stale-commit"]


def test_waiting__is_over_with_an_answer_of_a_coordinator_that_a_successor_has_overtaken(
    told: Told,
) -> None:
    """The successor does not know the member, whose SyncGroup still waits at its predecessor."""
    told.join("a", 1)
    waiting = told.ask(ApiKey.SYNC_GROUP, m.SyncGroupRequest("g", 1, "a"))
    told.leaders[2] = 6
    told.join("a", 1, broker=2, error=ErrorCode.UNKNOWN_MEMBER_ID)
    expired = GroupMemberExpired("g", "a", session_timeout_ms=1_000)
    told.answer(waiting, m.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert told.memberships.removals.on_removed(expired, 1, 1_000_000) is None
