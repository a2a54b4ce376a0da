"""A sweep's grid: a YAML file of settings with one or several values each, read as cells.

Owns: the grid's syntax, problems with their line and column, the combinations that are left out,
cells and seeds as arguments of a command.  Never: defines a column (columns.py), runs anything,
knows Spark.  Kafka: no counterpart.

    seeds: 100
    grid:
      replication_factor: 3
      min_insync_replicas: [1, 2]
      mtbf: 60s
"""

from __future__ import annotations

import itertools
import math
import os
from typing import Any, Final

from msgspec import Struct, structs

from kcluster.config.files.fields import StoryText, Whole, fields_of, text
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import Problem, ProblemsError, join, show, unknown
from kcluster.config.files.reading import TreeReader, is_null, kind
from kcluster.config.files.source import FileKind
from kcluster.config.files.tree import Items, Map, Node
from kcluster.pipeline.sweep.columns import (
    FAILURE_DETAILS,
    FAILURES,
    NONE,
    Cell,
    contradictions,
    format_value,
)

MAX_CELLS: Final = 10_000
MAX_RUNS: Final = 10_000_000
"""The most runs, cells times seeds; the driver keeps one bit per run."""
DEFAULT_SEEDS: Final = 100
_KEYS: Final = ("name", "story", "seeds", "grid")
_SEEDS: Final = Whole(1, MAX_RUNS)
_SEED: Final = Whole(0, 2**63 - 1)


class GridError(ProblemsError):
    """The error for an invalid grid."""


class Grid(Struct, frozen=True):
    """Cells and seeds; a cell's title has the columns in which cells differ."""

    name: str
    story: str
    cells: tuple[Cell, ...]
    varied: tuple[str, ...]
    """Keys of the columns that have more than one value, in the file's order."""
    seeds: tuple[int, ...]
    left_out: int = 0
    """The number of impossible combinations, such as those with more replicas than brokers."""
    source: str = ""
    reasons: tuple[str, ...] = ()
    """The reasons why combinations are impossible, each once."""

    def title(self, at: int) -> str:
        """The title of a cell: `replication_factor=3 min_insync_replicas=1`."""
        columns = self.cells[at].columns()
        return " ".join(f"{key}={columns[key]}" for key in self.varied) or self.name

    def find(self, words: str) -> int:
        """The index of the cell with this number (from 1), or with these columns:
        `acks=1,brokers=3`.  ValueError if no cell matches, or several."""
        number = whole_number(words)
        if number is not None:
            if 1 <= number <= len(self.cells):
                return number - 1
            raise ValueError(f"cell {words}: the cells are 1 to {len(self.cells)}")
        wanted = dict(
            part.strip().partition("=")[::2] for part in words.replace(" ", ",").split(",") if part
        )
        known = self.cells[0].columns()
        for key in wanted:
            if key not in known:
                raise ValueError(f"cell {show(words)}: {key}: {unknown('column', key, known)}")
        matches = [
            at
            for at, cell in enumerate(self.cells)
            if all(cell.columns()[key] == value for key, value in wanted.items())
        ]
        if len(matches) == 1:
            return matches[0]
        count = f"{len(matches)} cells match" if matches else "no cell matches"
        raise ValueError(f"cell {show(words)}: {count}; {self.title(0)} is cell 1")


_FILE: Final = FileKind("grid", GridError)


def load_grid(path: str | os.PathLike[str]) -> Grid:
    """The grid of a file.  GridError lists every problem."""
    return _grid(*_FILE.load(path)[1:], os.fspath(path))


def parse_grid(yaml_text: str | bytes, source: str = "grid.yaml") -> Grid:
    """The grid of a YAML text.  GridError lists every problem."""
    return _grid(*_FILE.parse(yaml_text, source)[1:], source)


def _grid(node: Node, problems: list[Problem], source: str) -> Grid:
    reading = TreeReader(source)
    reading.problems += problems
    if not isinstance(node, Map):
        reading.wrong(node, "", f"{kind(node)}; a grid is a mapping with keys like seeds, grid")
        raise GridError(reading.problems)
    top = reading.entries(node, "", _KEYS, "key of a grid file")
    name = text().read(reading, top["name"], "name") if "name" in top else None
    story = StoryText().read(reading, top["story"], "story") if "story" in top else None
    seeds = _seeds(reading, top.get("seeds"))
    columns = _columns(reading, top.get("grid"), node)
    cells, reasons = _combined(reading, columns, top.get("grid"))
    if cells and not reading.problems:
        _check_size(reading, len(cells), len(seeds), top.get("seeds") or node)
        _check_failures(reading, cells, top["grid"])
    if reading.problems:
        raise GridError(reading.problems)
    keys = {field.name: field.key for field in fields_of(Cell)}
    varied = tuple(keys[name] for name, values in columns.items() if len(values) > 1)
    named = name or os.path.basename(source).rpartition(".")[0] or "grid"
    each = tuple(dict.fromkeys(reasons))
    return Grid(named, story or "", cells, varied, seeds, len(reasons), source, each)


