"""A lesson beside the cluster that plays it, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from kcluster.web.held import HeldCluster
from kcluster.web.lesson_card import LessonCard
from tests.web.api_client import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long, pytest.mark.timeout_s(90)]

CARD = LessonCard(
    lesson="Failover",
    part="The election",
    text="The `controller` *fences* broker 1.\n\nIt may not lead.",
    question="Which replica becomes the leader?",
    choices=("Broker 2", "<b>None</b>"),
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
