"""Members that are removed, in time and too early."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.contract import Request
from kcluster.events.clients import Departure, GroupMemberExpired, GroupMemberLeft
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.invariants.facts import Observed
from kcluster.invariants.group_facts import RemovedEarly, RemovedWaiting
from kcluster.invariants.removals import Removals
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

COORDINATOR, OTHER = 1, 2
SESSION_MS, REBALANCE_MS = 1_000, 3_000
TOPIC = b"t" * 16


class Group:
    """The member `a` of a group, and what its coordinator answers."""

    def __init__(self) -> None:
        self.removals = Removals()
        self.broker = COORDINATOR
        self.has_epochs = False

    def _answer(self, key: ApiKey, asked: object, body: object, at_ms: int, then_ms: int) -> None:
        request = Request(1, int(key), 3, 0, "a", asked)
        times = (self.broker, at_ms, max(at_ms, then_ms))
        self.removals.on_answered(request, body, *times, self.has_epochs)

    def join(self, at_ms: int, generation: int, then_ms: int = 0) -> None:
        asked = m.JoinGroupRequest("g", SESSION_MS, REBALANCE_MS, "a")
        body = m.JoinGroupResponse(generation_id=generation, member_id="a")
        self._answer(ApiKey.JOIN_GROUP, asked, body, at_ms, then_ms)

    def heartbeat(self, at_ms: int, error: ErrorCode = ErrorCode.NONE) -> None:
        asked = m.HeartbeatRequest("g", 1, "a")
        self._answer(ApiKey.HEARTBEAT, asked, m.HeartbeatResponse(error_code=error), at_ms, 0)

    def commit(self, at_ms: int) -> None:
        asked = m.OffsetCommitRequest("g", 1, "a")
        row = m.OffsetCommitResponse.OffsetCommitResponsePartition(0, ErrorCode.NONE)
        topic = m.OffsetCommitResponse.OffsetCommitResponseTopic("orders", partitions=[row])
        self._answer(ApiKey.OFFSET_COMMIT, asked, m.OffsetCommitResponse(topics=[topic]), at_ms, 0)

    def epoch_heartbeat(
        self, at_ms: int, owned: list[int] | None, given: list[int] | None, error: int = 0
    ) -> None:
        self.has_epochs = True
        kind, told = m.ConsumerGroupHeartbeatRequest, m.ConsumerGroupHeartbeatResponse
        asked = kind("g", "a", 1, rebalance_timeout_ms=REBALANCE_MS)
        asked.topic_partitions = None if owned is None else [kind.TopicPartitions(TOPIC, owned)]
        body = told(error_code=error, member_id="a", member_epoch=1)
        if given is not None:
            body.assignment = told.Assignment([told.TopicPartitions(TOPIC, given)])
        self._answer(ApiKey.CONSUMER_GROUP_HEARTBEAT, asked, body, at_ms, 0)

    def ask(self, key: ApiKey, at_ms: int) -> Request:
        joins = m.JoinGroupRequest("g", SESSION_MS, REBALANCE_MS, "a")
        asked = joins if key is ApiKey.JOIN_GROUP else m.SyncGroupRequest("g", 1, "a")
        request = Request(1, int(key), 3, 0, "a", asked)
        self.removals.on_request(self.broker, request, at_ms)
        return request

    def expired(self, at_ms: int) -> Observed | None:
        event = GroupMemberExpired("g", "a", SESSION_MS)
        broken = self.removals.on_removed(event, self.broker, at_ms)
        return None if broken is None else broken[2]

    def left(self, at_ms: int, departure: Departure) -> Observed | None:
        event = GroupMemberLeft("g", "a", departure)
        broken = self.removals.on_removed(event, self.broker, at_ms)
        return None if broken is None else broken[2]


@pytest.fixture
def group() -> Group:
    return Group()


def test_session__that_a_heartbeat_extends(group: Group) -> None:
    group.join(0, 1)
    group.heartbeat(500, ErrorCode.REBALANCE_IN_PROGRESS)
    assert group.expired(1_499) == RemovedEarly("a", "session", 1_500, 1_499)


def test_session__that_is_over(group: Group) -> None:
    group.join(0, 1)
    group.heartbeat(500)
    assert group.expired(1_500) is None


def test_session__that_a_commit_extends(group: Group) -> None:
    group.join(0, 1)
    group.commit(700)
    assert group.expired(1_600) is not None


def test_session__that_a_commit_does_not_extend_in_a_group_with_epochs(group: Group) -> None:
    group.has_epochs = True
    group.join(0, 1)
    group.commit(700)
    assert group.expired(1_600) is None


def test_session__that_a_refused_heartbeat_does_not_extend(group: Group) -> None:
    group.join(0, 1)
    group.heartbeat(500, ErrorCode.ILLEGAL_GENERATION)
    assert group.expired(1_200) is None


def test_session__that_a_repeated_answer_does_not_extend(group: Group) -> None:
    group.join(0, 1)
    group.join(500, 1)
    assert group.expired(1_200) is None


def test_session__at_the_next_coordinator(group: Group) -> None:
    group.join(0, 1)
    group.broker = OTHER
    assert group.expired(500) is None


def test_session__whose_length_has_changed(group: Group) -> None:
    group.epoch_heartbeat(0, None, None)
    configs: dict[str, str | None] = {"consumer.session.timeout.ms": "9000"}
    group.removals.on_configured(ConfigChanged(ResourceType.GROUP, "g", configs))
    assert group.expired(500) is None


def test_join__the_rebalance_began_after_what_was_served(group: Group) -> None:
    group.join(0, 1)
    group.heartbeat(5_000)
    group.heartbeat(5_600, ErrorCode.REBALANCE_IN_PROGRESS)
    early = group.left(7_999, Departure.NOT_JOINED)
    assert early == RemovedEarly("a", "not_joined", 8_000, 7_999)


def test_join__that_is_late(group: Group) -> None:
    group.join(0, 1)
    group.heartbeat(5_000)
    assert group.left(8_000, Departure.NOT_JOINED) is None


def test_sync__counts_from_the_first_answer_of_the_generation(group: Group) -> None:
    group.join(0, 1, then_ms=400)
    group.join(2_000, 1)
    assert group.left(3_400, Departure.NOT_SYNCED) is None
    group.join(5_000, 2)
    assert group.left(7_900, Departure.NOT_SYNCED) is not None


def test_revocation__of_a_member_that_has_given_up_what_it_had_to(group: Group) -> None:
    group.epoch_heartbeat(0, [0, 1], [0])
    group.epoch_heartbeat(500, [0], None)
    early = group.left(3_000, Departure.NOT_REVOKED)
    assert early == RemovedEarly("a", "not_revoked", 3_500, 3_000)


def test_revocation__of_a_member_that_keeps_a_partition(group: Group) -> None:
    group.epoch_heartbeat(0, [0, 1], [0])
    group.epoch_heartbeat(500, [0, 1], None)
    assert group.left(3_000, Departure.NOT_REVOKED) is None


def test_revocation__of_which_an_answer_with_an_error_may_have_said_more(group: Group) -> None:
    group.epoch_heartbeat(0, [], [0, 1])
    group.epoch_heartbeat(300, [0, 1], None, error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.epoch_heartbeat(500, [0, 1], None)
    assert group.left(3_200, Departure.NOT_REVOKED) is None


@pytest.mark.parametrize("key", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
def test_waiting__its_session_ends_though_it_waits(group: Group, key: ApiKey) -> None:
    group.join(0, 1)
    group.ask(key, 200)
    name = "JoinGroup" if key is ApiKey.JOIN_GROUP else "SyncGroup"
    assert group.expired(1_500) == RemovedWaiting("a", "session", name, 200, 1_500)


def test_waiting__it_had_not_done_what_it_waits_for(group: Group) -> None:
    group.join(0, 1)
    group.ask(ApiKey.SYNC_GROUP, 200)
    assert group.left(9_000, Departure.NOT_SYNCED) == RemovedWaiting(
        "a", "not_synced", "SyncGroup", 200, 9_000
    )
    group.join(0, 1)
    group.ask(ApiKey.SYNC_GROUP, 200)
    assert group.left(9_000, Departure.NOT_JOINED) is None


@pytest.mark.parametrize("why", ["answered", "muted", "died", "left", "new", "elsewhere", "epochs"])
def test_waiting__its_session_may_end(group: Group, why: str) -> None:
    group.has_epochs = why == "epochs"
    if why != "new":
        group.join(0, 1)
    request = group.ask(ApiKey.JOIN_GROUP, 200)
    if why in ("answered", "muted"):
        group.removals.on_decided(request)
    elif why == "died":
        group.removals.on_death(COORDINATOR)
    elif why == "elsewhere":
        group.broker = OTHER
    if why == "left":
        assert group.left(1_500, Departure.LEFT) is None
    else:
        assert group.expired(1_500) is None


def test_waiting__the_answer_to_a_request_that_was_sent_again_changes_nothing(group: Group) -> None:
    group.join(0, 1)
    first = group.ask(ApiKey.JOIN_GROUP, 200)
    group.ask(ApiKey.JOIN_GROUP, 300)
    group.removals.on_decided(first)
    assert group.expired(1_500) == RemovedWaiting("a", "session", "JoinGroup", 300, 1_500)


BEATS = """\
topology: {brokers: 3, profile: fast, topics: {orders: {partitions: 2, replication_factor: 3}}}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers: {topics: orders, group: billing, members: 2}
duration: 20s
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_group__whose_sessions_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(BEATS).passed
    sound = ClassicGroup._extend_session

    def extend(self: ClassicGroup, member: object, now_ms: int) -> None:
        sound(self, member, now_ms - 100_000)  # type: ignore[arg-type]  # passed on as it is

    monkeypatch.setattr(ClassicGroup, "_extend_session", extend)
    assert "removed-early" in names(run(BEATS))


REFUSED_DELETION = """
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 3
    group.consumer.min.session.timeout.ms: 1000
    group.consumer.session.timeout.ms: 2000
    group.consumer.min.heartbeat.interval.ms: 300
    group.consumer.heartbeat.interval.ms: 500
workload:
  producers: {topic: orders, name: shop, rate: 5/s, in_flight: 1}
  consumers:
    topics: orders
    name: reader
    group: epochs
    group_protocol: consumer
    commit: after_poll
    stop: 2s
    config: {auto.offset.reset: earliest}
duration: 4s
seed: 2
steps:
  - {at: 1500ms, move: {partition: __consumer_offsets-0, to: 2}}
  - {at: 1800ms, kill: client reader, for: 5s}
  - {at: 1840ms, delete_group: epochs}
"""


def test_session__of_a_member_whose_group_could_not_be_deleted() -> None:
    """A commit gives it no more time, as in each group with epochs."""
    result = run(REFUSED_DELETION)
    assert ["NON_EMPTY_GROUP" in failure for failure in result.failures] == [True]
    assert names(result) == set()
