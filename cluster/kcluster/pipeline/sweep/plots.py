"""The plots of a sweep: the cells in which acked records are lost, and the price of durability.

Owns: the two plots, as PNG by matplotlib (extra `plots`).  Never: sums over runs, needs a display.
Kafka: no counterpart.

The colour map is cividis, which colour-blind readers can tell apart; no fact is shown by colour
alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kcluster.pipeline.sweep.estimates import PLOT_DIGITS, interval_of, percent
from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.summary import CellSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NAMED: Final = 24
"""The most cells that the trade-off plot lists by name; with more, it has only their numbers."""
_DPI: Final = 110
_COLOURS: Final = "cividis"
_NEAR_PX: Final = 13
"""The distance in pixels below which dots share one label."""
_CHAR_PT: Final = 5.2
"""Approximate width of a digit."""
_LINE_PX: Final = 14
_RISES_PT: Final = (5.0, -14.0, 19.0, -28.0, 33.0, -42.0, 47.0)
"""Offsets of a label above its dot, in the order in which they are tried."""


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def write_plots(grid: Grid, sums: Sequence[CellSummary], out: str | os.PathLike[str]) -> list[Path]:
    """Write heat_map.png and trade_off.png; returns the files."""
    places = []
    for name, figure in (("heat_map", heat_map(grid, sums)), ("trade_off", trade_off(grid, sums))):
        place = Path(out) / f"{name}.png"
        # Without the library's version in the file, an unchanged plot has the same bytes.
        figure.savefig(place, dpi=_DPI, metadata={"Software": None})
        places.append(place)
    return places


def heat_map(grid: Grid, sums: Sequence[CellSummary]) -> Figure:
    """P(loss) with its interval.  The last varied column is the x axis, the others are the y axis;
    combinations without a cell or a run are hatched."""
    from matplotlib.figure import Figure

    tops, sides, places = _layout(grid)
    shares = [[float("nan")] * len(tops) for _ in sides]
    for (y, x), cell in zip(places, sums, strict=True):
        shares[y][x] = cell.loss if cell.runs else float("nan")
    longest = max(len(side) for side in sides)
    figure = Figure(
        figsize=(2.4 + 0.075 * longest + 1.7 * len(tops), 1.7 + 0.62 * len(sides)),
        layout="constrained",
    )
    axes = figure.add_subplot()
    high = max((cell.loss for cell in sums), default=0) or 1
    image = axes.imshow(shares, cmap=_COLOURS, vmin=0, vmax=high, aspect="auto")
    axes.patch.set(hatch="///", edgecolor="#bbb", facecolor="white")
    axes.set_xticks(range(len(tops)), tops)
    axes.set_yticks(range(len(sides)), sides, fontsize=9)
    if grid.varied:
        axes.set_xlabel(grid.varied[-1])
    axes.set_title("Runs that lose acked records, with the 95 % interval", fontsize=11)
    for (y, x), cell in zip(places, sums, strict=True):
        if cell.runs:
            colour = "black" if cell.loss > high * 0.5 else "white"
            axes.text(
                x,
                y,
                loss_label(cell),
                ha="center",
                va="center",
                color=colour,
                fontsize=9,
                linespacing=1.3,
            )
    axes.set_xticks([x - 0.5 for x in range(1, len(tops))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(sides))], minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="both", length=0)
    figure.colorbar(image, ax=axes, format=_tick, label="runs with a loss")
    return figure


def loss_label(cell: CellSummary) -> str:
    """The label of a cell in two lines: `12 %` and `10 to 14 %`, or `none` and `below 0.4 %` for a
    cell without a loss."""
    share = percent(cell.loss, PLOT_DIGITS) if cell.losses else "none"
    return f"{share}\n{interval_of(cell.loss_exact, PLOT_DIGITS)}"


def _tick(share: float, _: float | None = None) -> str:
    """The label of a tick; none below 0 and above 100 %, though an axis may reach further."""
    return percent(share, PLOT_DIGITS) if 0 <= share <= 1 else ""


def trade_off(grid: Grid, sums: Sequence[CellSummary]) -> Figure:
    """Durability against availability against latency.  A dot is a cell, labelled with its number.
    A cell without a loss is a downward arrow at the upper end of its interval."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator

    shown = [(at, cell) for at, cell in enumerate(sums, 1) if cell.runs]
    names = [f"{at}  {grid.title(at - 1)}" for at, _ in shown]
    is_named = len(shown) <= MAX_NAMED
    width = 6.6 + (0.072 * max(map(len, names), default=0) if is_named else 0)
    height = max(4.6, 0.2 * len(names) * is_named + 1)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    axes = figure.add_subplot()
    lossy = [(at, cell) for at, cell in shown if cell.losses]
    lossless = [(at, cell) for at, cell in shown if not cell.losses]
    xs = [cell.per_failure_s("writes") for _, cell in lossy]
    ys = [cell.loss for _, cell in lossy]
    low = [cell.loss - cell.loss_exact[0] for _, cell in lossy]
    high = [cell.loss_exact[1] - cell.loss for _, cell in lossy]
    axes.errorbar(xs, ys, yerr=[low, high], fmt="none", ecolor="#999", capsize=2, zorder=1)
    ends = [cell.loss_exact[1] for _, cell in lossless]
    lossless_xs = [cell.per_failure_s("writes") for _, cell in lossless]
    latencies = [cell.ack_p50_ms or 0 for _, cell in shown]
    look: dict[str, Any] = {
        "cmap": _COLOURS,
        "vmin": min(latencies, default=0),
        "vmax": max(latencies, default=1),
        "edgecolors": "black",
        "linewidths": 0.6,
        "s": 55,
        "zorder": 2,
    }
    dots = axes.scatter(xs, ys, c=[cell.ack_p50_ms or 0 for _, cell in lossy], **look)
    axes.scatter(
        lossless_xs, ends, c=[cell.ack_p50_ms or 0 for _, cell in lossless], marker="v", **look
    )
    if xs or lossless_xs:  # a logarithmic scale needs a value
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.set_xlim(0, max(*xs, *lossless_xs, 0.1) * 1.12)
        axes.set_ylim(min([*ys, *ends]) / 2.5, 1.6 * max([*ys, *ends]))
    axes.set_title("Durability, availability and latency of each cell", fontsize=11)
    axes.set_xlabel("seconds without writes, per failure of a broker")
    axes.set_ylabel(
        "runs that lose acked records, 95 % interval\n▼ no loss: the interval's upper end"
    )
    axes.yaxis.set_major_formatter(_tick)
    axes.yaxis.set_minor_formatter("")
    axes.grid(color="#eee", zorder=0)
    axes.set_axisbelow(True)
    figure.colorbar(dots, ax=axes, label="median time to an ack, ms", pad=0.01)
    if is_named:
        handles = [Line2D([], [], linestyle="none") for _ in names]
        figure.legend(
            handles,
            names,
            loc="outside right upper",
            handlelength=0,
            handletextpad=0,
            fontsize=8.5,
            frameon=False,
        )
    points = [*zip((at for at, _ in lossy), xs, ys, strict=True)]
    points += [*zip((at for at, _ in lossless), lossless_xs, ends, strict=True)]
    _label(figure, axes, points)
    return figure


