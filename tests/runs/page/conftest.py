"""A browser for the tests of the live page: Playwright with the system's Chromium.

Owns: the browser and its pages, shared by all tests of a worker; pages must not fail.  Never: knows
the page.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Error, Page

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A headless Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright here")
    if CHROMIUM is None:
        pytest.skip("no Chromium here (Debian's package: chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(chromium: Browser) -> Callable[[int], Page]:
    """The page at a zoom, empty.  Tests take turns on it: a new one is a new process, which takes
    half a second of CPU."""

    @cache
    def page(zoom: int) -> Page:
        page = chromium.new_context(device_scale_factor=zoom).new_page()
        page.set_default_timeout(40_000)  # many tests may run beside it
        return page

    return page


@pytest.fixture
def tab(pages: Callable[[int], Page]) -> Iterator[Callable[..., Page]]:
    """Opens a page: `tab(url, width=1366, height=768, zoom=1)`; the one that was open before is
    left.  An error in one fails the test."""
    errors: list[str] = []
    shown: list[Page] = []

    def note_error(error: Error) -> None:
        errors.append(str(error))

    def leave() -> None:
        for page in shown:
            page.goto("about:blank")
            page.remove_listener("pageerror", note_error)
        shown.clear()

    def opened(
        url: str,
        width: int = 1366,
        height: int = 768,
        zoom: int = 1,
        color_scheme: Literal["light", "dark"] = "light",
        reduced_motion: Literal["no-preference", "reduce"] = "no-preference",
    ) -> Page:
        leave()
        page = pages(zoom)
        shown.append(page)
        page.on("pageerror", note_error)
        page.set_viewport_size({"width": width // zoom, "height": height // zoom})
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        page.goto(url)
        page.wait_for_function("window.kclusterPage")
        return page

    yield opened
    leave()
    assert errors == []
