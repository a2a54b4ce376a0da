"""The facts of a chain: each kind has words, and stands for the causes of its event."""

from collections.abc import Iterator

import pytest
from msgspec.structs import fields

from kcluster.checks.chain.facts import (
    UNKNOWN,
    ChainFact,
    ClientGot,
    Fact,
    LeaderAway,
    OfEvent,
    RecordAppended,
    RequestFailed,
    Value,
)
from kcluster.checks.chain.links import Link, in_order
from kcluster.checks.chain.words import fact_text
from kcluster.clients.ledger import TransactionOutcome
from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown
from kcluster.events.network import LinkCut, LinkEvent
from kcluster.events.partitions import LeaderElected
from kcluster.events.reasons import ElectionKind, Fenced, Fencing
from kcluster.evidence.causes import Cause

KILLED = BrokerDown(2, DeathKind.KILL)


FENCED = Fenced(1, Fencing.SESSION_EXPIRED, 90)
SAMPLES: dict[object, object] = {
    int: 1,
    str: "x",
    bool: True,
    Event: KILLED,
    Fact: KILLED,
    LinkEvent: LinkCut(1, 2),
    LeaderElected: LeaderElected("orders", 0, 1, 2, 5, True, FENCED, ElectionKind.IN_SYNC),
    Value: b"v",
    bytes | None: b"v",
    TransactionOutcome: TransactionOutcome.OPEN,
}
"""A value for each type of a field; other fields are tuples."""


def _kinds(of: type[ChainFact]) -> Iterator[type[ChainFact]]:
    for kind in of.__subclasses__():
        yield kind
        yield from _kinds(kind)


KINDS = [kind for kind in _kinds(ChainFact) if kind not in (OfEvent, ClientGot)]


@pytest.mark.parametrize("kind", KINDS)
def test_words__each_kind_of_fact_has_some(kind: type[ChainFact]) -> None:
    values = {field.name: SAMPLES.get(field.type, ()) for field in fields(kind) if field.required}
    assert fact_text(kind(**values)) != ""


def test_words__an_unknown_record() -> None:
    assert (
        fact_text(RecordAppended(UNKNOWN, 7, 1)) == "a record was appended at offset 7 by broker 1"
    )


def test_link__its_causes_and_error_are_those_of_its_fact() -> None:
    away = Link(10, LeaderAway(KILLED, 2), (3000, 1))
    assert away.causes == Link(10, KILLED).causes == (Cause.BROKER_CRASH,)
    refused = Link(10, RequestFailed("NOT_LEADER_OR_FOLLOWER", 1, 7))
    assert (refused.error, refused.causes) == ("NOT_LEADER_OR_FOLLOWER", ())
    assert refused.as_json() == {
        "at_ms": 10,
        "text": "broker 1 refused request 7: NOT_LEADER_OR_FOLLOWER",
        "note_id": None,
        "causes": [],
        "error": "NOT_LEADER_OR_FOLLOWER",
    }


def test_in_order__a_note_counts_once() -> None:
    later, first, again = (
        Link(20, KILLED, (1, 2)),
        Link(10, KILLED, (1, 1)),
        Link(10, KILLED, (1, 1)),
    )
    assert in_order([later, first, again]) == [first, later]
