"""Tables: aligned columns, coloured and as wide as fits on a terminal, whole in a pipe.

Owns: the layout.  Never: chooses the columns, imports rich for a pipe.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

_BETWEEN: Final = " | "


class TextTable(NamedTuple):
    """Headers, and rows with one cell per header.  `dispensable`: columns that a narrow terminal
    does without, in the order in which they are left out."""

    headers: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    dispensable: tuple[str, ...] = ()


def fitted(table: TextTable, width: int) -> TextTable:
    """The table without the dispensable columns that do not fit into `width` characters."""
    for header in table.dispensable:
        if max(map(len, plain_lines(table))) <= width:
            break
        at = table.headers.index(header)
        table = TextTable(
            (*table.headers[:at], *table.headers[at + 1 :]),
            [[*row[:at], *row[at + 1 :]] for row in table.rows],
        )
    return table


def plain_lines(table: TextTable) -> list[str]:
    """Columns two spaces apart, without rules; a stable format for scripts and tests."""
    cells = [table.headers, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.headers))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def side_by_side(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Two texts beside each other, each in half of the width; longer lines continue below."""
    half = (width - len(_BETWEEN)) // 2

    def folded(lines: Sequence[str]) -> list[str]:
        indents = (len(line) - len(line.lstrip()) for line in lines)
        return [
            part
            for line, indent in zip(lines, indents, strict=True)
            for part in textwrap.wrap(line, half, subsequent_indent=" " * (indent + 2)) or [""]
        ]

    pairs = zip_longest(folded(left), folded(right), fillvalue="")
    return [f"{one.ljust(half)}{_BETWEEN}{other}".rstrip() for one, other in pairs]


def column_at(table: TextTable, column: int) -> int:
    """The position at which a column begins in `plain_lines`."""
    cells = [table.headers, *table.rows]
    return sum(max(len(row[before]) for row in cells) + 2 for before in range(column))


def print_tables(tables: Sequence[TextTable]) -> None:
    """Print the tables, with an empty line before each."""
    if not sys.stdout.isatty():
        for table in tables:
            print("\n" + "\n".join(plain_lines(table)))
        return
    from rich.text import Text

    from kcluster.plain_output import plain_console

    console = plain_console(highlight=False, soft_wrap=True)
    for table in tables:
        shown = fitted(table, console.width)
        head, *lines = plain_lines(shown)
        console.print()
        console.print(Text(head, style="bold"))
        state = shown.headers.index("state") if "state" in shown.headers else None
        for line, row in zip(lines, shown.rows, strict=True):
            text = Text(line)
            if state is not None:
                start = column_at(shown, state)
                text.stylize(_style(row[state]), start, start + len(row[state]))
            console.print(text)


def _style(cell: str) -> str:
    if cell == "up":
        return "green"
    return "red" if cell.startswith(("down", "paused", "up, fenced")) else ""
