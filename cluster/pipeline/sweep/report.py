"""A sweep told: markdown, one HTML page, the seeds of every loss with what plays them again.

Owns: words and files.  Never: sums (summary.py), draws (sweep_plots.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cluster.pipeline.sweep.cells import text_of
from cluster.pipeline.sweep.grid import Grid
from cluster.pipeline.sweep.summary import PERCENTS, Pair, Summed

KEPT: Final = 5
"""Scenario files are written for so many losses of a cell; all are in losses.csv."""
_STYLE: Final = (
    "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:1100px;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.25em .7em;border-bottom:1px solid #ccc;"
    "text-align:right}td:nth-child(2),th:nth-child(2){text-align:left}img{max-width:100%}"
)

Table = tuple[Sequence[str], list[Sequence[str]]]
"""(head, rows)."""


def durability(grid: Grid, sums: Sequence[Summed]) -> Table:
    """What was lost, a row for each cell."""
    head = (
        "cell", "settings", "runs", "with a loss", "P(loss)", "95 % (Wilson)", "95 % (exact)",
        "lost of a billion", "± s.e.",
    )  # fmt: skip
    return head, [
        (
            str(at + 1), grid.title(at), f"{cell.runs:,}", f"{cell.losses:,}", percent(cell.loss),
            span(cell.loss_wilson), span(cell.loss_exact), f"{cell.lost_per_billion:,.0f}",
            f"{cell.lost_per_billion_error:,.0f}",
        )
        for at, cell in enumerate(sums)
    ]  # fmt: skip


def availability(grid: Grid, sums: Sequence[Summed]) -> Table:
    """When it could not be used, a row for each cell."""
    of = "/".join(f"p{percent}" for percent in PERCENTS)
    head = (
        "cell", "settings", "failures", "no writes, s a failure", "no reads, s a failure",
        "no writes, s a year", "no reads, s a year", f"elected, ms ({of})",
        f"first ack, ms ({of})", "ack, ms (p50/p99)", "not confirmed",
    )  # fmt: skip
    return head, [
        (
            str(at + 1), grid.title(at), f"{cell.failures:,}", f"{cell.a_failure('writes'):.2f}",
            f"{cell.a_failure('reads'):.2f}", f"{cell.a_year('writes'):,.0f}",
            f"{cell.a_year('reads'):,.0f}", _times(cell.elected), _times(cell.first_ack),
            _times([x for x in (cell.ack_p50_ms, cell.ack_p99_ms) if x is not None]),
            percent(cell.unconfirmed / cell.sent if cell.sent else 0),
        )
        for at, cell in enumerate(sums)
    ]  # fmt: skip


def comparison(grid: Grid, sums: Sequence[Summed], a: int, b: int, pair: Pair) -> list[str]:
    """Two cells beside each other, as lines of markdown."""
    lines = [f"## {grid.title(a)} against {grid.title(b)}", ""]
    tables = (durability(grid, sums), availability(grid, sums))
    turned = [
        (name, rows[a][column], rows[b][column])
        for head, rows in tables
        for column, name in enumerate(head)
        if column > 1
    ]
    lines += markdown((("", f"cell {a + 1}", f"cell {b + 1}"), [*turned]))
    return [
        *lines, "",
        f"Of {pair.seeds:,} seeds, {pair.both:,} lose with both, {pair.only_a:,} only with cell"
        f" {a + 1}, {pair.only_b:,} only with cell {b + 1}: if both lost alike, so uneven a split"
        f" had a chance of {pair.chance:.2g} (exact sign test).",
    ]  # fmt: skip


def report(
    grid: Grid, sums: Sequence[Summed], command: str, losses: int, plots: Sequence[str]
) -> list[str]:
    """All of it as lines of markdown."""
    runs = sum(cell.runs for cell in sums)
    lines = [f"# {grid.name}", ""]
    if grid.story:
        lines += [grid.story.strip(), ""]
    lines += [f"    {command}", "", f"{len(grid.cells)} cells, {runs:,} runs."]
    if grid.left_out:
        lines += [f"{grid.left_out} combinations cannot be, and are left out."]
    lines += ["", "## What was lost", "", *markdown(durability(grid, sums)), ""]
    lines += [f"![{Path(plot).stem}]({plot})" for plot in plots]
    lines += ["", "## When it could not be used", "", *markdown(availability(grid, sums)), ""]
    lines += [
        "A year here is one in which things fail as often as they did in these runs: for another"
        " rate, multiply the seconds a failure by the failures that you have.",
        "Elected and first ack: since the leader's broker went down.",
    ]
    if losses:
        lines += [
            "", "## Losses", "",
            f"{losses:,} runs lost acked records; losses.csv has the seed and the command of each,"
            f" losses/ the scenarios of the first {KEPT} of each cell.",
        ]  # fmt: skip
    return lines


def markdown(table: Table) -> list[str]:
    """A table in markdown."""
    head, rows = table
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def page(
    grid: Grid, sums: Sequence[Summed], command: str, losses: int, plots: Iterable[Path]
) -> str:
    """One HTML page with its plots inside."""
    parts = [f"<h1>{html.escape(grid.name)}</h1><p>{html.escape(grid.story)}</p>"]
    parts.append(f"<pre>{html.escape(command)}</pre>")
    for title, table in (
        ("What was lost", durability(grid, sums)),
        ("When it could not be used", availability(grid, sums)),
    ):
        parts.append(f"<h2>{title}</h2>{_html(table)}")
    for plot in plots:
        data = base64.b64encode(plot.read_bytes()).decode()
        parts.append(f'<p><img alt="{plot.stem}" src="data:image/png;base64,{data}"></p>')
    parts.append(f"<p>{losses:,} runs lost acked records.</p>")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(grid.name)}'
        f"</title><style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


def write_losses(
    grid: Grid, losses: Iterable[tuple[int, int, int]], out: str | os.PathLike[str]
) -> int:
    """losses.csv, and scenario files; returns how many there are."""
    count = 0
    kept: dict[int, int] = {}
    place = Path(out) / "losses"
    with open(Path(out) / "losses.csv", "w", encoding="utf-8") as table:
        table.write("cell,settings,seed,lost,replay\n")
        for at, seed, lost in losses:
            count += 1
            line = replay_line(grid, at, seed)
            table.write(f'{at + 1},"{grid.title(at)}",{seed},{lost},"{line}"\n')
            kept[at] = kept.get(at, 0) + 1
            if kept[at] <= KEPT:
                place.mkdir(exist_ok=True)
                story = f"{grid.name}, {grid.title(at)}: {lost:,} acked records are lost."
                name = f"cell{at + 1}_seed{seed}"
                file = place / f"{name}.yaml"
                file.write_text(text_of(grid.cells[at], seed, name, story), "utf-8")
    return count


def replay_line(grid: Grid, at: int, seed: int) -> str:
    """What runs it again, and tells all of it."""
    return f"kcluster pipeline replay {grid.source} {at + 1} {seed}"


def percent(share: float) -> str:
    """`0.25 %`."""
    return f"{share * 100:.3g} %"


def span(interval: tuple[float, float]) -> str:
    """`0.1 to 2.3 %`."""
    return f"{interval[0] * 100:.3g} to {interval[1] * 100:.3g} %"


def _times(found: Sequence[float]) -> str:
    return "/".join(f"{ms:,.0f}" for ms in found) or "none"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _html(table: Table) -> str:
    head, rows = table
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"
