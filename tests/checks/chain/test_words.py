"""The facts of a chain: each kind has words, and stands for the causes of its event."""

from collections.abc import Iterator

from kcluster.checks.chain.facts import (
    UNKNOWN,
    ChainFact,
    ClientGot,
    LeaderAway,
    OfEvent,
    RecordAppended,
    RequestFailed,
)
from kcluster.checks.chain.links import Link, in_order
from kcluster.checks.chain.words import fact_text
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown
from kcluster.evidence.causes import Cause

KILLED = BrokerDown(2, DeathKind.KILL)


def _kinds(of: type[ChainFact]) -> Iterator[type[ChainFact]]:
    for kind in of.__subclasses__():
        yield kind
        yield from _kinds(kind)


def test_words__each_kind_of_fact_has_some() -> None:
    without = fact_text.dispatch(object)
    kinds = [kind for kind in _kinds(ChainFact) if kind not in (OfEvent, ClientGot)]
    assert len(kinds) > 30
    assert [kind for kind in kinds if fact_text.dispatch(kind) is without] == []


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
