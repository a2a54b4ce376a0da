"""Tables: rich ones on a terminal, plain aligned columns in a pipe.

Owns: the layout.  Never: what is in them.  rich is imported only for a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from msgspec import Struct


class Table(Struct, frozen=True):
    """Headers, and rows of as many cells."""

    headers: tuple[str, ...]
    rows: Sequence[Sequence[str]]


def plain_lines(table: Table) -> list[str]:
    """Columns two spaces apart, no lines between; stable for scripts and tests."""
    cells = [table.headers, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.headers))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def print_tables(tables: Sequence[Table]) -> None:
    """All of them, an empty line before each."""
    if not sys.stdout.isatty():
        for table in tables:
            print("\n" + "\n".join(plain_lines(table)))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False)
    for table in tables:
        shown = RichTable(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for header in table.headers:
            shown.add_column(header)
        for row in table.rows:
            shown.add_row(*(Text(cell, style=_style(cell)) for cell in row))
        console.print(shown)


def _style(cell: str) -> str:
    if cell == "up":
        return "green"
    return "red" if cell.startswith(("down", "paused", "up, fenced")) else ""