def _label(figure: Figure, axes: Any, points: list[tuple[int, float, float]]) -> None:
    """Label the dots with their numbers, if there is room; overlapping dots share a label."""
    figure.draw_without_rendering()  # the layout of the axes is final from here on
    groups: list[tuple[float, float, list[int]]] = []
    for at, x, y in sorted(points):
        px, py = axes.transData.transform((x, y))
        for gx, gy, numbers in groups:
            if abs(gx - px) <= _NEAR_PX and abs(gy - py) <= _NEAR_PX:
                numbers.append(at)
                break
        else:
            groups.append((px, py, [at]))
    point_px = figure.dpi / 72
    occupied = [_box(px, py, 0, 0, 0) for px, py, _ in groups]
    for px, py, numbers in groups:
        text = format_numbers(numbers)
        width = _CHAR_PT * len(text)
        offsets = [(dx, dy) for dy in _RISES_PT for dx in (8.0, -8.0 - width)]
        boxes = [_box(px, py, dx * point_px, dy * point_px, width * point_px) for dx, dy in offsets]
        free = [at for at, box in enumerate(boxes) if not any(_overlap(box, x) for x in occupied)]
        at = free[0] if free else 0
        occupied.append(boxes[at])
        axes.annotate(
            text,
            axes.transData.inverted().transform((px, py)),
            xytext=offsets[at],
            textcoords="offset points",
            fontsize=9,
            zorder=3,
            arrowprops={"arrowstyle": "-", "color": "#999", "lw": 0.6, "shrinkB": 4},
        )


def format_numbers(numbers: Sequence[int]) -> str:
    """Numbers as text: `1-4, 7` for 1, 2, 3, 4, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = (f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return ", ".join(parts)


def _box(px: float, py: float, dx: float, dy: float, width: float) -> tuple[float, ...]:
    """The box of a label, or of a dot if `width` is 0: (left, bottom, right, top) in pixels."""
    if not width:
        return px - _NEAR_PX / 2, py - _NEAR_PX / 2, px + _NEAR_PX / 2, py + _NEAR_PX / 2
    return px + dx, py + dy - 2, px + dx + width, py + dy + _LINE_PX


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _layout(grid: Grid) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    """(labels of the x axis, labels of the y axis, (row, column) of each cell)."""
    columns = [cell.columns() for cell in grid.cells]
    across, down = grid.varied[-1:], grid.varied[:-1]
    tops, sides = (
        ["\n".join(f"{combination[key]}" for key in across) for combination in columns],
        ["  ".join(f"{key}={combination[key]}" for key in down) for combination in columns],
    )
    top, side = list(dict.fromkeys(tops)), list(dict.fromkeys(sides))
    places = [(side.index(b), top.index(a)) for a, b in zip(tops, sides, strict=True)]
    return top, side, places
