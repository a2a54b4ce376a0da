"""The report of a sweep: markdown, an HTML page, and the command that replays each loss.

Owns: the report's words and files.  Never: sums over runs (summary.py), draws (plots.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import base64
import csv
import html
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from kcluster.pipeline.sweep.cells import text_of
from kcluster.pipeline.sweep.estimates import MS_PER_YEAR, interval_of, percent
from kcluster.pipeline.sweep.figures import figures_of, write_figures
from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.plots import can_draw, write_plots
from kcluster.pipeline.sweep.summary import PERCENTS, CellSummary, Pair

MAX_SHOWN: Final = 5
"""The number of losses per cell that get a scenario file; losses.csv has all."""
_STYLE: Final = """
:root { color-scheme: light dark; --text: #222; --line: #ccc; --panel: #f4f4f4; --back: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe5ec; --line: #3a434f; --panel: #161b22; --back: #0f1318; }
}
body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 1300px; padding: 0 1em;
  color: var(--text); background: var(--back); }
p { max-width: 100ch; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
td, th { padding: .3em .55em; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: bottom; }
td:nth-child(2), th:nth-child(2) { text-align: left; }
tr:hover td { background: var(--panel); }
img { max-width: 100%; background: #fff; }
pre { background: var(--panel); padding: .6em; white-space: pre-wrap; overflow-wrap: anywhere; }
.losses td:last-child, .losses th:last-child { text-align: left; font-family: monospace;
  overflow-wrap: anywhere; }
/* Narrow: each row is a block of lines, `head: value`. */
@media (max-width: 960px) {
  table, tbody, tr, td { display: block; }
  tr:first-child { display: none; }
  tr { border-bottom: 2px solid var(--line); padding: .4em 0; }
  td, .losses td:last-child { display: flex; gap: 1em; border: 0; padding: .1em 0;
    text-align: left; overflow-wrap: anywhere; }
  td::before { content: attr(data-head); flex: 0 0 11em; opacity: .7; font-family: system-ui; }
}
"""

KINDS: Final = ("writes", "reads")
DAY_MS: Final = 86_400_000
MTBF_MS: Final = MS_PER_YEAR
"""The default MTBF of a broker for the figures per year."""
LOSS_HEAD: Final = ("cell", "settings", "seed", "lost", "replay")

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""(head, rows)."""


class Loss(Struct, frozen=True):
    """A run that lost acked records."""

    cell_index: int
    settings: str
    seed: int
    lost: int
    replay: str

    def row(self) -> Sequence[str]:
        return (
            str(self.cell_index + 1),
            self.settings,
            str(self.seed),
            f"{self.lost:,}",
            self.replay,
        )


class SweepReport(Struct, frozen=True):
    """The content of a report."""

    grid: Grid
    sums: Sequence[CellSummary]
    command: str
    mtbf_ms: float
    losses: int
    """The number of runs with a loss."""
    shown: Sequence[Loss]
    """The first MAX_SHOWN losses of each cell."""
    plots: Sequence[Path]


def durability(grid: Grid, sums: Sequence[CellSummary], mtbf_ms: float = MTBF_MS) -> Table:
    """The table of losses, one row per cell."""
    head = (
        "cell",
        "settings",
        "runs",
        "with a loss",
        "P(loss)",
        "95 %",
        "lost per billion",
        "± s.e.",
        "losses per year",
    )
    return head, [
        (
            str(at + 1),
            grid.title(at),
            f"{cell.runs:,}",
            f"{cell.losses:,}",
            percent(cell.loss),
            interval_of(cell.loss_exact),
            f"{cell.lost_per_billion:,.0f}",
            f"{cell.lost_per_billion_error:,.0f}",
            f"{cell.losses_per_year(grid.cells[at].brokers, mtbf_ms):.3g}",
        )
        for at, cell in enumerate(sums)
    ]


def availability(grid: Grid, sums: Sequence[CellSummary], mtbf_ms: float = MTBF_MS) -> Table:
    """The table of unavailability, one row per cell."""
    of = "/".join(f"p{percent}" for percent in PERCENTS)
    head = (
        "cell",
        "settings",
        "brokers failed",
        "no writes, s per failure",
        "no reads, s per failure",
        "no writes, s per year",
        "no reads, s per year",
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
            *(f"{cell.per_failure_s(kind):.2f}" for kind in KINDS),
            *(f"{cell.per_year_s(kind, grid.cells[at].brokers, mtbf_ms):,.1f}" for kind in KINDS),
            *(_seconds(times) for times in (cell.noticed, cell.elected, cell.first_ack)),
            "/".join(f"{x:,.0f}" for x in (cell.ack_p50_ms, cell.ack_p99_ms) if x is not None),
            percent(cell.unconfirmed / cell.sent if cell.sent else 0),
        )
        for at, cell in enumerate(sums)
    ]


def comparison(
    grid: Grid, sums: Sequence[CellSummary], a: int, b: int, pair: Pair, mtbf_ms: float = MTBF_MS
) -> list[str]:
    """Two cells compared, as lines of markdown."""
    lines = [f"## {grid.title(a)} against {grid.title(b)}", ""]
    tables = (durability(grid, sums, mtbf_ms), availability(grid, sums, mtbf_ms))
    columns = [
        (name, rows[a][column], rows[b][column])
        for head, rows in tables
        for column, name in enumerate(head)
        if column > 1
    ]
    lines += markdown_table((("", f"cell {a + 1}", f"cell {b + 1}"), columns))
    return [
        *lines,
        "",
        f"Of {pair.seeds:,} seeds, {pair.both:,} lose records with both cells, {pair.only_a:,} only"
        f" with cell {a + 1}, {pair.only_b:,} only with cell {b + 1}"
        f" (exact sign test: p = {pair.p_value:.2g}).",
    ]


def markdown_report(content: SweepReport) -> list[str]:
    """The report as lines of markdown."""
    grid = content.grid
    lines = [f"# {grid.name}", ""]
    if grid.story:
        lines += [grid.story.strip(), ""]
    lines += [f"    {content.command}", "", _size(content)]
    for title, table, plot, note in _parts(content):
        lines += ["", f"## {title}", "", *markdown_table(table), ""]
        lines += [f"![{plot.stem}]({plot.name})", ""] if plot else []
        lines += [note]
    if content.losses:
        rows = [loss.row() for loss in content.shown]
        lines += [
            "",
            "## Losses",
            "",
            _losses_note(content),
            "",
            *markdown_table((LOSS_HEAD, rows)),
        ]
    return lines


def markdown_table(table: Table) -> list[str]:
    """A table in markdown."""
    head, rows = table
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def html_report(content: SweepReport) -> str:
    """The report as one HTML page with embedded plots."""
    grid, parts = content.grid, [f"<h1>{html.escape(content.grid.name)}</h1>"]
    parts += [f"<p>{html.escape(block)}</p>" for block in grid.story.split("\n\n") if block]
    parts += [f"<pre>{html.escape(content.command)}</pre><p>{html.escape(_size(content))}</p>"]
    for title, table, plot, note in _parts(content):
        parts.append(f"<h2>{title}</h2><div>{_html_table(table)}</div><p>{html.escape(note)}</p>")
        if plot:
            data = base64.b64encode(plot.read_bytes()).decode()
            parts.append(f'<p><img alt="{plot.stem}" src="data:image/png;base64,{data}"></p>')
    if content.losses:
        rows = [loss.row() for loss in content.shown]
        parts.append(f"<h2>Losses</h2><p>{html.escape(_losses_note(content))}</p>")
        parts.append(f'<div class="losses">{_html_table((LOSS_HEAD, rows))}</div>')
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(grid.name)}</title><style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


