"""A browser for the tests of the live page: Playwright with the system's Chromium.

Owns: the browser, one for all tests of a worker; pages that must not fail.  Never: knows the page.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page: `tab(url, width=1366, height=768, zoom=1)`.  An error in one fails the test."""
    errors: list[str] = []
    contexts = []

    def opened(
        url: str, width: int = 1366, height: int = 768, zoom: int = 1, **options: Any
    ) -> Page:
        options |= {
            "viewport": {"width": width // zoom, "height": height // zoom},
            "device_scale_factor": zoom,
        }
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(40_000)  # many tests may run beside it
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
