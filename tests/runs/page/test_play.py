"""The page of a run in virtual time, as `kcluster play` serves it: any moment is forked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from kcluster.scenario.play.played import PlayedRun
from kcluster.web.held import HeldCluster
from tests.runs.page.stage import failover_result
from tests.web.api_client import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long, pytest.mark.timeout_s(180)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as (server, _):
        run = PlayedRun(failover_result())
        server.clusters.add(HeldCluster("play", run, stop=lambda: None))
        yield server.page_url("play")


def test_play__opens_at_the_start_and_runs(tab: Tab, url: str) -> None:
    page = tab(url)
    page.locator(".replica").first.wait_for()
    assert page.evaluate("kclusterPage.at === kclusterPage.began")
    page.keyboard.press("Space")
    page.locator(".replica.leader .cell").nth(3).wait_for()
    page.keyboard.press("Space")
    page.get_by_role("button", name="To the end").click()
    page.get_by_role("region", name="Verdict").wait_for()


@pytest.mark.parametrize(("width", "zoom"), [(1366, 1), (480, 1), (1366, 2)])
def test_play__both_futures_of_a_moment(tab: Tab, url: str, width: int, zoom: int) -> None:
    page = tab(url + "#t=1000", width=width, zoom=zoom)
    page.locator("main [data-broker='1']").click()
    page.get_by_role("menuitem", name="What if: Power off").click()
    page.get_by_label("How long").select_option("5s")
    page.get_by_role("button", name="Play both futures").click()
    here = page.get_by_role("region", name="With nothing more done")
    there = page.get_by_role("region", name="With kill: {brokers: 1, how: power}")
    there.get_by_role("heading", name="valid").wait_for(timeout=60_000)
    assert "valid" in here.inner_text()
    page.locator("#fork-slider").fill(str(page.evaluate("kclusterPage.controls.open.moment + 250")))
    there.get_by_text("down (power lost)").wait_for()
    assert "down" not in here.locator(".replicas").inner_text()
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown


def test_play__the_same_past_with_another_value_is_played_beside_it(tab: Tab, url: str) -> None:
    page = tab(url + "#t=2100")
    page.locator(".gapwords").wait_for()
    known = page.locator(".gapwords").inner_text()
    page.keyboard.press("k")
    panel = page.get_by_role("region", name="Other values")
    slider = panel.get_by_role("slider", name="broker.session.timeout.ms")
    slider.focus()
    page.keyboard.press("End")
    said = panel.get_by_role("status")
    said.get_by_text(
        "With broker.session.timeout.ms=180, no client can write to orders-0"
    ).wait_for()
    was, now = panel.locator("[data-band]").all_inner_texts()
    parts = was.split("\n")[-1]
    assert parts in known, "the gap that the page found in the rows of the run"
    assert parts not in now
    wide = panel.locator("[data-band] svg").evaluate_all(
        "bars => bars.map((bar) => bar.lastChild.getBoundingClientRect().right)"
    )
    assert wide[0] < wide[1], "on one axis"
    panel.get_by_role("combobox", name="acks").select_option("0")
    said.get_by_text("and acks=0").wait_for()
    panel.get_by_role("button", name="As it was").click()
    panel.locator("input[aria-valuetext='90 ms']").wait_for()
    assert panel.locator("[data-band]").count() == 0
