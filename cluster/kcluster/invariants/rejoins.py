"""JoinGroups of classic members after which a coordinator must begin a new generation.

Owns: the newest generation that each coordinator of a classic group has noted, what its members
joined it with, and the rule that a JoinGroup that requires a rebalance is not answered in it.
Never: looks into a coordinator.  Kafka: GroupMetadataManager.classicGroupJoinExistingMember,
updateStaticMemberThenRebalanceOrCompleteJoin; KIP-345.

    rebalance-missing   a member rejoins with a different subscription, the leader rejoins after the
                        assignment was made, or a static member is back before it was made; but the
                        answer is in the existing generation

A member that repeats its request changes nothing, and is answered in its generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.events.clients import GroupAssigned, GroupRebalanced
from kcluster.invariants.group_facts import NoRebalance, Rejoined
from kcluster.invariants.promises import BrokenPromise, forget_oldest

if TYPE_CHECKING:
    from kcluster.protocol.messages import JoinGroupRequest, JoinGroupResponse

_UNKNOWN: Final = -1
_Protocols = list[tuple[str, bytes]]
_Home = tuple[str, int]
"""(group, its coordinator)."""


class _Begun(Struct):
    """A generation since its coordinator has begun it.  `joined`: the protocols of each member that
    was told of it."""

    number: int
    is_assigned: bool = False
    leader: str = ""
    leader_epoch: int = _UNKNOWN
    joined: dict[str, _Protocols] = {}


class Rejoin(Struct):
    """A JoinGroup that must not be answered in this generation."""

    generation: int
    why: Rejoined


class Rejoins:
    """The generations of all classic groups of one cluster."""

    def __init__(self) -> None:
        self._generations: dict[_Home, _Begun] = {}

    def forget(self) -> None:
        """Discard the generations: the coordinators' logs may have lost records."""
        self._generations = {}

    def on_note(self, broker: int, event: GroupRebalanced | GroupAssigned) -> None:
        """Record that a coordinator has begun a generation, or has its assignment."""
        home = (event.group, broker)
        if isinstance(event, GroupRebalanced):
            self._generations[home] = _Begun(event.generation)
            forget_oldest(self._generations)
        elif (known := self._generations.get(home)) and known.number == event.generation:
            known.is_assigned = True

    def arrives(self, broker: int, leader_epoch: int, body: JoinGroupRequest) -> Rejoin | None:
        """The generation in which a JoinGroup must not be answered; None if it may be in any."""
        known = self._generations.get((body.group_id, broker))
        if known is None or known.leader_epoch != leader_epoch:
            return None
        before = known.joined.get(body.member_id)
        why: Rejoined | None = None
        if not body.member_id:
            why = None if known.is_assigned else Rejoined.RETURNED
        elif before is not None and before != _protocols(body):
            why = Rejoined.CHANGED
        elif known.is_assigned and body.member_id == known.leader:
            why = Rejoined.LEADS
        return None if why is None else Rejoin(known.number, why)

    def told(
        self,
        broker: int,
        leader_epoch: int,
        body: JoinGroupRequest,
        answer: JoinGroupResponse,
        rejoin: Rejoin | None,
    ) -> BrokenPromise | None:
        """What a successful answer to a JoinGroup breaks; None: nothing."""
        member_id, number = answer.member_id, answer.generation_id
        known = self._generations.get((body.group_id, broker))
        if known is not None and known.leader_epoch not in (_UNKNOWN, leader_epoch):
            del self._generations[body.group_id, broker]
        elif known is not None and known.number == number:
            known.leader_epoch = leader_epoch
            known.joined[member_id] = _protocols(body)
            forget_oldest(known.joined)
            if answer.leader == member_id:
                known.leader = member_id
        if rejoin is None or number != rejoin.generation:
            return None
        fact = NoRebalance(member_id, rejoin.why, number)
        return "rebalance-missing", f"group {body.group_id}", fact


def _protocols(body: JoinGroupRequest) -> _Protocols:
    return [(one.name, bytes(one.metadata)) for one in body.protocols]
