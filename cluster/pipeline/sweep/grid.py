"""A sweep's grid: a YAML file of settings with one value or several each, as cells.

Owns: the columns, their kinds and defaults, reading a grid with every problem at its place, which
combinations are left out.  Never: runs anything, knows Spark.
Kafka: no counterpart.

    seeds: 100
    grid:
      replication_factor: 3
      min_insync_replicas: [1, 2]
      mtbf: 60s
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct, structs

from cluster.config.problems import Problem, join, show, unknown
from cluster.config.reading import Reading, is_null, kind
from cluster.config.tree import Items, Map, Node, Scalar, from_yaml
from cluster.scenario.actions.faults import Faults as FaultsAction
from cluster.scenario.fields import (
    Flag,
    Kind,
    OneOf,
    Schema,
    Story,
    Whole,
    duration,
    fields_of,
    rate,
    size,
    text,
)
from cluster.scenario.profiles import find_profile

MAX_CELLS: Final = 10_000
MAX_BYTES: Final = 512 * 1024
DEFAULT_SEEDS: Final = 100
_KEYS: Final = ("name", "story", "seeds", "grid")
_SEEDS: Final = Whole(1, 10_000_000)
_SEED: Final = Whole(0, 2**63 - 1)
NONE: Final = "none"
_PROFILE: Final = fields_of(FaultsAction)[0].kind


class GridError(ValueError):
    """A grid cannot be used; str() has one line for each problem, in order of place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        super().__init__("\n".join(map(str, self.problems)))


class OrNone(Struct, frozen=True):
    """A kind, or the word `none`."""

    inner: Kind

    def read(self, reading: Reading, node: Node, path: str) -> Any:
        if isinstance(node, Scalar) and node.text == NONE:
            return NONE
        return self.inner.read(reading, node, path)

    def schema(self) -> Schema:
        return {"anyOf": [{"const": NONE}, self.inner.schema()]}


class Faults(Struct, frozen=True):
    """A fault profile: its name, and all of it as JSON, so that a cell needs no other file."""

    name: str
    profile: str


class FaultsKind(Struct, frozen=True):
    """A profile of random faults, as in scenarios; kept as it was written."""

    def read(self, reading: Reading, node: Node, path: str) -> Faults | None:
        before = len(reading.problems)
        _PROFILE.read(reading, node, path)
        if len(reading.problems) > before:
            return None
        if isinstance(node, Scalar):
            file = find_profile(node.text or "", os.path.dirname(reading.source))
            assert file is not None  # it was just read
            with open(file, encoding="utf-8") as opened:
                found, _ = from_yaml(opened.read(), file)
            assert found is not None
            return Faults(node.text or "", json.dumps(_plain(found)))
        return Faults("inline", json.dumps(_plain(node)))

    def schema(self) -> Schema:
        return _PROFILE.schema()


class Cell(Struct, frozen=True):
    """One combination of settings; each field is a column, its key the name without the unit."""

    brokers: Annotated[int, Whole(1, 99)] = 3
    racks: Annotated[int, Whole(0, 99)] = 0
    """Brokers lie in so many racks in turn; 0: they have none."""
    partitions: Annotated[int, Whole(1, 1_000)] = 1
    replication_factor: Annotated[int, Whole(1, 99)] = 3
    min_insync_replicas: Annotated[int, Whole(1, 99)] = 1
    acks: Annotated[str, OneOf("acks", ("0", "1", "all"))] = "all"
    idempotent: Annotated[str | bool, OrNone(Flag())] = NONE
    """none: as the Java client does by its other settings."""
    unclean_election: Annotated[bool, Flag()] = False
    flush_messages: Annotated[str | int, OrNone(Whole(1))] = NONE
    flush_interval_ms: Annotated[str | int, OrNone(duration(1))] = NONE
    replica_lag_ms: Annotated[int, duration(1)] = 30_000
    """replica.lag.time.max.ms."""
    failures: Annotated[int, Whole(0, 1_000)] = 0
    """Exactly so many in a run, of brokers that are up, at times drawn from it."""
    mtbf_ms: Annotated[str | int, OrNone(duration(1))] = NONE
    """Each broker, by itself, fails after a time of this mean, drawn exponentially."""
    repair_ms: Annotated[str | int, OrNone(duration(1))] = 10_000
    """Mean time until it is back, drawn exponentially; none: it stays away until the run's end."""
    failure: Annotated[str, OneOf("failure", ("kill", "power", "wipe", "clean", "pause"))] = "power"
    first_failure_ms: Annotated[int, duration()] = 1_000
    """Before this time nothing fails."""
    faults: Annotated[str | Faults, OrNone(FaultsKind())] = NONE
    rate_per_s: Annotated[float, rate()] = 10.0
    size_bytes: Annotated[int, size(1, 1 << 20)] = 100
    consumers: Annotated[int, Whole(0, 100)] = 1
    duration_ms: Annotated[int, duration(1_000)] = 60_000

    @property
    def key(self) -> str:
        """Its identity, by all that it is; the same in every grid and process."""
        return blake2b(msgspec.json.encode(self), digest_size=8).hexdigest()

    def columns(self) -> dict[str, str]:
        """Every column as words."""
        return {f.key: _words(f.name, getattr(self, f.name)) for f in fields_of(Cell)}