def _parts(content: SweepReport) -> list[tuple[str, Table, Path | None, str]]:
    """(title, table, plot, note) of each section."""
    plots = {plot.stem: plot for plot in content.plots}
    lost = durability(content.grid, content.sums, content.mtbf_ms)
    usable = availability(content.grid, content.sums, content.mtbf_ms)
    year = f"each broker fails once in {content.mtbf_ms / DAY_MS:g} days"
    return [
        (
            "Losses by cell",
            lost,
            plots.get("heat_map"),
            "P(loss): the probability that a run loses an acked record, with its exact interval"
            " (Clopper and Pearson). Lost per billion: of the records acked in these runs, in which"
            f" failures are far more frequent than in practice. Losses per year: {year}, and each"
            " failure costs as much as here; far fewer if only overlapping failures lose records.",
        ),
        (
            "Unavailability by cell",
            usable,
            plots.get("trade_off"),
            f"Seconds per year: {year}, and each failure costs as much as here. Noticed (the"
            " controller fences the broker, unless it is back before), elected, first ack: time"
            " since the leader's broker went down. Ack: medians of the runs' p50 and p99.",
        ),
    ]


def _size(content: SweepReport) -> str:
    runs = sum(cell.runs for cell in content.sums)
    left_out = content.grid.left_out
    more = f" {left_out} impossible combinations are left out." if left_out else ""
    return f"{len(content.grid.cells)} cells, {runs:,} runs.{more}"


