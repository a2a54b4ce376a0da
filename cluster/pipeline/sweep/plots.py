"""A sweep drawn: where acked records are lost, and what it costs not to lose them.

Owns: the two plots, as PNG by matplotlib (extra `plots`).  Never: sums, needs a display.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cluster.pipeline.sweep.grid import Grid
from cluster.pipeline.sweep.summary import Summed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOTS_HELP: Final = "no plots: pip install 'kcluster[plots]'"
_DPI: Final = 110
_FLOOR: Final = 1e-3
"""Where the scale of shares becomes linear: 0 has to be on it."""


def can_draw() -> bool:
    """Whether matplotlib is here."""
    return find_spec("matplotlib") is not None


def write_plots(grid: Grid, sums: Sequence[Summed], out: str | os.PathLike[str]) -> list[Path]:
    """heat_map.png and trade_off.png; returns the files."""
    places = []
    for name, figure in (("heat_map", heat_map(grid, sums)), ("trade_off", trade_off(sums))):
        place = Path(out) / f"{name}.png"
        figure.savefig(place, dpi=_DPI)
        places.append(place)
    return places


def heat_map(grid: Grid, sums: Sequence[Summed]) -> Figure:
    """P(loss): the last column that varies across, all others down."""
    from matplotlib.figure import Figure

    across = grid.varied[-1] if grid.varied else ""
    columns = [cell.columns() for cell in grid.cells]
    tops = list(dict.fromkeys(found.get(across, "") for found in columns))
    sides = list(
        dict.fromkeys(
            "\n".join(f"{key}={found[key]}" for key in grid.varied[:-1]) for found in columns
        )
    )
    shares = [[float("nan")] * len(tops) for _ in sides]
    for found, cell in zip(columns, sums, strict=True):
        side = "\n".join(f"{key}={found[key]}" for key in grid.varied[:-1])
        shares[sides.index(side)][tops.index(found.get(across, ""))] = cell.loss
    height = 1.2 + len(sides) * max(0.5, 0.22 * len(grid.varied))
    figure = Figure(figsize=(3.5 + 1.2 * len(tops), max(3.0, height)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Reds", vmin=0, aspect="auto")
    axes.set_xticks(range(len(tops)), tops)
    axes.set_yticks(range(len(sides)), sides, fontsize=8)
    axes.set_xlabel(across)
    axes.set_title("share of runs that lose an acked record")
    high = max((share for row in shares for share in row if share == share), default=0)
    for y, row in enumerate(shares):
        for x, share in enumerate(row):
            if share == share:  # there is such a cell
                color = "white" if share > high * 0.6 and high else "black"
                axes.text(x, y, f"{share:.2%}", ha="center", va="center", color=color)
    figure.colorbar(image, ax=axes)
    return figure


def trade_off(sums: Sequence[Summed]) -> Figure:
    """Durability against availability against latency: a dot is a cell, with its number."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.add_subplot()
    shown = [(at, cell) for at, cell in enumerate(sums, 1) if cell.runs]
    xs = [cell.a_failure("writes") for _, cell in shown]
    ys = [cell.loss for _, cell in shown]
    spans = [cell.loss_wilson for _, cell in shown]
    low = [y - span[0] for y, span in zip(ys, spans, strict=True)]
    high = [span[1] - y for y, span in zip(ys, spans, strict=True)]
    axes.errorbar(xs, ys, yerr=[low, high], fmt="none", ecolor="lightgrey", zorder=1)
    dots = axes.scatter(xs, ys, c=[cell.ack_p99_ms or 0 for _, cell in shown], zorder=2)
    for (at, _), x, y in zip(shown, xs, ys, strict=True):
        axes.annotate(str(at), (x, y), xytext=(5, 5), textcoords="offset points")
    axes.set_yscale("symlog", linthresh=_FLOOR)
    axes.set_ylim(bottom=-_FLOOR / 5)
    axes.set_xlabel("no writes, seconds a failure")
    axes.set_ylabel("share of runs that lose an acked record (95 %)")
    figure.colorbar(dots, ax=axes, label="ack, p99, ms")
    return figure
