"""An answer that is made of several: sent once, with all of them, in the order of the request."""

from __future__ import annotations

from kcluster.broker.gather import OnPart, gather


def test_gather__waits_for_the_last_answer_and_keeps_the_order_of_the_keys() -> None:
    waiting: dict[str, OnPart[int]] = {}
    sent: list[tuple[list[tuple[str, int]], int]] = []
    gather(
        ["a", "b", "c"],
        waiting.__setitem__,
        lambda answers, at_ms: sent.append((list(answers.items()), at_ms)),
        now_ms=0,
    )
    for key, at_ms in (("c", 5), ("a", 6)):
        waiting[key](at_ms, at_ms)
    assert sent == []
    waiting["b"](7, 7)
    assert sent == [([("a", 6), ("b", 7), ("c", 5)], 7)]


def test_gather__answers_that_come_at_once_or_of_nothing_are_sent_at_once() -> None:
    sent: list[dict[int, str]] = []

    def ask(key: int, on_answer: OnPart[str]) -> None:
        on_answer(str(key), 3)

    gather(range(2), ask, lambda answers, _: sent.append(answers), now_ms=3)
    gather(range(0), ask, lambda answers, _: sent.append(answers), now_ms=3)
    assert sent == [{0: "0", 1: "1"}, {}]
