"""One answer that is made of several, each of which may come later.

Owns: the wait for all of them.  Never: knows what is asked, gives up waiting (every request is
answered in time, if only with an error).  Kafka: CompletableFuture.allOf,
FutureUtils.combineFutures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

OnPart = Callable[[V, int], None]
"""Called once with (answer, now_ms), at once or later."""


def gather(
    keys: Iterable[K],
    ask: Callable[[K, OnPart[V]], None],
    on_all: Callable[[dict[K, V], int], None],
    now_ms: int,
) -> None:
    """Ask for an answer per key; no two keys are equal. Call `on_all(answers by key, now_ms)` when
    the last answer has arrived, with the answers in the order of the keys; at once if there are no
    keys."""
    asked = list(keys)
    answers: dict[K, V] = {}
    if not asked:
        on_all(answers, now_ms)

    def answered(key: K, answer: V, at_ms: int) -> None:
        answers[key] = answer
        if len(answers) == len(asked):
            on_all({key: answers[key] for key in asked}, at_ms)

    for key in asked:
        ask(key, partial(answered, key))
