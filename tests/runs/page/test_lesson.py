"""A lesson beside the cluster that plays it, in a real browser."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec import structs

from kcluster.cli.work.lesson_page import vote_place
from kcluster.learn.course import all_lessons, lesson_of
from kcluster.learn.playing import play_lesson
from kcluster.runs.page.document import page_of_record
from kcluster.web.held import HeldCluster
from kcluster.web.lesson_card import Awaited, LessonCard
from tests.runs.page.stage import failover_run
from tests.web.api_client import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long]

CARD = LessonCard(
    lesson="Failover",
    part="The election",
    text="The `controller` *fences* broker 1.\n\nIt may not lead.",
    question="Which replica becomes the leader?",
    choices=("Broker 2", "<b>None</b>"),
    from_s=0,
    until_s=1,
)


@pytest.fixture
def held() -> Iterator[tuple[str, HeldCluster]]:
    """The address of a cluster's page, and the cluster as the server holds it."""
    with serving() as (server, api):
        path = api.cluster()
        held = server.clusters.get(path.rsplit("/", 1)[1])
        yield server.page_url(held.id), held


def test_lesson__the_question_then_the_answer(tab: Tab, held: tuple[str, HeldCluster]) -> None:
    url, cluster = held
    cluster.lessons.show(CARD)
    lesson = tab(url).get_by_role("region", name="Lesson")
    lesson.get_by_text("Which replica becomes the leader?").wait_for()
    assert lesson.locator("code").all_text_contents() == ["controller"]
    assert lesson.locator("li").all_text_contents() == ["Broker 2", "<b>None</b>"]
    cluster.lessons.show(structs.replace(CARD, right=0, because="It is in the ISR."))
    lesson.get_by_text("It is in the ISR.").wait_for()
    assert lesson.locator("li").all_text_contents() == ["Broker 2 ✓", "<b>None</b>"]


def test_lesson__the_answer_is_given_on_the_page_after_the_votes(
    tab: Tab, held: tuple[str, HeldCluster]
) -> None:
    url, cluster = held
    answers: queue.Queue[int | None] = queue.Queue()
    cluster.lessons.on_answer = answers.put
    place = vote_place("http://192.0.2.7:4000/abc/")
    cluster.lessons.show(structs.replace(CARD, vote_at=place, awaits=Awaited.ANSWER), 0)
    lesson = tab(url).get_by_role("region", name="Lesson")
    lesson.get_by_role("img", name="QR code of http://192.0.2.7:4000/abc/").wait_for()
    cluster.lessons.change(voters=3)
    lesson.get_by_text("3 votes").wait_for()
    lesson.get_by_role("button", name="Broker 2").click()
    assert answers.get(timeout=40) == 0
    lesson.get_by_text("(chosen)").wait_for()
    cluster.lessons.change(right=0, votes=(2, 1))
    lesson.get_by_text("2 of 3").wait_for()


def longest_questions() -> list[LessonCard]:
    """The three parts of the course with the most to read before an answer."""
    cards = [
        LessonCard(
            lesson=lesson.title,
            part=part.title,
            text=part.text,
            question=part.ask.question,
            choices=tuple(choice.text for choice in part.ask.choices),
            until_s=119.5,
            awaits=Awaited.ANSWER,
            vote_at=vote_place("http://192.168.100.120:40123/gJnx5da1D9w2/"),
        )
        for lesson in all_lessons()
        for part in lesson.parts
        if part.ask is not None
    ]
    cards.sort(key=lambda card: -len(card.text + card.question + "".join(card.choices)))
    return cards[:3]


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1920, 1080)])
def test_lesson__a_question_fits_a_projector(
    tab: Tab, held: tuple[str, HeldCluster], width: int, height: int
) -> None:
    url, cluster = held
    page = tab(url, width=width, height=height)
    page.keyboard.press("p")
    lesson = page.get_by_role("region", name="Lesson")
    for card in longest_questions():
        cluster.lessons.show(card)
        last = lesson.get_by_role("button", name=card.choices[-1].replace("`", ""))
        last.wait_for()
        side = page.locator("#side").bounding_box()
        for each in (last, lesson.locator(".qr")):
            box = each.bounding_box()
            assert box is not None
            assert side is not None
            assert box["y"] + box["height"] <= side["y"] + side["height"], card.part


def test_lesson__the_picture_says_who_leads_and_who_waits(tab: Tab, tmp_path: Path) -> None:
    """Lesson 2, by its script: the crown stays at a dead broker until the election."""
    file = tmp_path / "failover.html"
    file.write_text(page_of_record(play_lesson(lesson_of("failover")).result.record()), "utf-8")
    page = tab(f"{file.as_uri()}#t=4000&view=partition")
    leader = page.locator(".replica.leader")
    for at_ms, broker, state in ((4_000, 1, "up"), (10_000, 1, "down"), (14_000, 2, "up")):
        page.evaluate(f"kclusterPage.look(kclusterPage.began + {at_ms})")
        ring = page.locator(".ring", has_text=str(broker))
        page.locator(f".replica.leader.{state}").filter(has=ring).wait_for()
        assert leader.count() == 1


def test_lesson__words_at_a_truncation_before_kip_101_name_no_leader(
    tab: Tab, tmp_path: Path
) -> None:
    """Lesson 12: the leader has the records, and no setting allows that they are dropped."""
    file = tmp_path / "epochs.html"
    file.write_text(page_of_record(play_lesson(lesson_of("epochs")).result.record()), "utf-8")
    page = tab(f"{file.as_uri()}#t=10400&view=partition")
    unasked = "6 records truncated: above its own high watermark, as before KIP-101."
    page.locator(".falling", has_text=unasked).nth(1).wait_for()
    page.evaluate("kclusterPage.look(kclusterPage.began + 31000)")
    below = "6 records had been acked; 6 were below this broker's high watermark."
    page.locator(".falling", has_text=below).wait_for()


def test_lesson__a_replay_of_the_class_needs_no_server(tab: Tab, tmp_path: Path) -> None:
    run = failover_run()
    card = structs.replace(CARD, until_s=2, right=0, given=1, votes=(2, 1), voters=3)
    shown = [{**msgspec.to_builtins(card), "at": run.info.began_ms}]
    file = tmp_path / "class.html"
    file.write_text(page_of_record(run, shown), "utf-8")
    page = tab(f"{file.as_uri()}#t=0")
    lesson = page.get_by_role("region", name="Lesson")
    lesson.get_by_text("Which replica becomes the leader?").wait_for()
    assert "2 of 3" not in lesson.inner_text(), "the answer comes when the part has been played"
    page.evaluate("kclusterPage.look(kclusterPage.began + 2000)")
    lesson.get_by_text("2 of 3").wait_for()
