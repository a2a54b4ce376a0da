"""Run directories as DataFrames, with one table for many runs, and the problems of their files.

Owns: columns and their types, the places of bad lines, missing files.  Never: interprets a row
(audit.py, timeline.py).
Kafka: no counterpart.

Every table has `run`, the name of the run directory.  Files of any size are split and read by all
cores.  Small tables are cached.  The ledger's tables, sends and reads, are read when needed
(`whole`), and include bad lines, so that these are counted in the same pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import inspect

from kcluster.json_types import JsonObject
from kcluster.runs.directory import INFO, VERDICT, WRONG_JSON, RunError, find_run, read_info
from kcluster.runs.record import TABLES, RunInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARTITION: Final = ("run", "topic", "partition")
MAX_PROBLEMS: Final = 20
"""The number of bad lines per file that are reported one by one."""
IS_BAD: Final = "is_bad"
_CORRUPT: Final = "_corrupt"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
"""Names that need no escaping in a URL."""
_SCALARS: Final[dict[type[inspect.Type], str]] = {
    inspect.IntType: "bigint",
    inspect.FloatType: "double",
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.EnumType: "string",
}


class WindowRow(msgspec.Struct, frozen=True, gc=False):
    """A window without reads or writes of a partition, as in verdict.json."""

    kind: str
    partition: tuple[str, int]
    from_ms: int
    to_ms: int
    is_over: bool
    clients: list[str]
    errors: list[str]
    reasons: list[JsonObject]


class Judgement(msgspec.Struct, frozen=True):
    """The part of verdict.json that is used here."""

    windows: list[WindowRow] = []


class RunDirectory(msgspec.Struct, frozen=True):
    """One run directory.  `name` is the column `run` of every table."""

    path: Path
    info: RunInfo
    windows: list[WindowRow]

    @property
    def name(self) -> str:
        return self.path.name


def find_runs(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[RunDirectory], list[str]]:
    """The runs at or directly below each path, sorted by name, and problems of their files.
    RunError if a path has no run, two runs share a name, or a run has another format."""
    runs: dict[str, RunDirectory] = {}
    problems: list[str] = []
    for path in map(Path, paths):
        for place in _places(path):
            other = runs.get(place.name)
            if other is None:
                runs[place.name] = _run(place, problems)
            elif other.path != place:
                raise RunError(f"{place}: {other.path} is a run of the same name")
    return [runs[name] for name in sorted(runs)], problems


def _places(path: Path) -> list[Path]:
    if (path / INFO).exists() or not path.is_dir():
        return [find_run(path).resolve()]
    below = (each.resolve() for each in sorted(path.iterdir()) if (each / INFO).exists())
    places = list(dict.fromkeys(below))
    return places or [find_run(path).resolve()]


def _run(path: Path, problems: list[str]) -> RunDirectory:
    info = read_info(path)
    try:
        judged = msgspec.json.decode((path / VERDICT).read_bytes(), type=Judgement)
    except (OSError, *WRONG_JSON) as error:
        reason = getattr(error, "strerror", None) or error
        problems.append(f"{path / VERDICT}: {reason}")
        judged = Judgement()
    return RunDirectory(path, info, judged.windows)


class Tables:
    """The tables of some runs.  `problems`: bad lines (`file:line: why`) and missing files; the
    other lines are used."""

    def __init__(self, spark: SparkSession, runs: Sequence[RunDirectory]) -> None:
        self.spark = spark
        self.runs = list(runs)
        self.problems: list[str] = []
        self._kept: dict[str, DataFrame] = {}
        self._whole: dict[str, DataFrame] = {}
        self._derived: list[DataFrame] = []

    def __getitem__(self, field: str) -> DataFrame:
        """The table of a field of RunRecord without bad lines; it is cached."""
        self.load(field)
        return self._kept[field].where(f"not {IS_BAD}").drop(IS_BAD)

    def load(self, *fields: str) -> None:
        """Read and cache these tables in one job, and report their bad lines."""
        from pyspark.sql import functions as F

        fresh = [field for field in fields if field not in self._kept]
        bad: DataFrame | None = None
        for field in fresh:
            table = self._kept[field] = self.whole(field).persist()
            here = table.where(IS_BAD).select("run", F.lit(field).alias("field"))
            bad = here if bad is None else bad.union(here)
        if bad is not None:
            bad_runs = bad.distinct().collect()
            for field in fresh:
                self.report(field, (row["run"] for row in bad_runs if row["field"] == field))

    def whole(self, field: str) -> DataFrame:
        """The table with the column `is_bad`; the topic of a bad line is null, its other columns
        have the readable values.  It is not cached.  The caller passes runs with bad lines to
        `report`."""
        table = self._whole.get(field)
        if table is None:
            file, row = TABLES[field].file, TABLES[field].row
            paths = [run.path / file for run in self.runs]
            there = [path for path in paths if path.exists()]
            self.problems += [
                f"{path}: No such file or directory" for path in paths if path not in there
            ]
            table = self._whole[field] = frame_of(self.spark, there, row)
        return table

    def report(self, field: str, runs: Iterable[str]) -> None:
        """Find the bad lines in the files of these runs, and add them to `problems`."""
        table = TABLES[field]
        by_name = {run.name: run for run in self.runs}
        for name in sorted(runs):
            self.problems += bad_lines(by_name[name].path / table.file, table.row)

    def keep(self, table: DataFrame) -> DataFrame:
        """Cache a table that was made of these."""
        self._derived.append(table.persist())
        return table

    def close(self) -> None:
        """Release the cached tables."""
        for table in (*self._derived, *self._kept.values()):
            table.unpersist()
        self._derived.clear()
        self._kept.clear()


def frame_of(
    spark: SparkSession, files: Sequence[Path], row_type: type[msgspec.Struct]
) -> DataFrame:
    """Files of JSON lines as one DataFrame.  A bad line has `is_bad`; its topic is null, so that it
    joins no other row, and its other columns have the readable values."""
    from pyspark.sql import functions as F

    schema = f"{ddl(row_type)}, {_CORRUPT} string"
    if not files:
        empty = spark.createDataFrame([], schema).drop(_CORRUPT)
        return empty.select("*", F.lit("").alias("run"), F.lit(False).alias(IS_BAD))
    raw = spark.read.schema(schema).json(
        [_pattern(file) for file in files], mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT
    )
    run = _folder_of([file.parent.name for file in files])
    names = [name for name in raw.columns if name != _CORRUPT]
    marked = raw.select(*names, run.alias("run"), _is_bad(row_type).alias(IS_BAD))
    if "topic" not in names:
        return marked
    return marked.withColumn("topic", F.when(~F.col(IS_BAD), F.col("topic")))


def _folder_of(names: Sequence[str]) -> Column:
    """The directory of a row's file, which is one of `names`."""
    from pyspark.sql import functions as F

    if len(names) == 1:
        return F.lit(names[0])
    folder = F.substring_index(F.substring_index(F.col("_metadata.file_path"), "/", -2), "/", 1)
    # Decoding is slow, and most names do not need it.
    return folder if all(map(_PLAIN.fullmatch, names)) else F.url_decode(folder)


