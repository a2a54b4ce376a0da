"""The drawing of a replica's log as a bar of cells, each in the colour of its leader epoch.

Owns: the number of offsets in a cell, its glyph, the mark of the high watermark, the legend.
Never: finds an epoch or an offset.  Colours are rich markup.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

CELLS: Final = 48
"""The most cells in a bar."""
COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "white")
"""The colours of leader epochs, in rotation."""

Glyph = Callable[[int], str]
"""Makes the cell of a leader epoch."""


def block(epoch: int) -> str:
    """A cell for a terminal."""
    return f"[{COLOURS[epoch % len(COLOURS)]}]█[/]"


def digit(epoch: int) -> str:
    """A cell for a text without colours: the epoch's last digit."""
    return str(epoch % 10)


def offsets_per_cell(start: int, end: int) -> int:
    """The number of offsets in a cell, if the longest log of the drawing ends at `end`."""
    return max(1, -(-(end - start) // CELLS))


def bar(
    ends: tuple[int, int, int],
    watermark: int | None,
    per_cell: int,
    epoch_of: Callable[[int], int],
    glyph: Glyph = block,
) -> Iterator[str]:
    """The cells of one replica.  `ends`: the start of the drawing, the end of this log, the end of
    the longest log.  `|` marks the high watermark; there is nothing beyond the log end."""
    start, log_end, end = ends
    mark = None if watermark is None else max(0, watermark - start) // per_cell
    count = -(-(end - start) // per_cell)
    for cell in range(count):
        if cell == mark:
            yield "|"
        offset = start + cell * per_cell
        yield glyph(epoch_of(offset)) if offset < log_end else " "
    if mark is not None and mark >= count:
        yield "|"


def legend(epochs: Iterable[int], glyph: Glyph = block) -> str:
    """The legend of a bar: `█ epoch 0 █ epoch 1 | high watermark`."""
    shown = "  ".join(f"{glyph(epoch)} epoch {epoch}" for epoch in epochs)
    return f"{shown}   | high watermark"
