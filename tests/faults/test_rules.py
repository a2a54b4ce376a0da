"""Which requests a rule matches, in which order rules are tried, and which are invalid."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kcluster.events.rule_effects import (
    AnswerError,
    Close,
    CloseTime,
    Delay,
    Drop,
    Half,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.faults.rules import METADATA_APIS, Call, RuleBook, RuleError, rule
from kcluster.protocol.apis import ApiKey


def call(
    api: int = ApiKey.PRODUCE,
    version: int = 11,
    client: str = "shop",
    broker: int = 1,
    named: tuple[tuple[str, int | None], ...] = (("orders", 0),),
    is_answered: bool = True,
) -> Call:
    return Call(api, version, client, broker, is_answered, lambda: named)


def book(*rules: Any, seed: int = 1) -> RuleBook:
    made = RuleBook(lambda name: Random(f"{seed}/{name}"))
    for new in rules:
        made.add(new, 1_000)
    return made


def hit_by(made: RuleBook, request: Call, now_ms: int = 1_000) -> str | None:
    found = made.decide(request, now_ms)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    ("words", "fitting", "other"),
    [
        ({"api": "Produce"}, call(), call(ApiKey.FETCH)),
        ({"api": ["fetch", "PRODUCE"]}, call(ApiKey.FETCH), call(ApiKey.METADATA)),
        ({"api": "LIST_OFFSETS"}, call(ApiKey.LIST_OFFSETS), call()),
        ({"version": 11}, call(), call(version=10)),
        ({"version": (3, 9)}, call(version=9), call(version=10)),
        ({"client": "shop-*"}, call(client="shop-1"), call(client="bank")),
        ({"broker": 1}, call(), call(broker=2)),
        ({"broker": [1, 3]}, call(broker=3), call(broker=2)),
        ({"topic": "ord*"}, call(), call(named=(("bills", 0),))),
        ({"topic": "orders", "partition": 1}, call(named=(("orders", 1),)), call()),
        ({"partition": [1, 2]}, call(named=(("x", 0), ("y", 2))), call()),
        ({"topic": "orders", "partition": 1}, call(named=(("orders", None),)), call(named=())),
    ],
)
def test_rules__fit(words: dict[str, Any], fitting: Call, other: Call) -> None:
    made = book(rule(close="before", **words))
    assert hit_by(made, fitting) == "rule-1"
    assert hit_by(made, other) is None


def hits(count: int, **words: Any) -> list[int]:
    made = book(rule(close="before", **words))
    return [number for number in range(1, count + 1) if hit_by(made, call())]


def test_rules__count_calls() -> None:
    assert hits(5, nth=3) == [3]
    assert hits(7, every=3) == [3, 6]
    assert hits(5, first=2) == [1, 2]
    assert hits(9, every=2, times=2) == [2, 4]
    assert hits(9, every=2, first=5) == [2, 4]


def test_rules__probability_depends_on_the_seed() -> None:
    found = hits(1_000, probability=0.3)
    assert found == hits(1_000, probability=0.3)
    assert 250 < len(found) < 350
    assert hits(100, probability=0.0) == []


def test_rules__a_window_begins_when_the_rule_is_added() -> None:
    made = book(rule(close="before", from_ms=100, to_ms=200))
    times = (1_099, 1_100, 1_199, 1_200)
    assert [hit_by(made, call(), at) for at in times] == [None, "rule-1", "rule-1", None]


def test_rules__effects_on_replies_need_a_request_with_a_reply() -> None:
    silent = call(is_answered=False)
    for words in ({"drop": "reply"}, {"throttle_ms": 1}, {"close": "after"}):
        assert hit_by(book(rule(**words)), silent) is None
    assert hit_by(book(rule(drop="request")), silent) == "rule-1"


def test_rules__the_first_match_applies_and_later_rules_count_no_call() -> None:
    made = book(
        rule(name="a", api="Produce", every=2, close="before"), rule(name="b", close="after")
    )
    assert [hit_by(made, call()) for _ in range(4)] == ["b", "a", "b", "a"]
    assert made.entries["b"].calls == 2


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        ({"answer": "NOT_COORDINATOR", "after": True}, AnswerError("NOT_COORDINATOR", True)),
        ({"delay_ms": 5, "of": "reply", "jitter_ms": 3}, Delay(5, Half.REPLY, 3)),
        ({"drop": "reply", "close": True}, Drop(Half.REPLY, True)),
        ({"close": "after"}, Close(CloseTime.AFTER)),
        ({"throttle_ms": 7}, ThrottleClient(7)),
        ({"stale": True}, StaleMetadata()),
        ({"reorder_ms": 9}, Reorder(9)),
        ({"effect": Close(CloseTime.AFTER)}, Close(CloseTime.AFTER)),
    ],
)
def test_rules__words_of_effects(words: dict[str, Any], effect: Any) -> None:
    assert rule(**words).effect == effect


def test_rules__stale_applies_to_metadata_only() -> None:
    assert rule(stale=True).apis == METADATA_APIS


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"api": "Produse", "close": "before"}, "did you mean Produce"),
        ({"answer": "NOT_LEADER_OR_FOLOWER"}, "did you mean NOT_LEADER_OR_FOLLOWER"),
        ({"answer": "NONE"}, "no such error"),
        ({"delay": 5}, "did you mean delay_ms"),
        ({}, "exactly one effect"),
        ({"close": "after", "throttle_ms": 5}, "exactly one effect"),
        ({"effect": Close(), "throttle_ms": 5}, "exactly one effect"),
        ({"drop": "both"}, "request or reply"),
        ({"close": "later"}, "before or after"),
        ({"delay_ms": 5, "of": "answer"}, "request or reply"),
        ({"delay_ms": -5}, "a whole number of ms"),
        ({"delay_ms": 5, "close": True}, "exactly one effect"),
        ({"throttle_ms": 5, "after": True}, "after does not go with throttle_ms"),
        ({"close": "after", "nth": -1}, "nth"),
        ({"close": "after", "every": 0}, "every"),
        ({"close": "after", "probability": 1.5}, "from 0 to 1"),
        ({"close": "after", "from_ms": 5, "to_ms": 5}, "window is empty"),
        ({"close": "after", "version": (3, 2)}, "the lower bound"),
        ({"stale": True, "api": "Produce"}, "Produce is not answered from the cluster's metadata"),
    ],
)
def test_rules__invalid_ones_are_refused(words: dict[str, Any], text: str) -> None:
    with pytest.raises(RuleError, match=text):
        rule(**words)


def test_rules__report_all_problems_at_once() -> None:
    with pytest.raises(RuleError) as caught:
        rule(api="Produse", nth=-1, answer="NOPE")
    assert len(str(caught.value).splitlines()) == 3
