"""Targets, conditions, times and counts, as a person writes them."""

from __future__ import annotations

import re

import pytest

from kcluster.scenario.language import words


@pytest.mark.parametrize(
    ("text", "word", "rest"),
    [
        ("2", "broker", "2"),
        ("broker 2", "broker", "2"),
        ("leader(orders-0)", "leader", ("orders", 0)),
        ("followers( my-topic-11 )", "followers", ("my-topic", 11)),
        ("rack a", "rack", "a"),
        ("coordinator(group billing)", "coordinator", "billing"),
        ("the controller", "controller", ""),
        ("client shop", "client", "shop"),
        ("victim", "name", "victim"),
    ],
)
def test_target__each_way_to_mean_a_broker(text: str, word: str, rest: object) -> None:
    (target,) = words.targets(text)
    assert (target.word, target.partition or target.argument) == (word, rest)


def test_target__several_any_and_all_but() -> None:
    assert [target.word for target in words.targets("1, isr(orders-0), rack b")] == [
        "broker", "isr", "rack",
    ]  # fmt: skip
    (any_two,) = words.targets("any 2 brokers")
    assert (any_two.count, any_two.inner[0].word) == (2, "all")
    (any_follower,) = words.targets("any(followers(orders-0))")
    assert any_follower.inner[0].word == "followers"
    (others,) = words.targets("all but 1, leader(orders-0)")
    assert [target.word for target in others.inner] == ["broker", "leader"]


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
def test_condition__each_form(text: str, means: tuple[str, str, int]) -> None:
    condition = words.condition(text)
    assert (condition.word, condition.symbol, condition.number) == means


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (words.targets, "leadr(orders-0)", "did you mean leader?"),
        (words.targets, "leader(orders)", "like orders-0"),
        (words.targets, "!!", "there are leader(orders-0)"),
        (words.condition, "asr(orders-0) < 2", "no such thing to compare"),
        (words.condition, "isr < 2", "isr of which partition?"),
        (words.condition, "event leader_elcted", "did you mean leader_elected?"),
        (words.condition, "soon", "not a condition"),
        (words.moment, "5x", "not a time"),
        (words.moment, "9s..5s", "the earlier one"),
        (words.count, "few", "no number"),
    ],
)
def test_words__what_is_wrong_is_told(read: object, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read(text)  # type: ignore[operator]  # one of three functions


def test_moment_and_count__each_form() -> None:
    assert words.moment("1.5s") == words.TriggerTime(1_500, 1_500)
    assert words.moment("5s..20s") == words.TriggerTime(5_000, 20_000)
    assert words.moment("250") == words.TriggerTime(250, 250)
    assert words.count("some").holds(1)
    assert not words.count("some").holds(0)
    assert words.count("none").holds(0)
    assert words.count("< 1,000").holds(999)
    assert not words.count("3").holds(4)
