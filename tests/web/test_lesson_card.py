"""The card of a lesson: what it awaits, the page's answer, the cards of a replay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.web.held import HeldCluster
from kcluster.web.lesson_card import Awaited, LessonCard, LessonCards, VotePlace
from tests.web.api_client import Api, serving

CARD = LessonCard("Failover", "The election", "", "Who leads?", ("Broker 2", "None"))


def test_lesson_card__an_answer_counts_once_and_only_when_it_is_awaited() -> None:
    cards, given = LessonCards(), list[int | None]()
    assert not cards.answer(0), "there is no lesson"
    cards.on_answer = given.append
    cards.show(CARD)
    assert not cards.answer(0), "the text is being read"
    cards.change(awaits=Awaited.ANSWER)
    for wrong in (-1, 2, 2**70):
        assert not cards.answer(wrong)
    assert cards.answer(1)
    assert not cards.answer(1), "it was answered"
    cards.change(awaits=Awaited.GO_ON)
    assert not cards.answer(0), "there is no question"
    assert cards.answer(None)
    assert given == [1, None]


def test_lesson_card__a_replay_has_each_card_with_its_moment_and_no_address() -> None:
    cards = LessonCards()
    cards.show(LessonCard("Failover", "One", ""), 100)
    cards.show(CARD, 200)
    cards.change(vote_at=VotePlace("http://192.0.2.1/x/", "M0 0h1v1h-1z", 1), voters=2)
    cards.change(right=0, votes=(1, 1))
    first, second = cards.replayed()
    assert (first["at"], first["part"]) == (100, "One")
    assert (second["at"], second["votes"], second["vote_at"]) == (200, (1, 1), None)


@pytest.fixture(scope="module")
def held() -> Iterator[tuple[Api, str, HeldCluster]]:
    with serving() as (server, api):
        path = api.cluster()
        yield api, path, server.clusters.get(path.rsplit("/", 1)[1])


def test_lesson_card__over_http(held: tuple[Api, str, HeldCluster]) -> None:
    api, path, cluster = held
    assert api.ask("GET", f"{path}/lesson").status == 404
    given = list[int | None]()
    cluster.lessons.on_answer = given.append
    cluster.lessons.show(CARD, 0)
    assert api.ok("GET", f"{path}/lesson")["question"] == "Who leads?"
    assert api.ask("POST", f"{path}/lesson", {"choice": 0}).status == 409
    cluster.lessons.change(awaits=Awaited.ANSWER)
    for wrong in ("0", 1.5, [0], {"choice": 0}):
        assert api.ask("POST", f"{path}/lesson", {"choice": wrong}).status == 422
    assert api.ask("POST", f"{path}/lesson", {"choice": 0}).status == 204
    assert given == [0]
