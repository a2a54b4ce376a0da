"""The judge on Spark and the small one give the same judgement of the same history."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from kcluster.clients.ledger import Outcome, TransactionOutcome
from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    Isolation,
    PollOperation,
    ReadToEndOperation,
    Received,
    SendOperation,
    TopicOperation,
    TransactionOperation,
)
from kcluster.judge.parts import judge_history
from kcluster.pipeline.judge import judge_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(1, 13)
OUTCOMES = (Outcome.ACKED, Outcome.ACKED, Outcome.ACKED, Outcome.UNKNOWN, Outcome.FAILED)


def drawn_operations(rng: Random, seed: int, prefix: str) -> list[AnyOperation]:
    """A history with all kinds of operations, in which much is wrong."""
    topics = (f"orders{seed}", f"bills{seed}")
    made: list[AnyOperation] = []
    logs: dict[tuple[str, int], list[str]] = {(topic, n): [] for topic in topics for n in (0, 1)}
    transactions = {f"{prefix}{name}{seed}": 0 for name in ("shop", "desk")}
    at_ms = 0
    for number in range(rng.randint(20, 60)):
        at_ms += rng.randint(0, 5)
        client, (topic, partition) = rng.choice([*transactions]), rng.choice([*logs])
        log = logs[topic, partition]
        if rng.random() < 0.5:
            value = f"{prefix}{number if rng.random() < 0.9 else 'tick'}"
            offset = max(0, len(log) - (rng.random() < 0.1))
            del log[offset:]
            log += [value] * (2 if rng.random() < 0.1 else rng.random() < 0.9)
            made.append(
                SendOperation(
                    client, topic, partition, value, rng.choice(OUTCOMES),
                    offset if rng.random() < 0.8 else -1,
                    transaction=rng.choice((0, transactions[client])),
                    sent_ms=at_ms, ended_ms=at_ms + rng.randint(0, 9),
                )
            )  # fmt: skip
        elif rng.random() < 0.2:
            transactions[client] += 1
            outcome = rng.choice([*TransactionOutcome])
            made.append(TransactionOperation(client, transactions[client], outcome, at_ms, at_ms))
        elif rng.random() < 0.2:
            pairs = rng.choice(((), ((topic, partition),), ((topic, 7),)))
            made.append(AssignOperation(f"{prefix}billing", pairs, at_ms))
        else:
            begin = rng.randint(0, len(log))
            records = [Received(topic, partition, at, log[at]) for at in range(begin, len(log))]
            records += [
                Received(topics[1], 1, at, each) for at, each in enumerate(logs[topics[1], 1])
            ]
            reader = rng.choice((f"{prefix}billing", client))
            isolation = rng.choice([*Isolation]) if reader == client else Isolation.READ_COMMITTED
            number_of = transactions[client] if reader == client else 0
            made.append(PollOperation(reader, tuple(records), isolation, at_ms, number_of))
    made.append(TopicOperation(topics[1], is_compacted=rng.random() < 0.3))
    return [*made, ReadToEndOperation()] if rng.random() < 0.5 else made


def write(path: Path, operations: list[AnyOperation]) -> Path:
    lines = [msgspec.json.encode(each) for each in operations]
    path.write_bytes(b"\n".join(lines) + b"\n\n")
    return path


@pytest.mark.timeout_s(240)
def test_judge__histories_drawn_from_seeds(spark: SparkSession, tmp_path: Path) -> None:
    paths: list[Path] = []
    for seed in SEEDS:
        rng = Random(f"judge {seed}")
        paths += [
            write(tmp_path / f"{seed}-{name}.jsonl", drawn_operations(rng, seed, name))
            for name in ("one", "two")
        ]
    with paths[0].open("a") as file:
        file.write('{"op":"send","cli')  # its program was killed
    small, large = judge_history(read_history(paths)), judge_files(spark, paths)
    assert small == large
    assert small.outcome == "invalid"
    names = {each.anomaly.name for each in small.proven}
    assert {"lost-write", "duplicate", "torn-transaction", "poll-skip"} <= names
    assert small.cycles
    assert small.undecided


@pytest.mark.timeout_s(240)
def test_judge__problems_of_lines(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    lines = (
        '{"op":"send","client":"p","topic":"t","partition":0,"value":"a","outcome":"acked"}',
        "half of a li",
        '{"op":"send","client":"p","topic":"t","partition":"0","value":"a","outcome":"acked"}',
        '{"op":"poll","client":"c","records":[],"isolaton":"x"}',
        '{"op":"poll","client":"c","records":[{"topic":"t","partition":0}]}',
        '{"op":"sned"}',
        "[1]",
    )
    path.write_text("\n".join(lines))
    with pytest.raises(ProblemsError) as small:
        read_history([path])
    with pytest.raises(ProblemsError) as large:
        judge_files(spark, [path])
    assert str(small.value) == str(large.value)
    with pytest.raises(ProblemsError, match=r"missing\.jsonl: no such file"):
        judge_files(spark, [tmp_path / "missing.jsonl"])
