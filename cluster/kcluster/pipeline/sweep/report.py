"""A sweep told: markdown, one HTML page, the seeds of every loss with what plays them again.

Owns: words and files.  Never: sums (summary.py), draws (plots.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import base64
import csv
import html
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from kcluster.pipeline.sweep.cells import text_of
from kcluster.pipeline.sweep.estimates import MS_A_YEAR
from kcluster.pipeline.sweep.figures import figures_of, write_figures
from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.plots import can_draw, write_plots
from kcluster.pipeline.sweep.summary import PERCENTS, Pair, Summed

KEPT: Final = 5
"""Scenario files are written for so many losses of a cell; all are in losses.csv."""
_STYLE: Final = (
    "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;"
    "color:#222}div{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:"
    "tabular-nums}td,th{padding:.3em .7em;border-bottom:1px solid #ccc;text-align:right;"
    "vertical-align:bottom}td:nth-child(2),th:nth-child(2){text-align:left}tr:hover td"
    "{background:#f4f4f4}img{max-width:100%}pre{background:#f4f4f4;padding:.6em;overflow-x:auto}"
    ".losses td:last-child,.losses th:last-child{text-align:left;font-family:monospace}"
)

KINDS: Final = ("writes", "reads")
DAY_MS: Final = 86_400_000
MTBF_MS: Final = MS_A_YEAR
"""Of a broker, for the figures of a year, unless another is given."""
LOSS_HEAD: Final = ("cell", "settings", "seed", "lost", "replay")

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""(head, rows)."""


class Loss(Struct, frozen=True):
    """A run that lost acked records; `at` is its cell's index."""

    at: int
    settings: str
    seed: int
    lost: int
    replay: str

    def row(self) -> Sequence[str]:
        return str(self.at + 1), self.settings, str(self.seed), f"{self.lost:,}", self.replay


class SweepReport(Struct, frozen=True):
    """What a report is made of."""

    grid: Grid
    sums: Sequence[Summed]
    command: str
    mtbf_ms: float
    losses: int
    """Runs that lost something, in all."""
    shown: Sequence[Loss]
    """The first KEPT of each cell."""
    plots: Sequence[Path]


def durability(grid: Grid, sums: Sequence[Summed], mtbf_ms: float = MTBF_MS) -> Table:
    """What was lost, a row for each cell."""
    head = (
        "cell",
        "settings",
        "runs",
        "with a loss",
        "P(loss)",
        "95 %",
        "lost of a billion",
        "± s.e.",
        "losses a year",
    )
    return head, [
        (
            str(at + 1),
            grid.title(at),
            f"{cell.runs:,}",
            f"{cell.losses:,}",
            percent(cell.loss),
            span(cell.loss_exact),
            f"{cell.lost_per_billion:,.0f}",
            f"{cell.lost_per_billion_error:,.0f}",
            f"{cell.losses_a_year(grid.cells[at].brokers, mtbf_ms):.3g}",
        )
        for at, cell in enumerate(sums)
    ]


def availability(grid: Grid, sums: Sequence[Summed], mtbf_ms: float = MTBF_MS) -> Table:
    """When it could not be used, a row for each cell."""
    of = "/".join(f"p{percent}" for percent in PERCENTS)
    head = (
        "cell",
        "settings",
        "brokers failed",
        "no writes, s a failure",
        "no reads, s a failure",
        "no writes, s a year",
        "no reads, s a year",
        f"noticed, s ({of})",
        f"elected, s ({of})",
        f"first ack, s ({of})",
        "ack, ms (p50/p99)",
        "not confirmed",
    )
    return head, [
        (
            str(at + 1),
            grid.title(at),
            f"{cell.failures:,}",
            *(f"{cell.a_failure_s(kind):.2f}" for kind in KINDS),
            *(f"{cell.a_year_s(kind, grid.cells[at].brokers, mtbf_ms):,.1f}" for kind in KINDS),
            *(_seconds(times) for times in (cell.noticed, cell.elected, cell.first_ack)),
            "/".join(f"{x:,.0f}" for x in (cell.ack_p50_ms, cell.ack_p99_ms) if x is not None),
            percent(cell.unconfirmed / cell.sent if cell.sent else 0),
        )
        for at, cell in enumerate(sums)
    ]