def with_seeds(grid: Grid, words: str) -> Grid:
    """The grid with other seeds: `100` for 1 to 100, or a list such as `1..50,77`.  Raises
    ValueError."""
    if words.isdecimal():
        words = f"1..{words}"
    seeds: dict[int, None] = {}
    most = MAX_RUNS // len(grid.cells)
    for part in words.split(","):
        low, dots, high = part.strip().partition("..")
        first = whole_number(low)
        last = whole_number(high) if dots else first
        if first is None or last is None:
            raise ValueError(f"{show(part)} is not a seed; write 100, or 1..50,77")
        some = range(first, last + 1)
        if not some:
            raise ValueError(f"{show(part)}: no seeds")
        if some[-1] > _SEED.high:
            raise ValueError(f"{show(part)}: {_SEED.high} is the highest seed")
        if some[-1] - some[0] >= most - len(seeds):
            raise ValueError(f"{show(words)}: {_too_many(len(grid.cells))}")
        for seed in some:
            if seed in seeds:
                raise ValueError(f"seed {seed} twice")
            seeds[seed] = None
    return structs.replace(grid, seeds=tuple(seeds))


def _seeds(reading: TreeReader, node: Node | None) -> tuple[int, ...]:
    """Seeds from a count (1 to that number) or from a list."""
    if node is None:
        return tuple(range(1, DEFAULT_SEEDS + 1))
    if not isinstance(node, Items):
        count = _SEEDS.read(reading, node, "seeds")
        return tuple(range(1, (count or 0) + 1))
    seeds: dict[int, None] = {}
    for at, item in enumerate(node.items):
        seed = _SEED.read(reading, item, join("seeds", at))
        if seed in seeds:
            reading.wrong(item, join("seeds", at), f"seed {seed} twice")
        elif seed is not None:
            seeds[seed] = None
    if not node.items:
        reading.wrong(node, "seeds", "empty; at least one seed is needed")
    return tuple(seeds)


def _columns(reading: TreeReader, node: Node | None, root: Map) -> dict[str, list[object]]:
    """Values by field, in the order of the file."""
    known = {field.key: field for field in fields_of(Cell)}
    if node is None or not isinstance(node, Map) or not node.entries:
        reading.wrong(
            root.entries.get("grid") or root,
            "grid",
            "empty: it must be a mapping of columns like acks: [1, all]",
        )
        return {}
    columns: dict[str, list[object]] = {}
    for written, entry in node.entries.items():
        path = join("grid", written)
        key = written if written in known else written.replace(".", "_")
        if key not in known:
            reading.wrong(entry, path, unknown("column", written, known))
            continue
        if known[key].name in columns:
            reading.wrong(entry, path, f"{key} is given twice")
            continue
        if is_null(entry.value) or (isinstance(entry.value, Items) and not entry.value.items):
            reading.wrong(entry, path, "empty; at least one value is needed")
            continue
        items = entry.value.items if isinstance(entry.value, Items) else [entry.value]
        values: list[object] = []
        for number, item in enumerate(items):
            where = join(path, number) if isinstance(entry.value, Items) else path
            value = known[key].kind.read(reading, item, where)
            if value is not None and value in values:
                reading.wrong(item, where, f"{format_value(known[key].name, value)} twice")
            elif value is not None:
                values.append(value)
        columns[known[key].name] = values
    return columns


def _combined(
    reading: TreeReader, columns: dict[str, list[Any]], at: Node | None
) -> tuple[tuple[Cell, ...], list[str]]:
    """The possible combinations, and the reason for each impossible one."""
    if reading.problems or at is None:
        return (), []
    count = math.prod(len(values) for values in columns.values())
    if count > MAX_CELLS:
        reading.wrong(at, "grid", f"{count:,} cells; at most {MAX_CELLS:,} are allowed")
        return (), []
    cells: list[Cell] = []
    reasons: list[str] = []
    for combination in itertools.product(*columns.values()):
        cell = Cell(**dict(zip(columns, combination, strict=True)))
        reason = next(contradictions(cell), None)
        if reason is None:
            cells.append(cell)
        else:
            reasons.append(reason)
    if not cells:
        reading.wrong(at, "grid", f"no cell is left: {reasons[0]}")
    return tuple(cells), reasons


def _check_size(reading: TreeReader, cells: int, seeds: int, at: Node) -> None:
    if cells * seeds > MAX_RUNS:
        reading.wrong(at, "seeds", f"{seeds:,} is too many: {_too_many(cells)}")


def _too_many(cells: int) -> str:
    most = MAX_RUNS // cells
    return f"at most {MAX_RUNS:,} runs are allowed, or {most:,} seeds of {cells:,} cells"


def _check_failures(reading: TreeReader, cells: tuple[Cell, ...], node: Node) -> None:
    """Report columns about failures in a grid without failures."""
    assert isinstance(node, Map)  # the columns were read from this node
    if any(cell.failures or cell.mtbf_ms != NONE for cell in cells):
        return
    for key, entry in node.entries.items():
        if key in FAILURE_DETAILS:
            ways = " or ".join(FAILURES)
            reading.wrong(entry, join("grid", key), f"it has no effect without {ways}")
