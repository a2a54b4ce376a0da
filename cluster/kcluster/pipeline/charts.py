"""The timeline of many runs as one HTML page with an SVG plot per table.

Owns: the drawing.  Never: computes figures (timeline.py), needs a network or another library.
Kafka: no counterpart.

A plot shows the highest MAX_BARS rows, so the page's size does not grow with the runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kcluster.pipeline.timeline import PERCENTS, Timeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

MAX_BARS: Final = 40
"""The number of rows in a plot; the Parquet file has all."""
_BAR_PX: Final = 22
_LABEL_PX: Final = 400
_DRAWN_PX: Final = 360
_WORDS_PX: Final = 300
_LABEL_LETTERS: Final = 62
_STYLE: Final = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;"
    "color:#222;background:#fff}h2{margin:2em 0 .4em;font-size:1.15em}"
    ".plot{overflow-x:auto}svg{min-width:900px;width:100%;height:auto}"
    "text{font-size:12px;fill:currentColor}"
    "rect{fill:#3b6ea5}.p95{fill:#85aad0}.p99{fill:#c9d9ea}.muted{color:#777;font-weight:normal}"
    ".key i{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}"
    "rect{fill:#8ab4e0}.p95{fill:#4f7096}.p99{fill:#33485f}}"
)
_KEY: Final = (
    '<small class="muted key"><i style="background:#3b6ea5"></i>p50'
    '<i style="background:#85aad0"></i>p95<i style="background:#c9d9ea"></i>p99</small>'
)

Bar = tuple[str, Sequence[float], str]
"""(label, lengths: one, or p50, p95 and p99, text after the bar)."""


def write_page(tables: Timeline, out: str | os.PathLike[str], runs: int) -> Path:
    """`timeline.html` in `out`; returns the file."""
    page = Path(out) / "timeline.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(page_of(tables, runs), "utf-8")
    return page


def page_of(tables: Timeline, runs: int) -> str:
    """The text of the page; at most MAX_BARS rows of each table are collected."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>kcluster: timeline</title>'
        f"<style>{_STYLE}</style><h1>{_runs(runs)}</h1>"
        + "".join((*_of_partitions(tables), *_of_clients(tables)))
        + "</html>\n"
    )


def _of_partitions(tables: Timeline) -> list[str]:
    """Plots about partitions: windows, failovers, ISR churn."""
    from pyspark.sql import functions as F

    windows = tables.windows.groupBy("kind", "topic", "partition", "cause").agg(
        F.sum("duration_ms").alias("ms"),
        F.count("*").alias("windows"),
        F.count_distinct("run").alias("runs"),
    )
    churn = tables.isr.groupBy("topic", "partition").agg(
        F.sum("shrinks").alias("shrinks"),
        F.sum("expands").alias("expands"),
        F.sum(F.col("shrinks") + F.col("expands")).alias("changes"),
    )
    return [
        _plot(
            "Unavailable, by partition and cause",
            "ms in all runs",
            (
                (
                    f"{row['kind']} {row['topic']}-{row['partition']}: {row['cause']}",
                    [row["ms"]],
                    f"{row['ms']:,} ms: {row['windows']:,} windows in {_runs(row['runs'])}",
                )
                for row in _highest(windows, "ms")
            ),
        ),
        _plot("Failover", "ms since the leader became unreachable", _of_failovers(tables), _KEY),
        _plot(
            "ISR churn",
            "changes in all runs",
            (
                (
                    f"{row['topic']}-{row['partition']}",
                    [row["changes"]],
                    f"{row['shrinks']:,} shrinks, {row['expands']:,} expands",
                )
                for row in _highest(churn, "changes")
            ),
        ),
    ]


def _of_clients(tables: Timeline) -> list[str]:
    """Plots about clients: errors, latencies, request times."""
    return [
        _plot(
            "Errors, by API and client",
            "count in all runs",
            (
                (
                    f"{row['api']} {row['client']}: {row['error']}",
                    [row["times"]],
                    f"{row['times']:,} in {_runs(row['runs'])} ({row['per_second']:.2f}/s)",
                )
                for row in _highest(tables.errors, "times")
            ),
        ),
        _plot(
            "From send to ack",
            "ms",
            (
                (
                    f"{row['run']}: {row['producer']}, acks={row['acks']}",
                    _percents(row),
                    f"{_words(row)} of {row['acked']:,}",
                )
                for row in _highest(tables.latencies, "p99")
            ),
            _KEY,
        ),
        _plot(
            "Requests, from arrival to answer",
            "ms; Fetch includes its wait for records",
            (
                (
                    f"{row['api']} of {row['client']}",
                    _percents(row),
                    f"{_words(row)} of {row['requests']:,}",
                )
                for row in _highest(tables.requests, "p99")
            ),
            _KEY,
        ),
    ]


def _highest(table: DataFrame, column: str) -> Sequence[Row]:
    from pyspark.sql import functions as F

    return table.orderBy(F.desc(column)).limit(MAX_BARS).collect()


def _of_failovers(tables: Timeline) -> Iterable[Bar]:
    rows = {row["step"]: row for row in tables.failover_times.collect()}
    for step in ("noticed", "elected", "acked"):
        row = rows.get(step)
        if row is not None:
            yield step, _percents(row), f"{_words(row)} of {row['failovers']:,}"


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


def _percents(row: Row) -> list[float]:
    return [row[f"p{percent}"] for percent in PERCENTS]


def _words(row: Row) -> str:
    return f"{' / '.join(f'{high:,.0f}' for high in _percents(row))}, max {row['max']:,}"


def _plot(title: str, unit: str, bars: Iterable[Bar], key: str = "") -> str:
    drawn = list(bars)
    cut = f", the {MAX_BARS} highest" if len(drawn) == MAX_BARS else ""
    head = f'<h2>{escape(title)} <small class="muted">{escape(unit)}{cut}</small> {key}</h2>'
    if not drawn:
        return f'{head}<p class="muted">none</p>'
    most = max(max(heights) for _, heights, _ in drawn) or 1
    rows = [_bar(at * _BAR_PX, bar, most) for at, bar in enumerate(drawn)]
    size = f"0 0 {_LABEL_PX + _DRAWN_PX + _WORDS_PX} {len(drawn) * _BAR_PX + 4}"
    return f'{head}<div class="plot"><svg viewBox="{size}" role="img">{"".join(rows)}</svg></div>'


def _bar(y: int, bar: Bar, most: float) -> str:
    label, heights, words = bar
    short = label if len(label) <= _LABEL_LETTERS else f"{label[: _LABEL_LETTERS - 1]}…"
    classes = [""] if len(heights) == 1 else [f' class="p{percent}"' for percent in PERCENTS]
    rects = "".join(
        f'<rect x="{_LABEL_PX}" y="{y + 3}" width="{max(high / most * _DRAWN_PX, 1):.1f}"'
        f' height="{_BAR_PX - 6}"{class_}/>'
        for high, class_ in reversed(list(zip(heights, classes, strict=True)))
    )
    end = _LABEL_PX + max(heights) / most * _DRAWN_PX + 8
    return (
        f"<g><title>{escape(label)}: {escape(words)}</title>"
        f'<text x="{_LABEL_PX - 8}" y="{y + 15}" text-anchor="end">{escape(short)}</text>'
        f'{rects}<text x="{end:.1f}" y="{y + 15}">{escape(words)}</text></g>'
    )
