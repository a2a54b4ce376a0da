"""The timeline of many runs as one HTML page: a plot for each table, drawn as SVG.

Owns: the drawing.  Never: computes (timeline.py), needs a network or another library.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from cluster.pipeline.timeline import PERCENTS, Timeline

MAX_BARS: Final = 40
"""A plot has the highest so many; its Parquet has all."""
_BAR_PX: Final = 20
_LABEL_PX: Final = 420
_WIDTH_PX: Final = 460
_STYLE: Final = (
    "body{font:14px system-ui,sans-serif;margin:2em auto;max-width:1000px;color:#222}"
    "text{font-size:12px}rect{fill:#3b6ea5}.muted{color:#777}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}text{fill:#ddd}}"
)

Bar = tuple[str, float, str]
"""(label, height, words behind it)."""


def write_page(found: Timeline, out: str | os.PathLike[str], runs: int) -> Path:
    """`timeline.html` in `out`; returns the file."""
    page = Path(out) / "timeline.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(page_of(found, runs), "utf-8")
    return page


def page_of(found: Timeline, runs: int) -> str:
    """The page; collects at most MAX_BARS rows of each table."""
    from pyspark.sql import functions as F

    windows = found.windows.groupBy("kind", "topic", "partition", "cause").agg(
        F.sum("duration_ms").alias("ms"), F.count("*").alias("windows")
    )
    churn = found.isr.withColumn("changes", F.col("shrinks") + F.col("expands"))
    parts = [
        _plot(
            "Unavailable, by partition and cause", "ms in all runs",
            (
                (f"{row['kind']} {row['topic']}-{row['partition']}: {row['cause']}", row["ms"],
                 f"{row['ms']:,} ms in {row['windows']:,} windows")
                for row in _highest(windows, "ms")
            ),
        ),
        _plot("Failover", "ms after the leader went down", _of_failovers(found)),
        _plot(
            "Errors, by API and client", "times",
            (
                (f"{row['api']} {row['client']}: {row['error']}", row["times"],
                 f"{row['times']:,} ({row['per_second']:.2f}/s)")
                for row in _highest(found.errors, "times")
            ),
        ),
        _plot(
            "ISR churn", "changes",
            (
                (f"{row['run']}: {row['topic']}-{row['partition']}", row["changes"],
                 f"{row['shrinks']} shrinks, {row['expands']} expands")
                for row in _highest(churn, "changes")
            ),
        ),
        _plot(
            "Latency of acked sends, p99", "ms",
            (
                (f"{row['run']}: {row['producer']}", row["p99"],
                 f"p50 {row['p50']:.0f}, p95 {row['p95']:.0f}, p99 {row['p99']:.0f}, max"
                 f" {row['max']:,}")
                for row in _highest(found.latencies, "p99")
            ),
        ),
    ]  # fmt: skip
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>kcluster: timeline</title>'
        f"<style>{_STYLE}</style><h1>{runs:,} run{'' if runs == 1 else 's'}</h1>"
        + "".join(parts)
        + "</html>\n"
    )


def _highest(table: Any, column: str) -> Sequence[Any]:
    from pyspark.sql import functions as F

    rows: Sequence[Any] = table.orderBy(F.desc(column)).limit(MAX_BARS).collect()
    return rows


def _of_failovers(found: Timeline) -> Iterable[Bar]:
    rows = {row["step"]: row for row in found.failover_times.collect()}
    for step in ("noticed", "elected", "acked"):
        row = rows.get(step)
        if row is not None:
            for percent in PERCENTS:
                high = row[f"p{percent}"]
                text = f"{high:,.0f} ms of {row['failovers']:,} failovers"
                yield f"{step}, p{percent}", high, text


def _plot(title: str, unit: str, bars: Iterable[Bar]) -> str:
    drawn = list(bars)
    head = f'<h2>{escape(title)} <small class="muted">{escape(unit)}</small></h2>'
    if not drawn:
        return f'{head}<p class="muted">none</p>'
    most = max(high for _, high, _ in drawn) or 1
    rows = []
    for at, (label, high, words) in enumerate(drawn):
        y, width = at * _BAR_PX, high / most * (_WIDTH_PX - 200)
        short = label if len(label) <= 66 else f"{label[:65]}…"
        rows.append(
            f"<g><title>{escape(label)}</title>"
            f'<text x="{_LABEL_PX - 6}" y="{y + 14}" text-anchor="end">{escape(short)}</text>'
            f'<rect x="{_LABEL_PX}" y="{y + 3}" width="{width:.1f}" height="{_BAR_PX - 6}"/>'
            f'<text x="{_LABEL_PX + width + 6:.1f}" y="{y + 14}">{escape(words)}</text></g>'
        )
    size = f'width="{_LABEL_PX + _WIDTH_PX}" height="{len(drawn) * _BAR_PX + 4}"'
    return f"{head}<svg {size}>{''.join(rows)}</svg>"
