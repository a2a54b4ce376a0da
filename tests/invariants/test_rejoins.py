"""JoinGroups after which a coordinator must begin a new generation."""

from __future__ import annotations

from kcluster.contract import Note, Reply, Request
from kcluster.events.clients import GroupAssigned, GroupRebalanced
from kcluster.events.rebalance_reasons import MemberAdded
from kcluster.invariants.group_facts import NoRebalance, Rejoined
from kcluster.invariants.memberships import Memberships
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey


class Coordinator:
    """What broker 1 notes of the group g, and answers to its members, in leader epoch `epoch`."""

    def __init__(self) -> None:
        self.memberships = Memberships()
        self.epoch = 5
        self.found: list[NoRebalance] = []

    def begins(self, generation: int) -> None:
        event = GroupRebalanced("g", generation, ("a-1",), MemberAdded("a-1", None, ""))
        self.memberships.on_note(Note((1, 1), 0, event))

    def assigns(self, generation: int) -> None:
        self.memberships.on_note(Note((1, 2), 0, GroupAssigned("g", generation, ())))

    def joins(self, asked: str, generation: int, topics: bytes = b"orders", got: str = "") -> None:
        """A JoinGroup of the member `asked`; it is answered to `got`, or else to `asked`."""
        entry = m.JoinGroupRequest.JoinGroupRequestProtocol("range", topics)
        body = m.JoinGroupRequest("g", 3_000, 3_000, asked, "till" if got else None)
        body.protocols = [entry]
        request = Request(7, int(ApiKey.JOIN_GROUP), 5, 0, "c", body)
        self.memberships.on_request(1, request, lambda _broker, _group: self.epoch, 0)
        member = got or asked
        answer = m.JoinGroupResponse(generation_id=generation, leader="a-1", member_id=member)
        for _, (_, _, fact) in self.memberships.on_decided(Reply(request, answer), 0):
            assert isinstance(fact, NoRebalance)
            self.found.append(fact)


def coordinator() -> Coordinator:
    """One that has begun generation 3 with the leader a-1 and the member b-1."""
    made = Coordinator()
    made.begins(3)
    made.joins("a-1", 3)
    made.joins("b-1", 3)
    return made


def test_rejoins__a_request_that_is_repeated() -> None:
    told = coordinator()
    told.joins("a-1", 3)
    told.assigns(3)
    told.joins("b-1", 3)
    told.joins("till-1", 3, got="till-2")
    assert told.found == []


def test_rejoins__each_change_begins_a_generation() -> None:
    told = coordinator()
    told.joins("b-1", 4, b"bills")
    told.begins(5)
    told.joins("a-1", 5)
    told.assigns(5)
    told.joins("a-1", 6)
    assert told.found == []


def test_rejoins__with_another_subscription() -> None:
    told = coordinator()
    told.joins("b-1", 3, b"bills")
    assert told.found == [NoRebalance("b-1", Rejoined.CHANGED, 3)]


def test_rejoins__the_leader_of_a_group_with_an_assignment() -> None:
    told = coordinator()
    told.assigns(3)
    told.joins("a-1", 3)
    assert told.found == [NoRebalance("a-1", Rejoined.LEADS, 3)]


def test_rejoins__a_static_member_before_there_is_an_assignment() -> None:
    told = coordinator()
    told.joins("", 3, got="till-2")
    assert told.found == [NoRebalance("till-2", Rejoined.RETURNED, 3)]


def test_rejoins__a_successor_knows_only_what_is_stored() -> None:
    """It has loaded generation 3 with its assignment, which its first leadership has not seen."""
    told = coordinator()
    told.epoch = 7
    told.joins("b-1", 3)
    told.joins("", 3, got="till-2")
    assert told.found == []
