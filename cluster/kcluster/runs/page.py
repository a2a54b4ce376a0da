"""The timeline of a run as one self-contained HTML file.

Owns: assembling the page from its template, style, script and data, with escaping.
Never: knows what is drawn (page_data.py prepares it, html/*.js draw it).
Kafka: no counterpart.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from kcluster.runs.page_data import values_of
from kcluster.runs.record import RunRecord

FOLDER: Final = Path(__file__).parent / "html"
SCRIPTS: Final = (
    "model.js",
    "paint.js",
    "tooltips.js",
    "view.js",
    "fit.js",
    "lanes.js",
    "clients.js",
    "applications.js",
    "sidebar.js",
    "main.js",
)
"""Concatenated in this order."""


def page_of(record: RunRecord) -> str:
    """The timeline of a run, as a whole HTML document."""
    parts = {
        "title": html.escape(f"{record.info.name}: {record.info.outcome}"),
        "style": _own("page.css"),
        "script": "".join(_own(name) for name in SCRIPTS),
        "data": json_in_html(values_of(record)),
    }
    # One pass: a placeholder inside a value is not replaced.
    return re.sub(r"\{\{(title|style|script|data)\}\}", lambda at: parts[at[1]], _own("page.html"))


def json_in_html(values: object) -> str:
    """JSON for a <script> element: without `<`, so that nothing in it can end the element."""
    text = msgspec.json.encode(values).decode()
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _own(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
