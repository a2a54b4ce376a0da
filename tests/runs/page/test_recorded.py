"""The page of a recorded run in a real browser: any moment is drawn, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from kcluster.runs.page.document import page_of_record
from kcluster.scenario.gaps import gaps_of
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.virtual import run_virtual
from tests.runs.page.stage import failover_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long, pytest.mark.timeout_s(180)]

BEFORE, ELECTED = "#t=1400&view=partition", "#t=1700&view=partition"


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the failover as a file."""
    path: Path = tmp_path_factory.mktemp("page") / "failover.html"
    path.write_text(page_of_record(failover_run()), "utf-8")
    return path.as_uri()


def label(page: Page, broker: int) -> str:
    """What the page says of a replica."""
    return page.locator(f"main [data-broker='{broker}']").get_attribute("aria-label") or ""


def test_partition__before_and_after_the_death(tab: Tab, url: str) -> None:
    page = tab(url + BEFORE)
    assert "leader" in label(page, 1)
    assert "in sync" in label(page, 2)
    assert page.locator(".replica.leader svg.crown").count() == 1
    page = tab(url + ELECTED)
    assert label(page, 1).startswith("Broker 1: down (killed), out of sync")
    assert "leader" in label(page, 2)
    # The epochs of the new leader's log are seen as two fills.
    fills = page.locator(".replica.leader .cell").evaluate_all(
        "cells => [...new Set(cells.map((cell) => cell.getAttribute('fill')))]"
    )
    assert fills == ["url(#epoch-0)", "url(#epoch-1)"]


def test_partition__pictures_of_its_epochs_lead_to_their_moments(tab: Tab, url: str) -> None:
    page = tab(url + "#t=0&view=partition", width=480)
    epochs = page.get_by_role("group", name="Leader epochs of orders-0").get_by_role("button")
    first, second, third = (each.get_attribute("aria-label") or "" for each in epochs.all())
    assert first.endswith("broker 1 leader, broker 2 in sync, broker 3 in sync")
    assert second.startswith("Epoch 1, from +1.")
    assert second.endswith("broker 1 down (killed), broker 2 leader, broker 3 in sync")
    assert third.endswith("broker 2 in sync, broker 3 leader")
    ends = epochs.evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect()).map((box) => [box.left, box.right])"
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    epochs.nth(1).click()
    page.locator(".epochs [aria-current]").and_(epochs.nth(1)).wait_for()
    assert "leader" in label(page, 2)


def test_partition__a_record_tells_who_sent_has_acked_and_read_it(tab: Tab, url: str) -> None:
    page = tab(url + ELECTED)
    cells = page.locator(".replica.leader .cell")
    cells.last.focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    card = page.get_by_role("region", name="Record").inner_text()
    for words in ("Sent by\nshop", "below the high watermark", "to shop at", "reader"):
        assert words in card


def test_cluster__shows_the_cut_and_who_leads(tab: Tab, url: str) -> None:
    page = tab(url + "#t=700&view=cluster")
    assert page.get_by_label("Link between brokers 1 and 3: cut.").count() == 1
    assert page.get_by_label("Link between brokers 1 and 2: healthy.").count() == 1
    assert page.get_by_label("Broker 1: up, leads 1 partition.").count() == 1


def test_client__belief_is_stale_until_it_has_asked_again(tab: Tab, url: str) -> None:
    page = tab(url + "#view=client")
    page.get_by_role("button", name="shop", exact=True).click()
    seen = []
    slider = page.get_by_role("slider", name="Moment shown")
    for at in range(1450, 1800, 5):
        slider.fill(str(at))
        page.evaluate("kclusterPage.draw(performance.now())")
        text = page.locator("tbody").inner_text()
        if "orders-0" in text:
            seen.append("stale" in text)
    assert (seen[0], True in seen, seen[-1]) == (False, True, False)


def test_client__the_old_leader_refuses_and_names_the_new_one(tab: Tab, url: str) -> None:
    page = tab(url + "#t=2660&view=client")
    page.get_by_role("button", name="shop", exact=True).click()
    refused = page.locator(".rung.refused").last
    assert "Produce orders-0" in (refused.text_content() or "")
    assert "NOT_LEADER_OR_FOLLOWER, leader is 3" in (refused.text_content() or "")


