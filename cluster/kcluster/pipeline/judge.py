"""The judge of histories for files of any size: one task per partition of Kafka.

Owns: the way of each line to the partitions that it concerns, the merging of their judgements.
Never: judges (judge/parts.py does, in each task and at the end), so a judgement equals that of
`kcluster judge`.  Kafka: no counterpart.

Files hold JSON lines of operations (docs/reference/histories.md).  Spark reads them, finds the
partitions of each line, and gives a task all lines of one partition, in their order.  A task holds
them in memory; so does the driver hold the edges between transactions.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kcluster.clients.ledger import Partition
from kcluster.config.files.problems import Problem, ProblemsError
from kcluster.judge.files import operation_of
from kcluster.judge.history import (
    AnyOperation,
    IncompleteOperation,
    Isolation,
    OperationPlace,
    PartitionFacts,
    PollOperation,
    ReadFromStartOperation,
    ReadToEndOperation,
    SendOperation,
    TopicOperation,
    history_of,
)
from kcluster.judge.judgment import Judgment, without_findings
from kcluster.judge.parts import (
    Order,
    PartitionOperations,
    PartJudgment,
    TransactionPart,
    judge_part,
    merged,
    parts_of,
)
from kcluster.judge.reading import repeated
from kcluster.pipeline.workers import uncollected

_ROUTE: Final = (
    "op string, client string, topic string, partition int, transaction bigint, number bigint,"
    " isolation string, records array<struct<topic: string, partition: int>>,"
    " partitions array<array<string>>"
)
"""The fields of a line that decide which partitions need it."""
_FACTS: Final = ("topic", "read_from_start", "read_to_end", "incomplete")
"""The operations that no partition has."""
_RESULT: Final = "kind string, client string, number bigint, flags int, value binary"
_PART, _TRANSACTION, _PROBLEM = "part", "transaction", "problem"
_THERE, _LACKING = 1, 2
_BUCKETS: Final = 64
"""The groups of lines that no partition needs."""
MAX_PROBLEMS: Final = 1_000
"""The most problems that one task reports."""


class Known(Struct, frozen=True):
    """What all tasks need: the files' names, the number of the first line of each block, the facts
    that no single partition has."""

    names: tuple[str, ...]
    first_lines: dict[tuple[int, int], tuple[int, int]]
    """By (file, block): the number of its first line, and the id of that line."""
    unfinished: dict[int, int]
    """By file, the number of its last line, if that has no end."""
    read_committed: frozenset[str]
    compacted: frozenset[str]
    is_read_from_start: bool
    is_drained: bool
    missing: tuple[str, ...]
    """Why parts of the history are missing."""
    has_moves: bool
    """Whether a consumer got new positions in all of its partitions at once."""
    has_transactions: bool


def judge_files(spark: SparkSession, paths: Iterable[str | os.PathLike[str]]) -> Judgment:
    """Judge the history in these files of operations.  ProblemsError with their problems, at most
    MAX_PROBLEMS per task."""
    files = [Path(path) for path in paths]
    _check(files)
    lines = _lines(spark, files)
    known = _known(lines, files)
    ordered = (
        _routed(lines, known)
        .repartition("topic", "partition")
        .sortWithinPartitions("topic", "partition", "file", "id")
    )
    judged = ordered.rdd.mapPartitions(partial(_judge_rows, known))
    results = spark.createDataFrame(judged, _RESULT).persist()
    try:
        _raise_problems(results)
        rows = results.where(F.col("kind") == _PART).select("value").collect()
        parts = [pickle.loads(row["value"]) for row in rows]
        return _merged(parts, _torn(results), known.missing)
    finally:
        results.unpersist()


def _check(files: Sequence[Path]) -> None:
    problems = [*repeated([str(path) for path in files])]
    for path in files:
        if not path.is_file():
            reason = "a directory; this judge reads files of operations" if path.is_dir() else ""
            problems.append(Problem(str(path), 0, 0, "", reason or "no such file"))
    if problems:
        raise ProblemsError(problems)


def _lines(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Each line with its file, block and id, and the fields that route it."""
    numbers = spark.createDataFrame(
        [(path.resolve().as_uri(), at) for at, path in enumerate(files)], "uri string, file int"
    )
    read = spark.read.text([str(path.resolve()) for path in files], lineSep="\n").select(
        "value",
        F.regexp_replace("_metadata.file_path", "^file:/+", "file:///").alias("uri"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("id"),
    )
    return (
        read.join(F.broadcast(numbers), "uri")
        .drop("uri")
        .withColumn("route", F.from_json("value", _ROUTE))
    )


def _known(lines: DataFrame, files: Sequence[Path]) -> Known:
    """The facts for all tasks, by one pass over the lines."""
    op, poll_isolation = F.col("route.op"), F.col("route.isolation")
    blocks = lines.groupBy("file", "block").agg(
        F.count("*").alias("count"),
        F.min("id").alias("id"),
        F.collect_set(F.when(op.isin(*_FACTS), F.col("value"))).alias("facts"),
        F.collect_set(
            F.when(poll_isolation == Isolation.READ_COMMITTED, F.col("route.client"))
        ).alias("committed"),
        F.max(_moves_all()).alias("has_moves"),
        F.max(op == "transaction").alias("has_transactions"),
    )
    rows = sorted(blocks.collect(), key=lambda row: (row["file"], row["block"]))
    first_lines: dict[tuple[int, int], tuple[int, int]] = {}
    last_lines: dict[int, int] = {}
    facts: list[AnyOperation] = []
    committed: set[str] = set()
    before: tuple[int, int] = (-1, 0)
    for row in rows:
        number = before[1] if row["file"] == before[0] else 1
        first_lines[row["file"], row["block"]] = (number, row["id"])
        before = (row["file"], number + row["count"])
        last_lines[row["file"]] = before[1] - 1
        for text in row["facts"]:
            operation = operation_of(text.encode())
            facts += [] if operation is None or isinstance(operation, str) else [operation]
        committed |= {*row["committed"]}
    return Known(
        names=tuple(map(str, files)),
        first_lines=first_lines,
        unfinished={at: last for at, last in last_lines.items() if not _ends_a_line(files[at])},
        read_committed=frozenset(committed),
        compacted=frozenset(
            each.topic for each in facts if isinstance(each, TopicOperation) and each.is_compacted
        ),
        is_read_from_start=any(isinstance(each, ReadFromStartOperation) for each in facts),
        is_drained=any(isinstance(each, ReadToEndOperation) for each in facts),
        missing=tuple(each.reason for each in facts if isinstance(each, IncompleteOperation)),
        has_moves=any(row["has_moves"] for row in rows),
        has_transactions=any(row["has_transactions"] for row in rows),
    )


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)  # it has lines
        return file.read() == b"\n"