class Grid(Struct, frozen=True):
    """Cells, their names by what differs among them, and seeds."""

    name: str
    story: str
    cells: tuple[Cell, ...]
    varied: tuple[str, ...]
    """Keys of the columns that have more than one value, in the file's order."""
    seeds: tuple[int, ...]
    left_out: int = 0
    """Combinations that cannot be: more replicas than brokers, more in sync than replicas."""
    source: str = ""

    def title(self, at: int) -> str:
        """`replication_factor=3 min_insync_replicas=1`."""
        columns = self.cells[at].columns()
        return " ".join(f"{key}={columns[key]}" for key in self.varied) or self.name

    def find(self, words: str) -> int:
        """The cell by number (from 1), or by enough of its columns: `acks=1,brokers=3`.  ValueError
        where that is none, or several."""
        if words.isdecimal():
            if 1 <= int(words) <= len(self.cells):
                return int(words) - 1
            raise ValueError(f"cell {words}: there are cells 1 to {len(self.cells)}")
        wanted = dict(
            part.strip().partition("=")[::2] for part in words.replace(" ", ",").split(",") if part
        )
        known = self.cells[0].columns()
        for key in wanted:
            if key not in known:
                raise ValueError(f"cell {show(words)}: {key}: {unknown('column', key, known)}")
        found = [
            at
            for at, cell in enumerate(self.cells)
            if all(cell.columns()[key] == value for key, value in wanted.items())
        ]
        if len(found) == 1:
            return found[0]
        many = f"{len(found)} cells are so" if found else "no cell is so"
        raise ValueError(f"cell {show(words)}: {many}; {self.title(0)} is cell 1")


def load_grid(path: str | os.PathLike[str]) -> Grid:
    """The grid of a file; GridError."""
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise GridError([Problem(source, 0, 0, "", why)]) from None
    if len(data) > MAX_BYTES:
        raise GridError([Problem(source, 1, 1, "", "larger than 512 KiB: not a grid")])
    try:
        return parse_grid(data.decode("utf-8-sig"), source)
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise GridError([Problem(source, line, 1, "", "not UTF-8")]) from None


def parse_grid(yaml_text: str, source: str = "grid.yaml") -> Grid:
    """The grid of a YAML text; GridError with every problem."""
    node, problems = from_yaml(yaml_text, source)
    if node is None:
        raise GridError(problems or [Problem(source, 1, 1, "", "empty: not a grid")])
    reading = Reading(source)
    reading.problems += problems
    if not isinstance(node, Map):
        reading.wrong(node, "", f"{kind(node)}; a grid is a mapping with keys like seeds, grid")
        raise GridError(reading.problems)
    top = reading.entries(node, "", _KEYS, "key of a grid file")
    name = text().read(reading, top["name"], "name") if "name" in top else None
    story = Story().read(reading, top["story"], "story") if "story" in top else None
    seeds = _seeds(reading, top.get("seeds"))
    columns = _columns(reading, top.get("grid"), node)
    cells, left_out = _combined(reading, columns, top.get("grid"))
    if reading.problems:
        raise GridError(reading.problems)
    keys = {field.name: field.key for field in fields_of(Cell)}
    varied = tuple(keys[name] for name, values in columns.items() if len(values) > 1)
    named = name or os.path.basename(source).rpartition(".")[0] or "grid"
    return Grid(named, story or "", cells, varied, seeds, left_out, source)


