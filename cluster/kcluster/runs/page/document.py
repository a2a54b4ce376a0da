"""The page of a cluster or of a run: one HTML file with its style and its script inside.

Owns: assembling it, with escaping.  Never: serves it (web/api/), knows what is drawn: the modules
beside this file draw the rows of a stream or a run directory.  Kafka: no counterpart.

The served page has no data: it requests rows under its own address.  A page of a run carries them
(carried.py), and needs no server; it has no code for what only a cluster can be asked.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kcluster.json_types import JsonObject
from kcluster.runs.page.bundle import bundle
from kcluster.runs.page.carried import packed, packed_run
from kcluster.runs.record import RunRecord

FOLDER: Final = Path(__file__).resolve().parent
SERVED_STYLE: Final = ("page.css", "moments.css", "controls.css")
FIRST_STYLE: Final = ("page.css", "views/timeline.css")
LATER_STYLE: Final = ("moments.css",)
_MEANS_NOTHING: Final = re.compile(r"/\*.*?\*/|(?<=[{};,])\s+|\s+(?=[{}])", re.S)
PACKED: Final = '<script id="{}" type="text/plain">{}</script>\n'
"""An element with data, style or code that carried.js unpacks."""


class _Scripts(NamedTuple):
    """What runs on a page.  `packed`: the scripts that the first one inserts, by entry."""

    first: str
    packed: dict[str, str]
    hashes: str


@cache
def page_html(cluster_id: str, menu: str = "[]") -> str:
    """The page of a cluster; it sends its requests to its own address.  `menu`: the actions that
    it offers, as JSON (actions/menu.py)."""
    return _page(f"{cluster_id} - kcluster", _scripts("main"), SERVED_STYLE, {}, menu)


def page_of_record(record: RunRecord, lessons: Sequence[JsonObject] = ()) -> str:
    """The page of a finished run; `#t=1200&view=cluster` in its address opens it 1.2 s after the
    start of the run, in this view.  `lessons`: the cards of the class that watched the run, each
    with the moment `at` from which it was shown (web/lesson_card.py)."""
    carried, later = packed_run(record, lessons)
    title = f"{record.info.name}: {record.info.outcome}"
    data = {
        "carried": carried,
        "later": later,
        "moments_style": packed(_style(*LATER_STYLE).encode()),
    }
    more = ("secured",) if record.logins or record.credentials else ()
    return _page(title, _scripts("open", "recorded", "moments", *more), FIRST_STYLE, data)


def _page(
    title: str, scripts: _Scripts, style: Sequence[str], data: Mapping[str, str], menu: str = "[]"
) -> str:
    """The HTML of a page.  `style`: its files; `data`: what a run's page unpacks, by element."""
    elements = {**data, **scripts.packed}.items()
    parts = {
        "title": html.escape(title),
        "packed": "".join(PACKED.format(*each) for each in elements),
        "menu": menu.replace("<", "\\u003c"),  # so that no text in it ends the element
        "style": _style(*style),
        "script": scripts.first,
        "script_hashes": scripts.hashes,
    }
    # One pass: a placeholder inside a value is not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda at: parts[at[1]], _own("page.html"))


@cache
def _scripts(*entries: str) -> _Scripts:
    """The scripts of these entries, in the order in which they run."""
    files = [f"{entry}.js" for entry in entries]
    first, *rest = (
        "\n" + bundle(FOLDER, file, after=files[:place]) for place, file in enumerate(files)
    )
    hashes = " ".join(map(_hash, (first, *rest)))
    inserted = {
        entry: packed(each.encode(), zlib.Z_BEST_COMPRESSION)
        for entry, each in zip(entries[1:], rest, strict=True)
    }
    return _Scripts(first, inserted, hashes)


def _hash(script: str) -> str:
    """The hash of a script, as a content security policy names it."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _style(*names: str) -> str:
    """Files of style as one, without comments and without spaces that mean nothing."""
    return _MEANS_NOTHING.sub("", "".join(map(_own, names)))


@cache
def _own(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
