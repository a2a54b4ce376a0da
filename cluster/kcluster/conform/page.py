"""The page of a conformance report: one HTML file that needs no server.

Owns: its layout.  Never: decides anything; the words are those of words.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from kcluster.conform.findings import ApiCount, ConformReport, ValueDifference
from kcluster.conform.words import count_text, difference_text, summary_text

_STYLE: Final = """
:root { color-scheme: light dark; --text: #222; --line: #ccc; --panel: #f4f4f4; --back: #fff;
  --same: #2a7; --other: #c43; --untried: #bbb; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe5ec; --line: #3a434f; --panel: #161b22; --back: #0f1318; --untried: #4a5563; }
}
body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em;
  color: var(--text); background: var(--back); }
p { max-width: 90ch; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums;
  width: 100%; }
td, th { padding: .3em .55em; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
td.number, th.number { text-align: right; }
tr:hover td { background: var(--panel); }
code { overflow-wrap: anywhere; }
details { margin: .2em 0; }
summary { cursor: pointer; }
.bar { display: flex; height: .8em; min-width: 8em; }
.bar i { display: block; }
.same { background: var(--same); }
.other { background: var(--other); }
.untried { background: var(--untried); }
"""


def page_of(report: ConformReport) -> str:
    """The whole page."""
    cluster = report.cluster
    brokers = count_text(len(cluster.brokers), "broker")
    title = f"{report.bootstrap} beside Apache Kafka {report.against}"
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(summary_text(report))}.</p>",
        f"<p>{brokers}, cluster {escape(cluster.cluster_id or 'without an id')};"
        f" asked by kcluster {escape(report.kcluster)}.</p>",
        "<h2>By API</h2>",
        *_apis(report.apis),
        "<h2>Differences</h2>",
        *(_differences(report) or ["<p>None.</p>"]),
        "<h2>Not tried</h2>",
        *_not_tried(report),
    ]
    return "\n".join(parts) + "\n"


def _apis(apis: Iterable[ApiCount]) -> Iterator[str]:
    yield (
        '<table><tr><th>API<th>listed<th class="number">as Kafka<th class="number">other'
        '<th class="number">not tried<th>'
    )
    for one in apis:
        bar = "".join(
            f'<i class="{kind}" style="flex:{count}"></i>'
            for kind, count in (
                ("same", one.same), ("other", one.different), ("untried", one.untried),
            )
            if count
        )  # fmt: skip
        numbers = "".join(
            f'<td class="number">{count:,}' for count in (one.same, one.different, one.untried)
        )
        listed = f"v{one.listed}" if one.listed else "no"
        yield f'<tr><td>{escape(one.api)}<td>{listed}{numbers}<td><div class="bar">{bar}</div>'
    yield "</table>"


def _differences(report: ConformReport) -> list[str]:
    by_api: dict[str, list[ValueDifference]] = {}
    for one in report.differences:
        by_api.setdefault(one.api, []).append(one)
    return [
        line
        for api, found in by_api.items()
        for line in (
            f"<h3>{escape(api)}</h3>", *(_difference(one, report.against) for one in found),
        )
    ]  # fmt: skip


def _difference(one: ValueDifference, against: str) -> str:
    cases = "".join(f"<li>{escape(case)}" for case in one.cases)
    text = f"v{one.versions}: {difference_text(one, against)}"
    number = count_text(len(one.cases), "case")
    return (
        f"<details><summary><code>{escape(text)}</code> ({number})</summary>"
        f"<ul>{cases}</ul></details>"
    )


def _not_tried(report: ConformReport) -> Iterator[str]:
    if not report.not_tried:
        yield "<p>Everything was tried.</p>"
    for row in report.not_tried:
        cases = "".join(f"<li>{escape(case)}" for case in row.cases)
        number = count_text(len(row.cases), "case")
        head = f"{escape(row.reason)} ({number})"
        yield f"<details><summary>{head}</summary><ul>{cases}</ul></details>"
