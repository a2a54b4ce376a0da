"""The words of events: every kind and every reason has some."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from msgspec import inspect

from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, BrokerFenced
from kcluster.events.partitions import LeaderElected
from kcluster.events.reasons import AnyReason, ElectionKind, Fenced, Fencing
from kcluster.events.words import is_said_by, reason_text, sentence_of, short_text, text_of
from tests.events.examples import EXAMPLES, example


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_words__each_has_words_and_a_subject(event: Event) -> None:
    for text in (text_of(event), sentence_of(event), short_text(event)):
        assert text
        assert text == text.strip()
        assert "\n" not in text
    assert event.subject != event.kind, "it has its own subject"


@pytest.mark.parametrize("reason", get_args(AnyReason), ids=lambda each: each.__name__)
def test_words__each_reason_has_words(reason: type[Any]) -> None:
    assert reason_text(example(inspect.type_info(reason)))


def test_words__a_reason_names_the_fencing_of_the_same_broker() -> None:
    fenced = BrokerFenced(1, Fencing.SESSION_EXPIRED, 90)
    reason = Fenced(1, Fencing.SESSION_EXPIRED, 90)
    elected = LeaderElected("orders", 0, 1, 2, 5, True, reason, ElectionKind.IN_SYNC)
    assert text_of(fenced) in text_of(elected)
    assert is_said_by(elected, fenced)
    assert not is_said_by(elected, BrokerFenced(2, Fencing.SESSION_EXPIRED, 90))
    assert not is_said_by(elected, BrokerDown(1, DeathKind.KILL))