def comparison(
    grid: Grid, sums: Sequence[Summed], a: int, b: int, pair: Pair, mtbf_ms: float = MTBF_MS
) -> list[str]:
    """Two cells beside each other, as lines of markdown."""
    lines = [f"## {grid.title(a)} against {grid.title(b)}", ""]
    tables = (durability(grid, sums, mtbf_ms), availability(grid, sums, mtbf_ms))
    turned = [
        (name, rows[a][column], rows[b][column])
        for head, rows in tables
        for column, name in enumerate(head)
        if column > 1
    ]
    lines += markdown((("", f"cell {a + 1}", f"cell {b + 1}"), [*turned]))
    return [
        *lines,
        "",
        f"Of {pair.seeds:,} seeds, {pair.both:,} lose with both, {pair.only_a:,} only with cell"
        f" {a + 1}, {pair.only_b:,} only with cell {b + 1}: if both lost alike, so uneven a split"
        f" had a chance of {pair.chance:.2g} (exact sign test).",
    ]


def report(told: SweepReport) -> list[str]:
    """All of it as lines of markdown."""
    grid = told.grid
    lines = [f"# {grid.name}", ""]
    if grid.story:
        lines += [grid.story.strip(), ""]
    lines += [f"    {told.command}", "", _size(told)]
    for title, table, plot, note in _parts(told):
        lines += ["", f"## {title}", "", *markdown(table), ""]
        lines += [f"![{plot.stem}]({plot.name})", ""] if plot else []
        lines += [note]
    if told.losses:
        rows = [loss.row() for loss in told.shown]
        lines += ["", "## Losses", "", _of_losses(told), "", *markdown((LOSS_HEAD, rows))]
    return lines


def markdown(table: Table) -> list[str]:
    """A table in markdown."""
    head, rows = table
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def page(told: SweepReport) -> str:
    """One HTML page with its plots inside."""
    grid, parts = told.grid, [f"<h1>{html.escape(told.grid.name)}</h1>"]
    parts += [f"<p>{html.escape(block)}</p>" for block in grid.story.split("\n\n") if block]
    parts += [f"<pre>{html.escape(told.command)}</pre><p>{html.escape(_size(told))}</p>"]
    for title, table, plot, note in _parts(told):
        parts.append(f"<h2>{title}</h2><div>{_html(table)}</div><p>{html.escape(note)}</p>")
        if plot:
            data = base64.b64encode(plot.read_bytes()).decode()
            parts.append(f'<p><img alt="{plot.stem}" src="data:image/png;base64,{data}"></p>')
    if told.losses:
        rows = [loss.row() for loss in told.shown]
        parts.append(f"<h2>Losses</h2><p>{html.escape(_of_losses(told))}</p>")
        parts.append(f'<div class="losses">{_html((LOSS_HEAD, rows))}</div>')
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(grid.name)}'
        f"</title><style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


def _parts(told: SweepReport) -> list[tuple[str, Table, Path | None, str]]:
    """(title, table, plot, what to know) of each."""
    plots = {plot.stem: plot for plot in told.plots}
    lost = durability(told.grid, told.sums, told.mtbf_ms)
    usable = availability(told.grid, told.sums, told.mtbf_ms)
    year = f"a year of brokers that each fail once in {told.mtbf_ms / DAY_MS:g} days"
    return [
        (
            "What was lost",
            lost,
            plots.get("heat_map"),
            "P(loss): of a run that it loses any acked record, with its exact interval (Clopper and"
            " Pearson). Lost of a billion: of the records acked in these runs, in which things fail"
            f" far more often than in life. Losses a year: {year}, if each failure costs what one"
            " cost here; where only failures that meet lose anything, far fewer.",
        ),
        (
            "When it could not be used",
            usable,
            plots.get("trade_off"),
            f"Seconds a year: of {year}, each failure for what one cost here. Noticed (fenced by"
            " the controller, if the broker was not back before), elected, first ack: since the"
            " leader's broker went down. Ack: the median of the runs' own p50 and p99.",
        ),
    ]