def _pattern(path: Path) -> str:
    """A glob pattern that matches only this path; Spark reads paths as patterns."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))


def ddl(row_type: type[msgspec.Struct]) -> str:
    """The columns of a row type as Spark DDL."""
    return _columns(_struct(row_type).fields, " ")


def _struct(row_type: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(row_type)
    assert isinstance(info, inspect.StructType), row_type
    return info


def _columns(fields: Iterable[inspect.Field], between: str) -> str:
    return ", ".join(f"`{each.encode_name}`{between}{spark_type(each.type)}" for each in fields)


def spark_type(kind: inspect.Type) -> str:
    """The Spark type of a msgspec type; an integer below 2**31 by its bound is an `int`.  Tagged
    structs become one struct with the fields of all; a field name must have one type."""
    match kind:
        case inspect.IntType(le=bound) if bound is not None and bound < 1 << 31:
            return "int"
        case inspect.UnionType(types=types):
            others = [each for each in types if not isinstance(each, inspect.NoneType)]
            structs = [each for each in others if isinstance(each, inspect.StructType)]
            if len(structs) == len(others) > 1:
                return _merged(structs)
            assert len(others) == 1, kind
            return spark_type(others[0])
        case inspect.StructType(fields=fields):
            return f"struct<{_columns(fields, ': ')}>"
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return f"array<{spark_type(item)}>"
        case inspect.TupleType(item_types=items):
            columns = dict.fromkeys(map(spark_type, items))
            # A topic and a partition, for instance: Spark reads the number as text.
            return f"array<{next(iter(columns)) if len(columns) == 1 else 'string'}>"
        case inspect.DictType(value_type=value):
            return f"map<string, {spark_type(value)}>"
    return _SCALARS[type(kind)]


def _merged(structs: Sequence[inspect.StructType]) -> str:
    (tag_field,) = {each.tag_field for each in structs}
    columns = {tag_field: "string"}
    for struct in structs:
        for each in struct.fields:
            field_type = spark_type(each.type)
            known = columns.setdefault(each.encode_name, field_type)
            assert known == field_type, (each.encode_name, known, field_type)
    return f"struct<{', '.join(f'`{name}`: {column}' for name, column in columns.items())}>"


def _is_bad(row_type: type[msgspec.Struct]) -> Column:
    """Whether a line is not JSON, lacks a required column, or has an event of unknown kind."""
    from pyspark.sql import functions as F

    bad = F.col(_CORRUPT).isNotNull()
    for each in _struct(row_type).fields:
        column, types = F.col(each.encode_name), getattr(each.type, "types", (each.type,))
        if each.required and not any(isinstance(one, inspect.NoneType) for one in types):
            bad = bad | column.isNull()
        tags = {one.tag_field: one.tag for one in types if isinstance(one, inspect.StructType)}
        for tag_field in filter(None, tags):
            known = [one.tag for one in types if isinstance(one, inspect.StructType)]
            bad = bad | ~F.coalesce(column[tag_field].isin(*known), F.lit(False))
    return bad


def bad_lines(path: Path, row_type: type[msgspec.Struct]) -> list[str]:
    """`file:line: why` of each line that is not a row of this type."""
    problems: list[str] = []
    more = 0
    for problem in _bad_lines(path, row_type):
        if len(problems) < MAX_PROBLEMS:
            problems.append(problem)
        else:
            more += 1
    if more:
        problems.append(f"{path}: {more:,} more lines that cannot be read")
    return problems or [f"{path}: lines that Spark cannot read"]


def _bad_lines(path: Path, row_type: type[msgspec.Struct]) -> Iterator[str]:
    decode = msgspec.json.Decoder(row_type).decode
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                decode(line)
            except WRONG_JSON as error:
                yield f"{path}:{number}: {error}"
