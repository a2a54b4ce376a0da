"""Pictures for the docs: of the live page in a run in virtual time, and of a run directory's page.

Owns: which moments, which test.  Never: draws (the pages do).  Run it by hand where Playwright and
Chromium are: python tools/page_pictures.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).parent.parent
PLACE: Final = ROOT / "docs" / "static"

MOMENTS: Final = {
    "page-partition": "#t=1650&view=partition",
    "page-cluster": "#t=700&view=cluster",
    "page-client": "#t=2660&view=client",
}
"""By name of the picture: where the page is opened."""

RUSH: Final = ("examples/billing", "-k", "TakesAll", "--kcluster-seed", "17")
"""The test in the guide of virtual time, with the seed that fails."""


def main() -> None:
    """Write docs/static/page-*.png."""
    sys.path[:0] = [str(ROOT), str(ROOT / "cluster")]
    from kcluster.runs.page.document import page_of_record
    from tests.runs.page.stage import failover_run

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        file = Path(place, "run.html")
        file.write_text(page_of_record(failover_run()), "utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1040, "height": 560}, color_scheme="light")
        for name, moment in MOMENTS.items():
            picture(page, file.as_uri() + moment, PLACE / f"{name}.png")
        page.set_viewport_size({"width": 1040, "height": 840})
        page.goto(page_of_rush(place).as_uri())
        page.locator(".view").wait_for()
        page.screenshot(path=PLACE / "page-rush.png")
        browser.close()


def page_of_rush(place: str) -> Path:
    """The page of the test's run directory."""
    examples = Path(place, "examples")
    shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns(".*", "__*"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "cluster")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *RUSH]
    subprocess.run(command, cwd=place, env=environment, check=False, stdout=subprocess.DEVNULL)
    return next(examples.rglob("timeline.html"))


def picture(page: Page, url: str, path: Path) -> None:
    """One picture, of a page that is loaded again: its address alone would not do that."""
    page.goto("about:blank")
    page.goto(url)
    if "view=client" in url:
        page.get_by_role("button", name="shop", exact=True).click()
    page.locator(".view").wait_for()
    page.screenshot(path=path)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
