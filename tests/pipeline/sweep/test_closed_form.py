"""Sweeps with an exact solution: the share of runs that lose records is the derived one.

Each case is a cell and the probability, derived beside it.  The interval is the exact one of 99.9 %
(Clopper and Pearson), and seeds are fixed: a case fails when the simulator or the draws change, not
now and then.  `make test` plays a fifth of the runs, `make test-slow` all, and
KCLUSTER_CLOSED_FORM=10 ten times as many; -s shows the figures of each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

import pytest

from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.estimates import clopper_pearson
from kcluster.pipeline.sweep.runs import RunRow, play

TIMES = int(os.environ.get("KCLUSTER_CLOSED_FORM", "1"))
PARTS = 5
"""`make test` plays one of so many parts of the runs."""
pytestmark = pytest.mark.timeout_s(60 * TIMES)
CONFIDENCE = 0.999
Z = 3.29
"""Of 99.9 %."""
SESSION_S = 9
"""broker.session.timeout.ms: a broker that is back before its session has ended may not register
(DUPLICATE_BROKER_REGISTRATION)."""
FIRST_S = 1.0
RowsOf = Callable[[Cell, int], list[RunRow]]


def cell_of(brokers: int, seconds: float, **columns: Any) -> Cell:
    """Failures are drawn in `seconds`, after the first one.  All brokers have a replica."""
    usual: dict[str, Any] = {
        "brokers": brokers,
        "replication_factor": brokers,
        "failure": "wipe",
        "acks": "all",
        "repair_ms": "none",
        "rate_per_s": 5.0,
        "consumers": 0,
        "latency_ms": 0,
        "first_failure_ms": int(FIRST_S * 1_000),
        "duration_ms": int((FIRST_S + seconds) * 1_000),
    }
    return Cell(**{**usual, **columns})


@pytest.fixture(
    params=[1 / PARTS, pytest.param(TIMES, marks=pytest.mark.slow)], ids=["some runs", "all runs"]
)
def rows_of(request: pytest.FixtureRequest) -> RowsOf:
    """`rows_of(cell, 150)`: this many runs, or a part of them."""
    times: float = request.param

    def rows(cell: Cell, runs: int) -> list[RunRow]:
        found = [play(cell, seed) for seed in range(1, round(runs * times) + 1)]
        assert not any(row.error for row in found)
        return found

    return rows


def check_share(name: str, rows: list[RunRow], wanted: float) -> None:
    hits = sum(row.lost > 0 for row in rows)
    low, high = clopper_pearson(hits, len(rows), CONFIDENCE)
    print(
        f"\n{name} | {len(rows):,} | {wanted:.4f} | {hits / len(rows):.4f} | {low:.4f}-{high:.4f}"
    )
    assert low <= wanted <= high


def check_mean(name: str, rows: list[RunRow], wanted: float) -> None:
    """Records lost in a run."""
    lost = [row.lost for row in rows]
    error = Z * stdev(lost) / math.sqrt(len(lost))
    print(f"{name}, records | {len(rows):,} | {wanted:.4f} | {fmean(lost):.4f} | ± {error:.4f}")
    assert abs(fmean(lost) - wanted) <= error


@pytest.mark.parametrize(("brokers", "mtbf_s"), [(1, 16), (2, 8), (3, 6)])
def test_closed_form__disks_that_fail_one_by_one(
    rows_of: RowsOf, brokers: int, mtbf_s: int
) -> None:
    """Each broker's disk fails after an exponential time, nothing is repaired: records are lost
    when all have failed, which has the product of independent probabilities."""
    seconds = 8.0
    rows = rows_of(cell_of(brokers, seconds, mtbf_ms=mtbf_s * 1_000), 150)
    wanted = (1 - math.exp(-seconds / mtbf_s)) ** brokers
    check_share(f"RF {brokers}, every disk goes", rows, wanted)


@pytest.mark.parametrize(("failures", "wanted"), [(2, 0), (3, 1)])
def test_closed_form__as_many_failures_as_replicas(
    rows_of: RowsOf, failures: int, wanted: int
) -> None:
    """Three replicas, disks that are not repaired: two failures are survived, three are not."""
    rows = rows_of(cell_of(3, 8.0, failures=failures), 40)
    assert {row.lost > 0 for row in rows} == {wanted == 1}


def test_closed_form__second_disk_before_the_first_is_repaired(rows_of: RowsOf) -> None:
    """RF 2, two failures at uniform times in T, repairs X exponential of mean R: their gap g has
    density 2 (1 - g/T) / T.  While the first is away (X > g) the second one is the other broker;
    back, but not in sync before its old session has ended (X <= g < 9 s), it is so in half of the
    runs; later nothing is lost."""
    from scipy.integrate import quad

    seconds, repair_s = 39.0, 10.0

    def density(gap_s: float) -> float:
        return 2 * (1 - gap_s / seconds) / seconds

    def away(gap_s: float) -> float:
        return math.exp(-gap_s / repair_s)

    wanted = quad(lambda g: density(g) * away(g), 0, seconds)[0]
    wanted += quad(lambda g: density(g) * (1 - away(g)) / 2, 0, SESSION_S)[0]
    cell = cell_of(2, seconds, failures=2, repair_ms=int(repair_s * 1_000), rate_per_s=1.0)
    check_share("RF 2, repaired", rows_of(cell, 150), wanted)


@pytest.mark.parametrize("flush_messages", [1, 2, 5])
def test_closed_form__power_fails_between_two_flushes(rows_of: RowsOf, flush_messages: int) -> None:
    """RF 1, flushed every M records, one power failure at a uniform time: 0 to M - 1 records are
    not flushed, each number as likely."""
    cell = cell_of(
        1,
        2.0,
        failures=1,
        failure="power",
        acks="1",
        rate_per_s=25.0,
        flush_messages=flush_messages,
    )
    rows = rows_of(cell, 200)
    check_share(f"RF 1, flush.messages {flush_messages}", rows, 1 - 1 / flush_messages)
    check_mean(f"RF 1, flush.messages {flush_messages}", rows, (flush_messages - 1) / 2)


def test_closed_form__leader_dies_before_the_follower_has_the_record(rows_of: RowsOf) -> None:
    """RF 2, acks=1, one broker dies, in half of the runs the leader.  A follower's fetch takes two
    ways of L, and what is appended meanwhile waits for the next: a record waits for L on average.
    Lost: rate * L records of a leader's death; any: unless the record before is older than that
    fetch, 1 - gap / (4 L) where the gap between records is less than 2 L."""
    latency_s, rate = 0.050, 11.7
    cell = cell_of(
        2,
        1.5,
        failures=1,
        failure="kill",
        acks="1",
        rate_per_s=rate,
        latency_ms=int(latency_s * 1_000),
    )
    rows = rows_of(cell, 400)
    check_share("RF 2, acks 1, leader dies", rows, 0.5 * (1 - 1 / rate / (4 * latency_s)))
    check_mean("RF 2, acks 1, leader dies", rows, 0.5 * rate * latency_s)
