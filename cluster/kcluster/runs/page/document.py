"""The page of a cluster or of a run: one HTML file with its style and its script inside.

Owns: assembling it, with escaping.  Never: serves it (web/api/), knows what is drawn: the modules
beside this file draw the rows of a stream or a run directory.  Kafka: no counterpart.

The served page has no data: it requests rows under its own address.  A page of a run carries them
(carried.py), and needs no server.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from pathlib import Path
from typing import Final

from kcluster.runs.page.bundle import bundle
from kcluster.runs.page.carried import carried_values, later_tables, packed
from kcluster.runs.record import RunRecord

FOLDER: Final = Path(__file__).resolve().parent


@cache
def page_html(cluster_id: str, menu: str = "[]") -> str:
    """The page of a cluster; it sends its requests to its own address.  `menu`: the actions that
    it offers, as JSON (actions/menu.py)."""
    return _page(f"{cluster_id} - kcluster", menu=menu)


def page_of_record(record: RunRecord) -> str:
    """The page of a finished run; `#t=1200&view=cluster` in its address opens it 1.2 s after the
    start of the run, in this view."""
    title = f"{record.info.name}: {record.info.outcome}"
    return _page(title, packed(carried_values(record)), packed(later_tables(record)))


def _page(title: str, carried: str = "", later: str = "", menu: str = "[]") -> str:
    """The HTML of a page.  `carried`, `later`: its data, of letters, digits, +, / and = only;
    empty: none."""
    parts = {
        "title": html.escape(title),
        "carried": carried,
        "later": later,
        "menu": menu.replace("<", "\\u003c"),  # so that no text in it ends the element
        **_own_parts(),
    }
    # One pass: a placeholder inside a value is not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda at: parts[at[1]], _own("page.html"))


@cache
def _own_parts() -> dict[str, str]:
    script = "\n" + bundle(FOLDER)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = "".join(path.read_text("utf-8") for path in sorted(FOLDER.rglob("*.css")))
    return {"style": style, "script": script, "script_hash": f"'sha256-{digest}'"}


@cache
def _own(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
