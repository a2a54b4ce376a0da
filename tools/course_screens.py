"""Take the screenshots of docs/course: what the class sees at each moment of a lesson's script.

    python tools/course_screens.py                     # those of the notes for teachers
    python tools/course_screens.py --look DIR          # each at 480, 1366 and 1920, light and dark

Owns: the sizes, the files.  Never: decides what is seen (the lessons' scripts do,
cluster/kcluster/learn/lessons).  It needs Playwright, Chromium and Pillow;
tests/learn/test_pages.py fails if a screenshot is missing.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

from kcluster.learn.course import all_lessons
from kcluster.learn.pages import screen_name
from kcluster.learn.playing import play_lesson
from kcluster.runs.page.document import page_of_record

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from kcluster.learn.lesson import Sight

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "course"
SIZE: Final = (1100, 640)
LOOKED_AT: Final = ((480, 900), (1366, 768), (1920, 1080))
COLOURS: Final = 64
"""The colours of a screenshot; few, so that the files stay small."""


def main(look: Path | None) -> None:
    """Take all screenshots."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        for lesson in all_lessons():
            file = Path(scratch) / f"{lesson.number}.html"
            file.write_text(page_of_record(play_lesson(lesson).result.record()), "utf-8")
            client = next(filter(None, (part.requests_of for part in lesson.parts)), "")
            for sight in lesson.keys.script:
                name = screen_name(lesson, sight)
                if look is None:
                    _take(page, file, sight, client, SIZE, "light", FOLDER / name)
                    continue
                for size in LOOKED_AT:
                    for scheme in ("light", "dark"):
                        stem = Path(name).stem
                        target = look / f"{stem}-{size[0]}-{scheme}.png"
                        _take(page, file, sight, client, size, scheme, target)
        browser.close()


def _take(
    page: Page,
    file: Path,
    sight: Sight,
    client: str,
    size: tuple[int, int],
    scheme: str,
    target: Path,
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto("about:blank")
    page.goto(f"{file.as_uri()}#t={sight.at_ms}&view={sight.view}")
    page.locator("body.drawn").wait_for()
    page.evaluate("kclusterPage.ready")
    if sight.view == "client" and client:
        page.get_by_role("button", name=client, exact=True).click()
    page.wait_for_timeout(200)  # what moves has come to rest
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    # The median cut, Pillow's default, gives few pixels of a strong colour, such as the crown,
    # another colour.
    shot = shot.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    target.parent.mkdir(parents=True, exist_ok=True)
    shot.save(target, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[2]) if sys.argv[1:2] == ["--look"] else None)