def with_seeds(grid: Grid, words: str) -> Grid:
    """With these instead: `100` for 1 to 100, or some: `1..50,77`.  ValueError."""
    if words.isdecimal():
        words = f"1..{words}"
    seeds: dict[int, None] = {}
    for part in words.split(","):
        first, dots, last = part.strip().partition("..")
        if not first.isdecimal() or not (last.isdecimal() or not dots):
            raise ValueError(f"{show(part)} is no seed; write 100, or 1..50,77")
        for seed in range(int(first), int(last or first) + 1):
            if seed in seeds:
                raise ValueError(f"seed {seed} twice")
            seeds[seed] = None
    if not seeds:
        raise ValueError(f"{show(words)}: no seeds, no runs")
    return structs.replace(grid, seeds=tuple(seeds))


def _seeds(reading: Reading, node: Node | None) -> tuple[int, ...]:
    """A number of seeds, from 1 on, or a list of them."""
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
        reading.wrong(node, "seeds", "empty: no seeds, no runs")
    return tuple(seeds)


def _columns(reading: Reading, node: Node | None, root: Map) -> dict[str, list[Any]]:
    """Values by field, in the file's order."""
    known = {field.key: field for field in fields_of(Cell)}
    if node is None or not isinstance(node, Map) or not node.entries:
        reading.wrong(
            root.entries.get("grid") or root,
            "grid",
            "empty: it must be a mapping of columns like acks: [1, all]",
        )
        return {}
    columns: dict[str, list[Any]] = {}
    reading.entries(node, "grid", tuple(known), "column")
    for key, entry in node.entries.items():
        path = join("grid", key)
        if key not in known:
            continue
        if is_null(entry.value) or (isinstance(entry.value, Items) and not entry.value.items):
            reading.wrong(entry, path, "empty: no value, no cell")
            continue
        items = entry.value.items if isinstance(entry.value, Items) else [entry.value]
        values: list[Any] = []
        for number, item in enumerate(items):
            where = join(path, number) if isinstance(entry.value, Items) else path
            value = known[key].kind.read(reading, item, where)
            if value is not None and value in values:
                reading.wrong(item, where, f"{_words(known[key].name, value)} twice")
            elif value is not None:
                values.append(value)
        columns[known[key].name] = values
    return columns


def _combined(
    reading: Reading, columns: dict[str, list[Any]], at: Node | None
) -> tuple[tuple[Cell, ...], int]:
    """All combinations that can be, and how many cannot."""
    count = 1
    for values in columns.values():
        count *= len(values)
    if reading.problems or at is None:
        return (), 0
    if count > MAX_CELLS:
        reading.wrong(at, "grid", f"{count:,} cells; {MAX_CELLS:,} are the most")
        return (), 0
    cells: list[Cell] = []
    whys: list[str] = []
    for combination in itertools.product(*columns.values()):
        cell = Cell(**dict(zip(columns, combination, strict=True)))
        why = next(_contradictions(cell), None)
        if why is None:
            cells.append(cell)
        else:
            whys.append(why)
    if not cells:
        reading.wrong(at, "grid", f"no cell is left: {whys[0]}")
    return tuple(cells), len(whys)


def _contradictions(cell: Cell) -> Iterator[str]:
    if cell.replication_factor > cell.brokers:
        yield f"{cell.replication_factor} replicas need as many brokers, not {cell.brokers}"
    if cell.min_insync_replicas > cell.replication_factor:
        yield f"{cell.min_insync_replicas} in sync of {cell.replication_factor} replicas"
    if cell.racks > cell.brokers:
        yield f"{cell.racks} racks with {cell.brokers} brokers"
    ways = [cell.failures > 0, cell.mtbf_ms != NONE, cell.faults != NONE]
    if sum(ways) > 1:
        yield "failures, mtbf and faults are three ways to say what fails; one of them is enough"
    if cell.idempotent is True and cell.acks != "all":
        yield "an idempotent producer needs acks=all"


def _plain(node: Node) -> Any:
    """A tree as Python values, numbers and flags as such."""
    if isinstance(node, Map):
        return {key: _plain(entry.value) for key, entry in node.entries.items() if key != "story"}
    if isinstance(node, Items):
        return [_plain(item) for item in node.items]
    if node.text is None or node.quoted:
        return node.text
    if node.text in ("true", "false"):
        return node.text == "true"
    return int(node.text) if node.text.isdecimal() else node.text


def _words(field: str, value: Any) -> str:
    """As in a file: `10s`, `none`, `true`."""
    if isinstance(value, Faults):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if field.endswith("_ms") and isinstance(value, int):
        return f"{value // 1000}s" if value % 1000 == 0 else f"{value}ms"
    return f"{value:g}" if isinstance(value, float) else str(value)