def test_groups__members_commits_and_transactions(tab: Tab, url: str) -> None:
    page = tab(url + "#t=1400&view=groups")
    text = page.get_by_role("region", name="Group readers").inner_text()
    for words in ("Stable", "orders: 0", "lag"):
        assert words in text
    assert "bank" in page.locator("main").inner_text()


def test_time__events_are_stepped_and_the_run_is_scrubbed(tab: Tab, url: str) -> None:
    page = tab(url + "#view=partition")
    page.get_by_label("Kind of event to step to").select_option("leader_elected")
    page.locator("main").click(position={"x": 5, "y": 5})
    page.keyboard.press("ArrowRight")
    newest = page.get_by_role("status")
    newest.get_by_text("epoch 1").first.wait_for()
    assert "leader" in label(page, 2)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("slider", name="Moment shown").fill("0")
    page.wait_for_function("kclusterPage.at === kclusterPage.began")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="To the end").click()
    page.get_by_role("region", name="Verdict").get_by_text("valid").first.wait_for()


@pytest.mark.parametrize(("width", "zoom"), [(1366, 1), (480, 1), (1366, 2)])
def test_page__holds_on_small_screens_and_zoomed(tab: Tab, url: str, width: int, zoom: int) -> None:
    page = tab(url + ELECTED, width=width, zoom=zoom)
    for view in ("partition", "cluster", "client", "groups"):
        page.get_by_role("tab", name=view.capitalize()).click()
        page.locator(f".view.{view}").wait_for()
        wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown, f"{view} scrolls sideways"
        overlaps = page.evaluate(
            """() => {
              const boxes = [...document.querySelectorAll(".node.broker")].map(
                (each) => each.getBoundingClientRect());
              return boxes.some((a, i) => boxes.slice(i + 1).some((b) => a.left < b.right
                && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
            }"""
        )
        assert not overlaps


def test_projector__text_is_large_and_named_parts_have_labels(tab: Tab, url: str) -> None:
    page = tab(url + ELECTED, color_scheme="dark", reduced_motion="reduce")
    page.keyboard.press("p")
    page.wait_for_function("document.body.classList.contains('projector')")
    assert page.evaluate("getComputedStyle(document.body).fontSize") == "24px"
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [role=button]")].filter(
          (each) => !(each.getAttribute("aria-label") || each.textContent.trim()
            || each.closest("label"))).length"""
    )
    assert nameless == 0
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Help").wait_for()


def test_page__a_view_gets_its_rows_and_code_when_it_is_opened_first(tab: Tab, url: str) -> None:
    page = tab(url)
    page.locator(".view.timeline").wait_for()
    scripts = "document.scripts.length"
    before = page.evaluate(scripts)
    assert page.evaluate("kclusterPage.model.clients.size") == 0
    page.get_by_role("tab", name="Client").click()
    page.locator("svg.ladder").wait_for()
    page.get_by_role("tab", name="Timeline").click()
    page.locator("#rows canvas").first.wait_for()
    page.keyboard.press("v")
    page.locator(".replica.leader svg.crown").wait_for()
    assert page.evaluate(scripts) == before + 1


LOSSES = """
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, name: shop, rate: 40/s, acks: ACKS}}
duration: 3s
steps:
  - {at: 300ms, isolate: 1, for: 500ms}
  - {at: 1500ms, kill: leader(orders-0)}
"""
GAPS = "$gaps.gapsOf(kclusterPage.model, kclusterPage.shownPartition).map(Object.values)"


@pytest.mark.parametrize("acks", ["all", "0"])
def test_gaps__the_page_finds_in_rows_what_the_recorder_has(
    tab: Tab, tmp_path: Path, acks: str
) -> None:
    scenario = Scenario.parse(LOSSES.replace("ACKS", acks))
    result = run_virtual(scenario, 1, lambda now_ms, of_ms: None)
    found = [list(structs.astuple(gap)) for gap in gaps_of(result.recorder, ("orders", 0))]
    assert [gap[0] for gap in found] == [1, 2]
    path = tmp_path / "losses.html"
    path.write_text(page_of_record(result.record()), "utf-8")
    page = tab(f"{path.as_uri()}#view=partition&t=2000")
    page.locator(".gapwords").wait_for()
    assert page.evaluate(GAPS) == found
