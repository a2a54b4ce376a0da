"""Tables: by rich on a terminal, plain aligned columns in a pipe.

Owns: the layout.  Never: chooses the columns, imports rich for a pipe.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple


class TextTable(NamedTuple):
    """Headers, and rows with one cell per header."""

    headers: tuple[str, ...]
    rows: Sequence[Sequence[str]]


def plain_lines(table: TextTable) -> list[str]:
    """Columns two spaces apart, without rules; a stable format for scripts and tests."""
    cells = [table.headers, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.headers))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def print_tables(tables: Sequence[TextTable]) -> None:
    """Print the tables, with an empty line before each."""
    if not sys.stdout.isatty():
        for table in tables:
            print("\n" + "\n".join(plain_lines(table)))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for table in tables:
        shown = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for header in table.headers:
            shown.add_column(header)
        for row in table.rows:
            shown.add_row(*(Text(cell, style=_style(cell)) for cell in row))
        console.print(shown)


def _style(cell: str) -> str:
    if cell == "up":
        return "green"
    return "red" if cell.startswith(("down", "paused", "up, fenced")) else ""
