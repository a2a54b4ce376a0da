"""The live page of a cluster: one HTML file with its style and its script inside.

Owns: assembling it, with escaping.  Never: serves it (web/api/), knows what is drawn: the scripts
beside this file draw rows, as the stream and run directories have them.
Kafka: no counterpart.

The served page has no data: it asks for rows under its own address.  A page of a record carries
them, and needs no server: lessons' pictures are made of such pages.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from kcluster.runs.note_values import notes_values
from kcluster.runs.page import json_in_html
from kcluster.runs.record import RunRecord
from kcluster.web.page.bundle import bundle

FOLDER: Final = Path(__file__).resolve().parent
SHOWN: Final = (
    "notes",
    "leaders",
    "moves",
    "appends",
    "epochs",
    "exchanges",
    "beliefs",
    "groups",
    "transaction_states",
    "commits",
)
"""The fields of RunRecord that the page draws."""


@cache
def page_html(cluster_id: str) -> str:
    """The page of a cluster, which it asks under the page's own address."""
    return _page(f"{cluster_id} - kcluster", None)


def page_of_record(record: RunRecord) -> str:
    """A page that carries a finished run; `#t=1200&view=cluster` in its address opens it 1.2 s
    after the start of the run, in this view."""
    rows: dict[str, list[Any]] = {name: getattr(record, name) for name in SHOWN}
    rows["notes"] = notes_values(record.notes, record.info.began_ms)
    verdict = record.verdict or None
    info = record.info
    carried = {"rows": rows, "until_ms": info.ended_ms, "verdict": verdict}
    return _page(f"{info.name}: {info.outcome}", carried)


def _page(title: str, record: Any) -> str:
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": html.escape(title),
        "style": _own("page.css"),
        "script": script,
        "script_hash": f"'sha256-{digest}'",
        "record": json_in_html(record),
    }
    # One pass: a placeholder inside a value is not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda at: parts[at[1]], _own("page.html"))


@cache
def _script() -> str:
    return "\n" + bundle(FOLDER)


def _own(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
