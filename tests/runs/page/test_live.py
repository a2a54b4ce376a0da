"""The page of a running cluster in a real browser: what is clicked happens, and is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.web.api_client import Api, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long, pytest.mark.timeout_s(180)]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Api]]:
    with serving() as (server, api):
        yield server.url, api


@pytest.fixture
def url(server: tuple[str, Api]) -> Iterator[str]:
    """The page of a new cluster; orders-0 is led by broker 1."""
    at, api = server
    topology = {"brokers": 3, "profile": "fast", "topics": {"orders": {"assignment": [[1, 2, 3]]}}}
    path = api.cluster(topology=topology)
    yield f"{at}/page/{path.rsplit('/', 1)[1]}?token={api.token}"
    api.ask("DELETE", path)


def replica(page: Page, broker: int, words: str) -> None:
    """Wait until the page says this of a replica."""
    page.locator(f"main [data-broker='{broker}'][aria-label*='{words}']").wait_for()


def choose(page: Page, broker: int, item: str) -> None:
    page.locator(f"main [data-broker='{broker}']").click()
    page.get_by_role("menuitem", name=item).click()


def test_live__kill_by_click_watch_the_election_and_rewind(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    choose(page, 1, "Kill")
    replica(page, 1, "down (killed)")
    replica(page, 2, "leader")
    page.get_by_role("status").get_by_text("orders-0").first.wait_for()
    # Looking back shows the old leader, and changes nothing.
    killed, began = page.evaluate(
        "[kclusterPage.model.notes.find((note) => note.kind === 'broker_down').at,"
        " kclusterPage.began]"
    )
    page.get_by_role("slider", name="Moment shown").fill(str(killed - began - 1))
    page.get_by_text("the cluster runs on").wait_for()
    replica(page, 1, "leader")
    page.get_by_role("button", name="Back to now").click()
    replica(page, 2, "leader")
    choose(page, 1, "Start")
    replica(page, 1, "in sync")


def test_live__an_empty_cluster_offers_a_topic_with_clients(
    tab: Tab, server: tuple[str, Api]
) -> None:
    at, api = server
    path = api.cluster(topology={"brokers": 3, "profile": "fast"})
    page = tab(f"{at}/page/{path.rsplit('/', 1)[1]}?token={api.token}")
    page.get_by_label("Topic").fill("payments")
    page.get_by_role("button", name="Create it, with a producer and a consumer").click()
    page.locator(".replica.leader .cell").nth(2).wait_for()
    for client in ("producer-1", "consumer-1"):
        page.get_by_role("button", name=client, exact=True).wait_for()
    assert page.get_by_role("heading", name="payments-0").is_visible()
    api.ask("DELETE", path)


def test_live__space_freezes_whatever_has_the_focus(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    choose(page, 1, "Kill")
    replica(page, 1, "down (killed)")
    page.locator("main [data-broker='1']").focus()
    page.keyboard.press("Space")
    page.get_by_text("The cluster is frozen.").wait_for()
    assert page.get_by_role("menu").count() == 0
    replica(page, 1, "down (killed)")


def test_live__an_error_leaves_with_its_cause(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.evaluate("kclusterPage.controls.act({kill: 9})")
    alert = page.get_by_role("alert")
    alert.get_by_text("broker 9").wait_for()
    page.evaluate("kclusterPage.controls.act({kill: 3})")
    replica(page, 3, "down (killed)")
    assert not alert.is_visible()


def test_live__messages_between_brokers_fly_and_records_wait_for_a_leader(
    tab: Tab, url: str
) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.evaluate(
        "kclusterPage.controls.ask('POST', '/clients',"
        " {producer: {topic: 'orders', rate: '20/s', name: 'shop'}})"
    )
    page.locator(".replica.leader .cell").nth(3).wait_for()
    kinds = page.evaluate(
        """(async () => {
        const kinds = new Set();
        for (let i = 0; i < 1200 && !(kinds.has("fetch") && kinds.has("answer")); i++) {
          for (const {kind} of kclusterFlights.journeys) kinds.add(kind);
          await new Promise(requestAnimationFrame);
        }
        return [...kinds];
        })()"""
    )
    assert {"fetch", "answer"} <= set(kinds)
    page.evaluate("kclusterPage.controls.act({kill: {brokers: [1, 2, 3]}})")
    page.get_by_text("waiting,").first.wait_for()
    page.get_by_text("no other replica may lead").wait_for()
    page.evaluate("kclusterPage.controls.act({start: {brokers: [1, 2, 3]}})")
    page.get_by_text("No client could write for").wait_for()


def test_live__keys_kill_and_links_are_cut_from_the_keyboard(tab: Tab, url: str) -> None:
    page = tab(url, width=480)
    replica(page, 1, "leader")
    page.keyboard.press("1")
    replica(page, 2, "leader")
    page.get_by_role("tab", name="Cluster").click()
    link = page.get_by_role("button", name="Link between brokers 2 and 3: healthy")
    link.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Link between brokers 2 and 3: cut").wait_for()


def test_live__a_refusal_is_shown_in_words(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.evaluate("kclusterPage.controls.act({kill: 9})")
    page.get_by_role("alert").get_by_text("broker 9").wait_for()


def test_live__pause_freezes_and_a_step_ends_at_its_event(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.keyboard.press("Space")
    page.get_by_text("The cluster is frozen.").wait_for()
    choose(page, 1, "Kill")
    replica(page, 1, "down (killed)")
    page.get_by_label("Kind of event to step to").select_option("leader_elected")
    page.get_by_role("button", name="event ▶").click()
    replica(page, 2, "leader")
    page.get_by_text("The cluster is frozen.").wait_for()
    page.get_by_label("Speed").select_option("0.1")
    page.get_by_role("button", name="Run").click()
    page.get_by_text("slow motion").wait_for()


def test_live__built_in_clients_are_started_and_a_record_is_followed(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.get_by_role("button", name="Clients").click()
    dialog = page.get_by_role("dialog", name="Built-in clients")
    dialog.get_by_role("button", name="Start a consumer").click()
    dialog.get_by_role("button", name="Stop consumer").wait_for()
    dialog.get_by_label("Records per second").fill("50")
    dialog.get_by_role("button", name="Start a producer").click()
    dialog.get_by_role("button", name="Stop producer").wait_for()
    page.keyboard.press("Escape")
    page.locator(".replica.leader .cell").nth(3).wait_for()
    page.locator(".replica.leader .cell").nth(3).dispatch_event("click")
    card = page.get_by_role("region", name="Record")
    card.get_by_text("producer").first.wait_for()
    card.get_by_text("consumer").first.wait_for()
    page.get_by_role("tab", name="Groups").click()
    page.get_by_role("region", name="Group readers").get_by_text("Stable").wait_for()


def test_live__a_prediction_is_asked_before_and_answered_after(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.keyboard.press("q")
    choose(page, 1, "Kill")
    dialog = page.get_by_role("dialog", name="Prediction")
    dialog.get_by_text("Who leads orders-0").wait_for()
    replica(page, 1, "leader")
    wanted = dialog.get_by_role("button", name="broker 2")
    page.keyboard.press(wanted.inner_text().split()[0])
    while dialog.is_visible():
        page.keyboard.press("1")
    page.get_by_role("status").get_by_text("You said: broker 2. ✓ Right").wait_for()
    replica(page, 2, "leader")


def test_live__what_if_from_now(tab: Tab, url: str) -> None:
    page = tab(url)
    replica(page, 1, "leader")
    page.keyboard.press("f")
    page.locator("#fork-action").select_option(label="kill the leader")
    page.get_by_label("How long").select_option("5s")
    page.get_by_role("button", name="Play both futures").click()
    here = page.get_by_role("region", name="With nothing more done")
    there = page.get_by_role("region", name="With kill: leader(orders-0)")
    there.get_by_role("heading", name="valid").wait_for(timeout=60_000)
    difference = page.locator(".difference").inner_text()
    assert difference.endswith("broker 2 leads orders-0 instead of broker 1.")
    assert len({*page.locator(".future .axis").all_inner_texts()}) == 1, "the same offsets"
    page.locator("#fork-slider").fill(str(page.evaluate("kclusterPage.controls.open.moment + 500")))
    there.get_by_text("down (killed)").wait_for()
    here.get_by_text("leader, end").first.wait_for()
    assert "down" not in here.locator(".replicas").inner_text()
    # The cluster itself goes on as it was.
    page.keyboard.press("Escape")
    replica(page, 1, "leader")