def _size(told: SweepReport) -> str:
    runs = sum(cell.runs for cell in told.sums)
    left_out = told.grid.left_out
    more = f" {left_out} combinations cannot be, and are left out." if left_out else ""
    return f"{len(told.grid.cells)} cells, {runs:,} runs.{more}"


def _of_losses(told: SweepReport) -> str:
    return (
        f"{told.losses:,} runs lost acked records; losses.csv has the seed and the replay of each,"
        f" losses/ the scenarios of the first {KEPT} of each cell, which are these."
    )


def write_report(
    grid: Grid,
    sums: Sequence[Summed],
    losses: Iterable[tuple[int, int, int]],
    command: str,
    out: str | os.PathLike[str],
    mtbf_ms: float = MTBF_MS,
) -> list[Path]:
    """Every file of the report: cells.csv, cells.parquet, losses.csv, losses/, the plots where
    matplotlib is, report.md, report.html.  Returns them, losses/ left out."""
    count, shown = write_losses(grid, losses, out)
    plots = tuple(write_plots(grid, sums, out)) if can_draw() else ()
    told = SweepReport(grid, sums, command, mtbf_ms, count, shown, plots)
    text, page_file = Path(out) / "report.md", Path(out) / "report.html"
    text.write_text("\n".join(report(told)) + "\n", "utf-8")
    page_file.write_text(page(told), "utf-8")
    tables = write_figures(figures_of(grid, sums, mtbf_ms), out)
    return [*tables, Path(out) / "losses.csv", *plots, text, page_file]


def write_losses(
    grid: Grid, losses: Iterable[tuple[int, int, int]], out: str | os.PathLike[str]
) -> tuple[int, list[Loss]]:
    """losses.csv, and scenario files of the first KEPT of each cell; returns how many there are,
    and those first."""
    count = 0
    shown: list[Loss] = []
    kept: dict[int, int] = {}
    place = Path(out) / "losses"
    with open(Path(out) / "losses.csv", "w", encoding="utf-8", newline="") as table:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(("cell", "settings", "seed", "lost", "replay"))
        for at, seed, lost in losses:
            count += 1
            loss = Loss(at, grid.title(at), seed, lost, replay_line(grid, at, seed))
            writer.writerow((at + 1, loss.settings, seed, lost, loss.replay))
            kept[at] = kept.get(at, 0) + 1
            if kept[at] <= KEPT:
                shown.append(loss)
                place.mkdir(exist_ok=True)
                story = f"{grid.name}, {loss.settings}: {lost:,} acked records are lost."
                name = f"cell{at + 1}_seed{seed}"
                file = place / f"{name}.yaml"
                file.write_text(text_of(grid.cells[at], seed, name, story), "utf-8")
    return count, sorted(shown, key=lambda loss: (loss.at, loss.seed))


def replay_line(grid: Grid, at: int, seed: int) -> str:
    """What runs it again, and tells all of it."""
    return f"kcluster pipeline replay {shlex.quote(grid.source)} {at + 1} {seed}"


def percent(share: float) -> str:
    """`0.25 %`."""
    return f"{share * 100:.3g} %"


def span(interval: tuple[float, float]) -> str:
    """`0.1 to 2.3 %`; `below 0.4 %` where there was nothing."""
    low, high = interval
    return f"below {high * 100:.2g} %" if low == 0 else f"{low * 100:.3g} to {high * 100:.3g} %"


def _seconds(found_ms: Sequence[float]) -> str:
    return "/".join(f"{ms / 1_000:.1f}" for ms in found_ms) or "none"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _html(table: Table) -> str:
    head, rows = table
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"
