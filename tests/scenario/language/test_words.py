"""Targets, conditions, times and counts as scenario files write them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kcluster.operations import conditions, targets
from kcluster.operations.targets import (
    AllButTarget,
    AllTarget,
    AnyTarget,
    BrokerTarget,
    ClientTarget,
    ControllerTarget,
    CoordinatorTarget,
    FollowersTarget,
    IsrTarget,
    LeaderTarget,
    NameTarget,
    RackTarget,
    Target,
)
from kcluster.scenario.language import words


@pytest.mark.parametrize(
    "meant",
    [
        BrokerTarget(broker_id=2, shown="2"),
        BrokerTarget(broker_id=2, shown="broker 2"),
        LeaderTarget(partition=("orders", 0), shown="leader(orders-0)"),
        FollowersTarget(partition=("my-topic", 11), shown="followers( my-topic-11 )"),
        RackTarget(rack="a", shown="rack a"),
        CoordinatorTarget(group="billing", shown="coordinator(group billing)"),
        ControllerTarget(shown="the controller"),
        ClientTarget(client="shop", shown="client shop"),
        NameTarget(name="victim", shown="victim"),
    ],
)
def test_target__resolves_each_way_to_name_a_broker(meant: Target) -> None:
    assert targets.targets(meant.shown) == (meant,)


def test_target__reads_lists_any_and_all_but() -> None:
    several = targets.targets("1, isr(orders-0), rack b")
    assert [type(target) for target in several] == [BrokerTarget, IsrTarget, RackTarget]
    (any_two,) = targets.targets("any 2 brokers")
    assert any_two == AnyTarget(count=2, among=(AllTarget(shown="all"),), shown="any 2 brokers")
    (any_follower,) = targets.targets("any(followers(orders-0))")
    assert isinstance(any_follower, AnyTarget)
    assert isinstance(any_follower.among[0], FollowersTarget)
    (others,) = targets.targets("all but 1, leader(orders-0)")
    assert isinstance(others, AllButTarget)
    assert [type(target) for target in others.excluded] == [BrokerTarget, LeaderTarget]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("isr(orders-0) < 2", ("isr", "<", 2)),
        ("ISR of orders-0 < 2", ("isr", "<", 2)),
        ("1,000 acked", ("acked", ">=", 1000)),
        ("500 acked by shop", ("acked", ">=", 500)),
        ("read >= 10", ("read", ">=", 10)),
        ("broker 2 leads orders-0", ("leader", "==", 2)),
        ("leader(orders-0) != 1", ("leader", "!=", 1)),
        ("high watermark of orders-0 > 3", ("high_watermark", ">", 3)),
    ],
)
def test_condition__reads_each_form(text: str, means: tuple[str, str, int]) -> None:
    read: Any = conditions.condition(text)
    assert (read.word, read.symbol, read.number) == means


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (targets.targets, "leadr(orders-0)", "did you mean leader?"),
        (targets.targets, "leader(orders)", "like orders-0"),
        (targets.targets, "!!", "there are leader(orders-0)"),
        (conditions.condition, "asr(orders-0) < 2", "no such thing to compare"),
        (conditions.condition, "isr < 2", "isr of which partition?"),
        (conditions.condition, "event leader_elcted", "did you mean leader_elected?"),
        (conditions.condition, "soon", "not a condition"),
        (words.moment, "5x", "not a time"),
        (words.moment, "250", "250 what? Write 250ms, 250s or 250m"),
        (words.moment, "5..20s", "5 what? Write 5ms, 5s or 5m"),
        (words.moment, "5 sec", "the units are ms, s, m, min, h"),
        (words.time_check, "< 100", "100 what? Write 100ms"),
        (words.moment, "9s..5s", "the earlier one"),
        (words.count, "few", "no number"),
    ],
)
def test_words__a_wrong_value_is_refused_with_the_reason(
    read: object, text: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        read(text)  # type: ignore[operator]  # one of three functions


def test_moment_and_count__read_each_form() -> None:
    assert words.moment("1.5s") == words.MomentRange(1_500, 1_500)
    assert words.moment("5s..20s") == words.MomentRange(5_000, 20_000)
    assert words.moment("0") == words.MomentRange(0, 0)
    assert words.time_check("< 1s") == words.CountCheck("<", 1_000)
    assert words.time_check("some") == words.CountCheck(">=", 1)
    assert words.moment("250ms") == words.MomentRange(250, 250)
    assert words.count("some").holds(1)
    assert not words.count("some").holds(0)
    assert words.count("none").holds(0)
    assert words.count("< 1,000").holds(999)
    assert not words.count("3").holds(4)
