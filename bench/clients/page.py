"""The live page in Chromium: python -m bench.clients.page VIEW LOAD --seconds N.

Owns: the browser.  Never: knows the load (bench/page_load.py does).  Prints the frames per second,
the time in long tasks, and the CPU time of a frame.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Final

from bench.page_load import LARGE, SMALL, frame_cpu_ms, watch
from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import RunInfo, RunRecord

LOADS: Final = {"small": SMALL, "large": LARGE}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("view", choices=("partition", "cluster"))
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        raise SystemExit("there is no Chromium (Debian's package: chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SystemExit("there is no Playwright: pip install playwright") from None
    load = LOADS[options.load]
    with tempfile.TemporaryDirectory(prefix="kcb") as folder, sync_playwright() as playwright:
        file = Path(folder) / "empty.html"
        file.write_text(page_of_record(RunRecord(RunInfo("large", "live", 1, 0, 0))), "utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1366, "height": 768})

        def open_page() -> None:
            page.goto("about:blank")
            page.goto(file.as_uri())
            page.wait_for_function("window.kclusterPage")

        open_page()
        watched = watch(page, load, options.view, options.seconds)
        open_page()
        cpu_ms = frame_cpu_ms(page, load, options.view)
        browser.close()
    found = {"frames_per_s": watched.frames_per_s, "long_ms": watched.long_ms, "cpu_ms": cpu_ms}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
