"""Run directories as DataFrames, one table of many runs, and what in their files cannot be read.

Owns: columns and their types, which line is bad and where, that a run's files are there.  Never:
knows what a row means (audit.py, timeline.py).
Kafka: no counterpart.

Every table has `run`, the name of its directory, and `at_byte`, `at_row`: sorted by these two, rows
are as in the file.  Sizes do not matter: a file is split, and read by all cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import msgspec

from cluster.runs.directory import INFO, VERDICT, RunError, find_run
from cluster.runs.record import FORMAT, TABLES, RunInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ORDER: Final = ("at_byte", "at_row")
"""Columns that sort the rows of a run as its file has them."""
MAX_PROBLEMS: Final = 20
"""So many bad lines of a file are told one by one."""
_CORRUPT: Final = "_corrupt"
_TYPES: Final[dict[Any, str]] = {
    int: "bigint",
    int | None: "bigint",
    str: "string",
    str | None: "string",
    bool: "boolean",
    dict[str, Any]: "string",
    tuple[int, ...]: "array<bigint>",
    tuple[int, int]: "array<bigint>",
    tuple[int, int] | None: "array<bigint>",
}
"""A dict is left as JSON text, for get_json_object."""


class Run(msgspec.Struct, frozen=True):
    """One run directory.  `verdict` is {} where there is none; `name` is `run` in every table."""

    path: Path
    info: RunInfo
    verdict: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.name


def find_runs(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Run], list[str]]:
    """The runs at or right below each path, by name, and what is wrong with some.  RunError if a
    path has none, if two have one name, or if one is of a newer format."""
    found: dict[str, Run] = {}
    problems: list[str] = []
    for path in map(Path, paths):
        for place in _places(path):
            run = _run(place, problems)
            other = found.setdefault(run.name, run)
            if other.path != run.path:
                raise RunError(f"{run.path}: a run of this name is at {other.path} too")
    return [found[name] for name in sorted(found)], problems


def _places(path: Path) -> list[Path]:
    if (path / INFO).exists() or not path.is_dir():
        return [find_run(path).resolve()]
    below = (each.resolve() for each in sorted(path.iterdir()) if (each / INFO).exists())
    places = list(dict.fromkeys(below))
    return places or [find_run(path).resolve()]


def _run(path: Path, problems: list[str]) -> Run:
    try:
        info = msgspec.json.decode((path / INFO).read_bytes(), type=RunInfo)
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"{path / INFO}: {error}") from None
    if info.format != FORMAT:
        text = f"a run directory of format {info.format}; this kcluster reads format {FORMAT}"
        raise RunError(f"{path / INFO}: {text}")
    try:
        verdict = msgspec.json.decode((path / VERDICT).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        problems.append(f"{path / VERDICT}: {error}")
        verdict = {}
    return Run(path, info, verdict)


class Tables:
    """The tables of some runs.  `problems`: places that cannot be read, `file:line: why`, or a
    file that is missing; the rest is used.  A table is checked when it is asked for."""

    def __init__(self, spark: SparkSession, runs: Sequence[Run]) -> None:
        self.spark = spark
        self.runs = list(runs)
        self.problems: list[str] = []
        self._read: dict[str, DataFrame] = {}

    def __getitem__(self, field: str) -> DataFrame:
        """The table of a field of RunRecord: notes, sends, reads, told, appends, moves, leaders."""
        table = self._read.get(field)
        if table is None:
            table = self._read[field] = self._table(field)
        return table

    def close(self) -> None:
        """Forget what is kept on disk of them."""
        for table in self._read.values():
            table.unpersist()
        self._read.clear()

    def _table(self, field: str) -> DataFrame:
        from pyspark import StorageLevel

        file, row_type = TABLES[field]
        there = [run for run in self.runs if (run.path / file).exists()]
        missing = [run for run in self.runs if run not in there]
        self.problems += [f"{run.path / file}: No such file or directory" for run in missing]
        whole = frame_of(self.spark, [run.path / file for run in there], row_type)
        whole = whole.persist(StorageLevel.DISK_ONLY)
        good = whole.where(~_is_bad(row_type)).drop(_CORRUPT)
        bad = whole.where(_is_bad(row_type)).select("run").distinct().orderBy("run").collect()
        by_name = {run.name: run for run in there}
        for row in bad:
            self.problems += bad_lines(by_name[row["run"]].path / file, row_type)
        return good


def frame_of(
    spark: SparkSession, files: Sequence[Path], row_type: type[msgspec.Struct]
) -> DataFrame:
    """Files of JSON lines as one DataFrame; a bad line is in `_corrupt`, all else null."""
    from pyspark.sql import functions as F

    schema = f"{ddl(row_type)}, {_CORRUPT} string"
    if not files:
        empty = spark.createDataFrame([], schema)
        places = (F.lit("").alias("run"), F.lit(0).alias("at_byte"), F.lit(0).alias("at_row"))
        return empty.select("*", *places)
    raw = spark.read.schema(schema).json(
        [str(file) for file in files], mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT
    )
    folder = F.element_at(F.split(F.col("_metadata.file_path"), "/"), -2)
    return raw.select(
        "*",
        F.url_decode(folder).alias("run"),
        F.col("_metadata.file_block_start").alias("at_byte"),
        F.monotonically_increasing_id().alias("at_row"),
    )


def ddl(row_type: type[msgspec.Struct]) -> str:
    """The columns of a row type, in Spark's words."""
    hints = get_type_hints(row_type)
    return ", ".join(
        f"`{field.encode_name}` {_TYPES[hints[field.name]]}"
        for field in msgspec.structs.fields(row_type)
    )


def _is_bad(row_type: type[msgspec.Struct]) -> Column:
    """No JSON, or a column that must be there is not."""
    from pyspark.sql import functions as F

    hints = get_type_hints(row_type)
    bad = F.col(_CORRUPT).isNotNull()
    for field in msgspec.structs.fields(row_type):
        if field.required and type(None) not in getattr(hints[field.name], "__args__", ()):
            bad = bad | F.col(field.encode_name).isNull()
    return bad


def bad_lines(path: Path, row_type: type[msgspec.Struct]) -> list[str]:
    """`file:line: why` of each line that is no such row; read line by line."""
    problems = list(_bad_lines(path, row_type))
    more = len(problems) - MAX_PROBLEMS
    if more > 0:
        problems[MAX_PROBLEMS:] = [f"{path}: {more:,} more lines that cannot be read"]
    return problems


def _bad_lines(path: Path, row_type: type[msgspec.Struct]) -> Iterator[str]:
    decode = msgspec.json.Decoder(row_type).decode
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                yield f"{path}:{number}: {error}"