def _moves_all() -> Column:
    """Whether a line gives a consumer new positions in all of its partitions."""
    return (F.col("route.op") == "assign") & (F.coalesce(F.size("route.partitions"), F.lit(0)) <= 0)


def _routed(lines: DataFrame, known: Known) -> DataFrame:
    """(topic, partition, file, block, id, value): each line for each partition that needs it.
    Other lines, which may have problems, have no topic."""
    op, client = F.col("route.op"), F.col("route.client").alias("client")
    line = ("file", "block", "id", "value")
    place = ("topic", "partition", *line)
    one = F.struct(F.col("route.topic").alias("topic"), F.col("route.partition").alias("partition"))
    some = F.transform(
        "route.partitions",
        lambda pair: F.struct(
            F.get(pair, F.lit(0)).alias("topic"),
            F.get(pair, F.lit(1)).try_cast("int").alias("partition"),
        ),
    )
    nowhere = F.array(
        F.struct(
            F.lit(None).cast("string").alias("topic"),
            (F.col("id") % _BUCKETS).cast("int").alias("partition"),
        )
    )
    named = (
        F.when(op.isin("send", "log_end", "position"), F.array(one))
        .when(op == "poll", F.array_distinct("route.records"))
        .when(op == "assign", some)
    )
    places = F.when(F.coalesce(F.size(named), F.lit(0)) > 0, named).otherwise(nowhere)
    routed = lines.where(F.trim("value") != "").select(F.explode(places).alias("place"), *line)
    routed = routed.select("place.topic", "place.partition", *line)
    if known.has_moves:
        records = F.explode(F.array_distinct("route.records")).alias("place")
        readers = lines.where(op == "poll").select(records, client)
        readers = readers.select("place.topic", "place.partition", "client").distinct()
        moves = lines.where(_moves_all()).select(client, *line)
        routed = routed.union(moves.join(readers, "client").select(*place))
    if known.has_transactions:
        key = ("client", "number")
        number = F.col("route.transaction").alias("number")
        sends = lines.where((op == "send") & (F.col("route.transaction") > 0))
        writers = sends.select(client, number, "route.topic", "route.partition").distinct()
        ends = lines.where(op == "transaction").select(client, "route.number", *line)
        routed = routed.union(ends.join(writers, [*key]).select(*place))
    return routed


