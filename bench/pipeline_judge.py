"""`python -m bench.pipeline_judge RECORDS FILE`: measures the judge of long histories on Spark.

Owns: a generated history with known losses and duplicates, the time that it takes.  Never:
measures a cluster.

Each of the partitions has a producer and a consumer that polls 50 records at a time.  Of EVERY
records one is lost, and one is stored twice.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kcluster.judge.judgment import Judgment
from kcluster.pipeline.judge import judge_files
from kcluster.pipeline.session import open_session

POLL: Final = 50
EVERY: Final = 100_000
LOST, TWICE = 13, 77


def lines_of(partition: int, records: int) -> Iterator[str]:
    """The history of one partition: sends, and polls of them."""
    at, batch = f'"topic":"orders","partition":{partition}', list[str]()
    offset = 0
    for number in range(records):
        value, place = f"{partition}:{number}", number % EVERY
        yield (
            f'{{"op":"send","client":"shop-{partition}",{at},"value":"{value}","outcome":"acked",'
            f'"idempotent":false,"offset":{offset},"sent_ms":{number},"ended_ms":{number + 3}}}\n'
        )
        for _ in range(0 if place == LOST else 2 if place == TWICE else 1):
            batch.append(f'{{{at},"offset":{offset},"value":"{value}"}}')
            offset += 1
        offset += place == LOST
        if len(batch) >= POLL or number == records - 1:
            read = ",".join(batch)
            yield (
                f'{{"op":"poll","client":"billing-{partition}","at_ms":{number + 9},'
                f'"records":[{read}]}}\n'
            )
            batch.clear()


def generate(path: Path, records: int, partitions: int) -> None:
    """Write a history of this many sends, and as many reads."""
    with path.open("w") as file:
        for partition in range(partitions):
            file.writelines(lines_of(partition, records // partitions))


def counts_of(judgment: Judgment) -> Counter[str]:
    """The records of each anomaly."""
    return sum(
        (Counter({each.anomaly.name: each.anomaly.count}) for each in judgment.proven), Counter()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("records", type=int, help="sends; there are as many reads")
    parser.add_argument("file", type=Path, help="written, unless it exists")
    parser.add_argument("--partitions", type=int, default=48, help="each fits into memory")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--heap", default="2g")
    options = parser.parse_args()
    if not options.file.exists():
        generate(options.file, options.records, options.partitions)
    settings = {"spark.driver.memory": options.heap, "spark.sql.shuffle.partitions": "16"}
    began_s = time.monotonic()
    judgment = judge_files(open_session(options.master, settings), [options.file])
    took_s = time.monotonic() - began_s
    each = options.records // options.partitions
    expected = {
        name: options.partitions * (each // EVERY + (each % EVERY > place))
        for name, place in (("lost-write", LOST), ("duplicate", TWICE))
    }
    counts = counts_of(judgment)
    assert counts == expected, (counts, expected)
    print(f"{judgment.sent:,} sends, {judgment.read:,} reads: {took_s:.0f} s, {dict(counts)}")


if __name__ == "__main__":
    main()
