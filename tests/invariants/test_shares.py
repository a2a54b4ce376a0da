"""Answers of share coordinators and of share-partition leaders that contradict earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.shares import Led, SharePromises
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.runtime.dispatch import number_of

TOPIC = b"t" * 16
TOPIC_NAME = "orders"
COORDINATOR = 9
ACQUIRED, ACKNOWLEDGED = 1, 2
LOCK_MS = 1_000
ACCEPT = 1
RENEW = 4


class Group:
    """A share group of one partition; `epochs`: the leader epoch in which each broker leads."""

    def __init__(self) -> None:
        self.shares = SharePromises()
        self.epochs = {1: 3, 2: 4}
        self.log_start = 0
        self.lock_ms = LOCK_MS
        self.now_ms = 0
        self.broken: list[str] = []
        self.has_successor = False
        """Whether the coordinator has a successor."""
        self._ids = 0
        self.life = 0
        """The life of all leaders."""

    def arrive(self, request: PeerRequest) -> None:
        self.shares.on_peer_request(COORDINATOR, request, lambda *_: not self.has_successor)

    # coordinators

    def write(
        self, leader: int, epoch: int, start: int, *batches: tuple[int, int, int, int]
    ) -> None:
        self.answer_write(leader, self.send_write(leader, epoch, start, *batches))

    def send_write(
        self,
        leader: int,
        epoch: int,
        start: int,
        *batches: tuple[int, int, int, int],
        state_epoch: int = 0,
    ) -> int:
        kind = m.WriteShareGroupStateRequest
        states = [kind.StateBatch(*one) for one in batches]
        row = kind.PartitionData(0, state_epoch, epoch, start, 0, states)
        self._ids += 1
        body = kind("g", [kind.WriteStateData(TOPIC, [row])])
        self.arrive(PeerRequest(leader, number_of(self.life, self._ids), body))
        return self._ids

    def answer_write(self, leader: int, request_id: int, error: int = 0) -> None:
        kind = m.WriteShareGroupStateResponse
        row = kind.PartitionResult(0, error)
        body = kind([kind.WriteStateResult(TOPIC, [row])])
        self._arrives(leader, PeerResponse(COORDINATOR, request_id, body))

    def read(
        self, leader: int, epoch: int, start: int, *batches: tuple[int, int, int, int]
    ) -> None:
        asked, answered = m.ReadShareGroupStateRequest, m.ReadShareGroupStateResponse
        self._ids += 1
        body = asked("g", [asked.ReadStateData(TOPIC, [asked.PartitionData(0, epoch)])])
        self.arrive(PeerRequest(leader, number_of(self.life, self._ids), body))
        row = answered.PartitionResult(0)
        row.start_offset, row.state_batches = start, [answered.StateBatch(*x) for x in batches]
        answer = answered([answered.ReadStateResult(TOPIC, [row])])
        self._arrives(leader, PeerResponse(COORDINATOR, self._ids, answer))

    def initialize(self, *, error: int = 0, is_answered: bool = True, state_epoch: int = 0) -> None:
        asked, answered = m.InitializeShareGroupStateRequest, m.InitializeShareGroupStateResponse
        self._ids += 1
        body = asked("g", [asked.InitializeStateData(TOPIC, [asked.PartitionData(0, state_epoch)])])
        self.arrive(PeerRequest(3, number_of(self.life, self._ids), body))
        row = answered.PartitionResult(0, error)
        answer = answered([answered.InitializeStateResult(TOPIC, [row])])
        if is_answered:
            self._arrives(3, PeerResponse(COORDINATOR, self._ids, answer))

    def delete(self) -> None:
        kind = m.DeleteShareGroupStateRequest
        self._ids += 1
        body = kind("g", [kind.DeleteStateData(TOPIC, [kind.PartitionData(0)])])
        self.arrive(PeerRequest(3, number_of(self.life, self._ids), body))

    def _arrives(self, node: int, response: PeerResponse) -> None:
        found = self.shares.on_peer_response(
            node, number_of(self.life, response.request_id), response
        )
        self.broken += [name for name, _, _ in found]

    # members

    def fetch(
        self,
        member: str,
        acquired: tuple[int, int] | None,
        *acks: int,
        error: int = 0,
        broker: int = 1,
    ) -> None:
        self.answer_fetch(self.ask(member, *acks, broker=broker), acquired, error)

    def ask(self, member: str, *acks: int, broker: int = 1) -> Request:
        return self.ask_with(member, [(one, one) for one in acks], broker)

    def ask_with(
        self,
        member: str,
        acks: list[tuple[int, int]],
        broker: int = 1,
        types: Sequence[int] = (ACCEPT,),
    ) -> Request:
        kind = m.ShareFetchRequest
        batches = [kind.AcknowledgementBatch(*one, list(types)) for one in acks]
        row = kind.FetchPartition(0, acknowledgement_batches=batches)
        body = kind("g", member, 1, topics=[kind.FetchTopic(TOPIC, [row])])
        request = Request(ord(member), int(ApiKey.SHARE_FETCH), 0, 0, member, body)
        self.shares.on_request(broker, request, self.led, self.now_ms)
        return request

    def answer_fetch(
        self, asked: Request, acquired: tuple[int, int] | None, error: int = 0
    ) -> None:
        kind = m.ShareFetchResponse
        row = kind.PartitionData(0, acknowledge_error_code=error)
        row.acquired_records = [kind.AcquiredRecords(*acquired, 1)] if acquired else []
        body = kind(acquisition_lock_timeout_ms=self.lock_ms)
        body.responses = [kind.ShareFetchableTopicResponse(TOPIC, [row])]
        found = self.shares.on_decided(Reply(asked, body), self.led, self.now_ms)
        self.broken += [name for _, (name, _, _) in found]

    def led(self, broker: int, _topic_id: bytes, _partition: int) -> Led | None:
        return Led(TOPIC_NAME, self.epochs[broker], self.log_start, 1000)


@pytest.fixture
def group() -> Group:
    return Group()


def test_write__of_a_leader_that_was_replaced(group: Group) -> None:
    group.read(1, 3, 0)
    on_its_way = group.send_write(1, 3, 5)
    group.read(2, 4, 0)
    group.answer_write(1, on_its_way)
    refused = group.send_write(1, 3, 6)
    group.answer_write(1, refused, error=74)
    group.write(2, 4, 6)
    assert group.broken == []
    group.write(1, 3, 7)
    assert group.broken == ["stale-share-write"]


def test_write__of_a_leader_that_read_before_the_initialization(group: Group) -> None:
    group.initialize(state_epoch=4)
    group.write(1, 3, 5)
    assert group.broken == ["stale-share-write"]


def test_write__of_an_older_state_epoch_that_may_be_stored(group: Group) -> None:
    before = group.send_write(1, 3, 5)
    group.initialize(state_epoch=4)
    group.answer_write(1, before)  # it was stored before the initialization
    refused = group.send_write(1, 3, 6)
    group.answer_write(1, refused, error=74)
    group.answer_write(1, group.send_write(1, 3, 6, state_epoch=4))
    group.answer_write(1, group.send_write(1, 3, 6, state_epoch=-1))
    group.initialize(state_epoch=5, error=1)
    group.initialize(state_epoch=6, is_answered=False)
    group.answer_write(1, group.send_write(1, 3, 6, state_epoch=4))
    group.has_successor = True
    group.write(1, 3, 5)
    assert group.broken == []


def test_write__after_the_state_was_deleted(group: Group) -> None:
    group.initialize(state_epoch=4)
    group.delete()
    group.initialize(state_epoch=1)
    group.answer_write(1, group.send_write(1, 3, 6, state_epoch=1))
    assert group.broken == []


def test_state__goes_back(group: Group) -> None:
    group.write(1, 3, 5, (5, 9, ACKNOWLEDGED, 1))
    group.read(2, 4, 5, (5, 9, ACKNOWLEDGED, 1))
    group.read(2, 4, 10)
    assert group.broken == []
    group.read(2, 4, 4, (5, 9, ACKNOWLEDGED, 1))
    group.read(2, 4, 5, (5, 8, ACKNOWLEDGED, 1), (9, 9, 0, 1))
    assert group.broken == ["share-state-back", "share-state-back"]


def test_state__is_known_of_each_life_of_a_leader(group: Group) -> None:
    """The ids of requests begin anew with a life, while earlier ones have no answer yet."""
    asked = m.ReadShareGroupStateRequest
    body = asked("g", [asked.ReadStateData(TOPIC, [asked.PartitionData(0, 3)])])
    group.arrive(PeerRequest(1, 1, body))
    group.life = 1
    group.write(1, 3, 5)
    group.read(2, 4, 5)
    assert group.broken == []
    group.read(2, 4, 4)
    assert group.broken == ["share-state-back"]


def test_state__of_a_coordinator_that_has_a_successor_may_be_older(group: Group) -> None:
    group.write(1, 3, 5)
    group.has_successor = True
    group.read(2, 4, 0)
    assert group.broken == []


def test_state__begins_anew_with_its_initialization_or_after_a_lost_disk(group: Group) -> None:
    group.write(1, 3, 5)
    kind = m.InitializeShareGroupStateRequest
    row = kind.InitializeStateData(TOPIC, [kind.PartitionData(0)])
    group.arrive(PeerRequest(1, 100, kind("g", [row])))
    group.read(2, 4, 0)
    group.write(1, 4, 5)
    group.shares.forget()
    group.read(2, 4, 0)
    assert group.broken == []


def test_state__has_nothing_from_before_it_was_initialized(group: Group) -> None:
    group.write(1, 3, 5, (5, 9, ACKNOWLEDGED, 1))
    group.initialize()
    group.read(1, 3, 0)
    group.write(1, 3, 0, (0, 2, ACKNOWLEDGED, 1))
    group.send_write(1, 3, 0, (3, 4, ACKNOWLEDGED, 1))
    group.read(1, 3, 0, (0, 4, ACKNOWLEDGED, 1))
    assert group.broken == []
    group.read(1, 3, 0, (0, 5, ACKNOWLEDGED, 1))
    assert group.broken == ["share-state-kept"]


@pytest.mark.parametrize("how", ["refused", "unanswered", "with a successor", "a lost disk"])
def test_state__may_be_older_unless_its_initialization_was_confirmed(
    group: Group, how: str
) -> None:
    group.write(1, 3, 5, (5, 9, ACKNOWLEDGED, 1))
    group.has_successor = how == "with a successor"
    group.initialize(error=124 if how == "refused" else 0, is_answered=how != "unanswered")
    if how == "a lost disk":
        group.shares.forget()
    group.has_successor = False
    group.read(1, 3, 5, (5, 9, ACKNOWLEDGED, 1))
    assert group.broken == []


def test_acknowledgement__of_a_record_that_another_member_holds(group: Group) -> None:
    group.fetch("a", (5, 9))
    group.now_ms = LOCK_MS
    group.fetch("b", (5, 6))
    group.fetch("a", None, 7)
    group.fetch("a", None, 6, error=121)
    assert group.broken == []
    group.fetch("a", None, 6)
    assert group.broken == ["foreign-ack"]


def test_acknowledgement__of_a_record_that_the_member_holds(group: Group) -> None:
    group.fetch("a", (5, 9))
    group.fetch("a", None, 9, 4, error=121)  # it does not hold all of them
    group.now_ms = LOCK_MS
    group.fetch("a", None, 8, error=121)  # the lock has ended
    group.fetch("a", (10, 12))
    group.epochs[1] += 1
    group.fetch("a", None, 10, error=121)  # it has another leader
    assert group.broken == []
    group.fetch("b", (20, 25))
    group.fetch("b", None, 20, 21, error=121)
    assert group.broken == ["lock-lost"]
    group.shares.on_loaded(1, "g", TOPIC_NAME, 0)
    group.fetch("b", None, 22, error=121)
    assert group.broken == ["lock-lost"]


def test_acknowledgement__of_a_record_from_a_tenure_that_is_over(group: Group) -> None:
    """The broker loses its leadership and leads again before the answer with the record is sent."""
    group.shares.on_loaded(1, "g", TOPIC_NAME, 0)
    under_way = group.ask("a")
    group.shares.on_resigned(1, TOPIC_NAME, 0)
    group.epochs[1] += 2
    group.answer_fetch(under_way, (5, 9))
    group.fetch("a", None, 5, error=121)
    assert group.broken == []
    group.shares.on_loaded(1, "g", TOPIC_NAME, 0)
    group.fetch("a", (5, 9))
    group.fetch("a", None, 5, error=121)
    assert group.broken == ["lock-lost"]


def test_acknowledgement__of_a_group_with_new_configs(group: Group) -> None:
    """Its brokers learn of them at different times, so nobody knows how long a lock lasts."""
    group.fetch("a", (5, 9))
    group.shares.on_configured("g")
    group.fetch("a", None, 5, error=121)
    assert group.broken == []


def test_lock__that_was_acquired_before_its_config_changed(group: Group) -> None:
    """The answer has waited for a store, and has the new config."""
    group.fetch("a", (1, 2))
    group.lock_ms = 5 * LOCK_MS
    group.fetch("a", (5, 9))
    group.now_ms = LOCK_MS
    group.fetch("b", (5, 9))
    group.fetch("b", None, 5)
    assert group.broken == []


def test_acknowledgement__of_more_records_than_there_are(group: Group) -> None:
    """A client may name any range, and any number of them."""
    group.fetch("b", (5, 6))
    everything = [(0, 1 << 62), *((one, one) for one in range(10_000))]
    group.answer_fetch(group.ask_with("a", everything), None)
    assert group.broken == ["foreign-ack"]
    group.fetch("a", None, 4, 7)
    group.write(1, 3, 0, (0, 1 << 62, ACKNOWLEDGED, 1))
    group.read(2, 4, 0, (0, 1 << 62, ACKNOWLEDGED, 1))
    assert group.broken == ["foreign-ack"]


@pytest.mark.parametrize("end", ["acknowledged", "lock", "closed", "loaded", "deleted", "leader"])
def test_acknowledgement__of_a_record_that_nobody_holds_any_more(group: Group, end: str) -> None:
    group.fetch("b", (5, 6))
    if end == "acknowledged":
        group.fetch("b", None, 5, 6)
    elif end == "lock":
        group.now_ms = LOCK_MS
    elif end == "closed":
        group.shares.on_closed(ord("b"))
    elif end == "loaded":
        group.shares.on_loaded(1, "g", TOPIC_NAME, 0)
    elif end == "deleted":
        group.log_start = 7
    else:
        group.epochs[1] = 5
    group.fetch("a", None, 6)
    assert group.broken == []


def test_record__is_given_to_two_members(group: Group) -> None:
    asked = group.ask("a")
    group.now_ms = LOCK_MS
    group.fetch("b", (5, 6))
    group.answer_fetch(asked, (5, 6))  # its lock ended before the answer was sent
    assert group.broken == []
    group.fetch("c", (6, 6))
    assert group.broken == ["acquired-twice"]


def test_records__of_a_leader_that_has_not_loaded_the_state_again(group: Group) -> None:
    group.shares.on_loaded(1, "g", TOPIC_NAME, 0)
    under_way = group.ask("a")
    group.shares.on_resigned(1, TOPIC_NAME, 0)
    group.answer_fetch(under_way, (1, 2))  # they were acquired before
    group.fetch("a", (3, 4), broker=2)
    group.shares.on_resigned(1, "another", 0)
    group.fetch("a", None)
    assert group.broken == []
    group.fetch("a", (5, 6))
    assert group.broken == ["stale-share-leader"]
    group.shares.on_loaded(1, "another group", TOPIC_NAME, 0)
    group.fetch("a", (7, 8))
    assert group.broken == ["stale-share-leader"] * 2
    group.shares.on_loaded(1, "g", TOPIC_NAME, 0)
    group.fetch("a", (9, 9))
    assert group.broken == ["stale-share-leader"] * 2


def test_record__of_a_session_that_a_later_connection_has_ended(group: Group) -> None:
    """The member has got the record through its first connection."""
    group.fetch("a", acquired=(5, 5))
    group.shares.on_request(1, _opening("a", connection=7), group.led, group.now_ms)
    group.shares.on_closed(7)
    group.fetch("b", acquired=(5, 5))
    assert group.broken == []


@pytest.mark.parametrize("count", [990, 991])
def test_write__that_counts_more_records_than_there_are(count: int, group: Group) -> None:
    """The log ends at 1000, and a member holds two records."""
    group.fetch("a", acquired=(8, 9))
    kind = m.WriteShareGroupStateRequest
    row = kind.PartitionData(0, 0, 3, 8, count, [])
    request = PeerRequest(1, 5, kind("g", [kind.WriteStateData(TOPIC, [row])]))
    found = [name for name, _, _ in group.shares.overcounted(request, group.led, group.now_ms)]
    assert found == (["share-overcounted"] if count > 990 else [])


def _opening(member: str, connection: int) -> Request:
    body = m.ShareFetchRequest("g", member, 0)
    return Request(connection, int(ApiKey.SHARE_FETCH), 0, 0, member, body)


@pytest.mark.parametrize("error", [0, 51])
def test_lock__that_was_renewed(error: int, group: Group) -> None:
    """The first lock ends at 1000 ms, the renewed one at 1900 ms."""
    group.fetch("a", acquired=(5, 6))
    group.now_ms = 900
    asked = group.ask_with("a", [(5, 5)], types=[RENEW])
    group.answer_fetch(asked, None, error)
    group.now_ms = 1_500
    group.fetch("b", acquired=(5, 6))
    assert group.broken == ([] if error else ["acquired-twice"])
    group.now_ms = 4_000
    group.fetch("a", acquired=(5, 6))
    assert group.broken == ([] if error else ["acquired-twice"])


def test_acknowledgement__at_a_leader_that_could_not_store_another_one(group: Group) -> None:
    """It forgets the share partition, and who has which record.  Kafka: markFenced."""
    group.fetch("a", (5, 9))
    group.fetch("b", (20, 25))
    waiting = group.ask("b", 20)
    group.fetch("a", None, 5, error=3)
    group.answer_fetch(waiting, None, 121)
    group.fetch("b", None, 21, error=121)
    assert group.broken == []