_Result = tuple[str, str, int, int, bytes]


def _judge_rows(known: Known, rows: Iterable[Row]) -> Iterator[_Result]:
    """The results of some partitions, whose lines come one partition after the other."""
    for (topic, number), lines in groupby(rows, key=itemgetter(0, 1)):
        partition = None if topic is None else (topic, number)
        with uncollected():
            results = list(_results(known, partition, lines))
        yield from results


def _results(known: Known, partition: Partition | None, lines: Iterable[Row]) -> Iterator[_Result]:
    """The judgement of one partition, its transactions, and the problems of its lines."""
    located: list[tuple[OperationPlace, AnyOperation]] = []
    orders: list[Order] = []
    problems = 0
    for _, _, file, block, row, text in lines:
        first_line, first_id = known.first_lines[file, block]
        line = first_line + row - first_id
        is_unfinished = known.unfinished.get(file) == line
        operation = operation_of(text.encode(), is_unfinished=is_unfinished)
        if operation is None:
            continue
        if isinstance(operation, str):
            problems += 1
            if problems <= MAX_PROBLEMS:
                problem = Problem(known.names[file], line, 1, "", operation)
                yield _PROBLEM, "", 0, 0, pickle.dumps(problem)
            continue
        if isinstance(operation, SendOperation):
            orders.append((file, line))
        elif isinstance(operation, PollOperation):
            here = tuple(x for x in operation.records if (x.topic, x.partition) == partition)
            operation = replace(operation, records=here)
        located.append((OperationPlace(known.names[file], line), operation))
    if problems or partition is None:
        return
    for part in parts_of(history_of(located)):  # none, if it was only assigned
        part.orders = orders
        yield from _judged(known, part)


def _judged(known: Known, part: PartitionOperations) -> Iterator[_Result]:
    facts = PartitionFacts(
        is_compacted=part.partition[0] in known.compacted,
        is_read_from_start=known.is_read_from_start,
        is_drained=known.is_drained,
        read_committed=known.read_committed,
    )
    judged = judge_part(part, facts)
    for each in judged.transactions:
        flags = _THERE * (each.there is not None) | _LACKING * (each.lacking is not None)
        client, number = each.key
        yield _TRANSACTION, client, number, flags, pickle.dumps(each)
    judged.transactions, judged.doubtful = [], []
    judged.proven = [*map(without_findings, judged.proven)]
    yield _PART, "", 0, 0, pickle.dumps(judged)


def _raise_problems(results: DataFrame) -> None:
    rows = results.where(F.col("kind") == _PROBLEM).select("value").distinct().collect()
    problems: list[Problem] = [pickle.loads(row["value"]) for row in rows]
    if problems:
        raise ProblemsError(sorted(problems, key=lambda each: (each.source, each.line)))


def _torn(results: DataFrame) -> list[TransactionPart]:
    """The parts of the transactions of which some record can be read and some other is lacking."""
    key = ("client", "number")
    transactions = results.where(F.col("kind") == _TRANSACTION)
    torn = transactions.groupBy(*key).agg(F.bit_or("flags").alias("all"))
    torn = torn.where(F.col("all") == _THERE | _LACKING).select(*key)
    return [pickle.loads(row["value"]) for row in transactions.join(torn, [*key]).collect()]


def _merged(
    parts: list[PartJudgment], torn: list[TransactionPart], missing: Sequence[str]
) -> Judgment:
    parts.sort(key=lambda part: part.partition)
    if torn:
        parts[0].transactions = torn
    return merged(parts, missing).without_findings()
