"""A run's timeline as one HTML file that needs nothing else, not even a network.

Owns: putting page, style, script and the run's values together, and escaping them.
Never: knows what is drawn (timeline.py prepares it, html/*.js draw it).
Kafka: no counterpart.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from kcluster.runs.record import RunRecord
from kcluster.runs.timeline import values_of

FOLDER: Final = Path(__file__).parent / "html"
SCRIPTS: Final = (
    "model.js",
    "paint.js",
    "words.js",
    "view.js",
    "lanes.js",
    "clients.js",
    "side.js",
    "main.js",
)
"""In this order they are one script."""


def page_of(record: RunRecord) -> str:
    """The timeline of a run, as a whole HTML document."""
    parts = {
        "title": html.escape(f"{record.info.name}: {record.info.outcome}"),
        "style": _own("page.css"),
        "script": "".join(_own(name) for name in SCRIPTS),
        "data": json_in_html(values_of(record)),
    }
    # In one go: what a value holds is never taken for a place to fill.
    return re.sub(r"\{\{(title|style|script|data)\}\}", lambda at: parts[at[1]], _own("page.html"))


def json_in_html(values: object) -> str:
    """JSON that can stand inside <script>: no `<`, so that nothing in it ends the element."""
    text = msgspec.json.encode(values).decode()
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _own(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