def _losses_note(content: SweepReport) -> str:
    return (
        f"{content.losses:,} runs lost acked records. losses.csv has the seed of each, and the"
        " command that replays it. The table below and the scenarios in losses/ are of the first"
        f" {MAX_SHOWN} of each cell."
    )


def write_report(
    grid: Grid,
    sums: Sequence[CellSummary],
    losses: Iterable[tuple[int, int, int]],
    command: str,
    out: str | os.PathLike[str],
    mtbf_ms: float = MTBF_MS,
) -> list[Path]:
    """Write all files of the report: cells.csv, cells.parquet, losses.csv, losses/, the plots if
    matplotlib is installed, report.md, report.html.  Returns the files, without the content of
    losses/."""
    count, shown = write_losses(grid, losses, out)
    plots = tuple(write_plots(grid, sums, out)) if can_draw() else ()
    content = SweepReport(grid, sums, command, mtbf_ms, count, shown, plots)
    text, page_file = Path(out) / "report.md", Path(out) / "report.html"
    text.write_text("\n".join(markdown_report(content)) + "\n", "utf-8")
    page_file.write_text(html_report(content), "utf-8")
    tables = write_figures(figures_of(grid, sums, mtbf_ms), out)
    return [*tables, Path(out) / "losses.csv", *plots, text, page_file]


def write_losses(
    grid: Grid, losses: Iterable[tuple[int, int, int]], out: str | os.PathLike[str]
) -> tuple[int, list[Loss]]:
    """Write losses.csv, and scenario files for the first MAX_SHOWN of each cell.

    Returns the number of all losses, and the losses that have a scenario file.
    """
    count = 0
    shown: list[Loss] = []
    per_cell: dict[int, int] = {}
    place = Path(out) / "losses"
    with open(Path(out) / "losses.csv", "w", encoding="utf-8", newline="") as table:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(("cell", "settings", "seed", "lost", "replay"))
        for at, seed, lost in losses:
            count += 1
            loss = Loss(at, grid.title(at), seed, lost, replay_line(grid, at, seed))
            writer.writerow((at + 1, loss.settings, seed, lost, loss.replay))
            per_cell[at] = per_cell.get(at, 0) + 1
            if per_cell[at] <= MAX_SHOWN:
                shown.append(loss)
                place.mkdir(exist_ok=True)
                story = f"{grid.name}, {loss.settings}: {lost:,} acked records are lost."
                name = f"cell{at + 1}_seed{seed}"
                file = place / f"{name}.yaml"
                file.write_text(text_of(grid.cells[at], seed, name, story), "utf-8")
    return count, sorted(shown, key=lambda loss: (loss.cell_index, loss.seed))


def replay_line(grid: Grid, at: int, seed: int) -> str:
    """The command that repeats a run and reports all of it."""
    return f"kcluster pipeline replay {shlex.quote(grid.source)} {at + 1} {seed}"


def _seconds(found_ms: Sequence[float]) -> str:
    return "/".join(f"{ms / 1_000:.1f}" for ms in found_ms) or "none"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _html_table(table: Table) -> str:
    head, rows = table
    top = "".join(f"<th>{_breakable(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(map(_html_cell, head, row))}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _html_cell(head: str, text: str) -> str:
    return f'<td data-head="{html.escape(head)}"><span>{_breakable(text)}</span></td>'


def _breakable(text: str) -> str:
    """Text for HTML in which a line may also break between several figures: `8.4/24.6/33.0`."""
    return re.sub(r"(?<=\d)/", "/<wbr>", html.escape(text))
