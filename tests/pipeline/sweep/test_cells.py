"""A cell and a seed make one run, the same everywhere; every column of a cell has an effect."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kcluster.pipeline.sweep.cells import Failure, failures_of, scenario_of, text_of, values_of
from kcluster.pipeline.sweep.columns import Cell, CellFaults
from kcluster.pipeline.sweep.grid import parse_grid
from kcluster.pipeline.sweep.runs import RunRow, play
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

SHORT = {"duration_ms": 6_000, "failures": 1, "repair_ms": 1_000, "consumers": 0}
KILLS = '{"every": "1s..2s", "kinds": [{"kill": "any broker"}]}'

AGAIN = """
import sys, msgspec
from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.runs import play
row = play(msgspec.json.decode(sys.argv[1], type=Cell), 7)
print(msgspec.json.encode(msgspec.structs.replace(row, wall_ms=0.0)).decode())
"""


def cell(**columns: Any) -> Cell:
    return Cell(**{**SHORT, **columns})


def rows(grid_cell: Cell, seeds: range = range(1, 4)) -> list[RunRow]:
    found = [play(grid_cell, seed) for seed in seeds]
    assert not any(row.error for row in found), [row.error for row in found]
    return found


def lost(grid_cell: Cell) -> int:
    return sum(row.lost for row in rows(grid_cell))


def test_cells__a_run_is_the_same_in_another_process_with_other_hashes() -> None:
    grid_cell = cell(partitions=3, racks=3, consumers=1, mtbf_ms=3_000, failures=0)
    here = msgspec.structs.replace(play(grid_cell, 7), wall_ms=0.0)
    assert here.failures
    assert here.trace_hash
    assert not here.error
    there = subprocess.run(
        [sys.executable, "-c", AGAIN, msgspec.json.encode(grid_cell)],
        text=True,
        timeout=60,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )
    assert msgspec.json.decode(there.stdout, type=RunRow) == here


def test_cells__a_replay_is_the_run_event_by_event() -> None:
    grid_cell = cell(failures=2, acks="1", flush_interval_ms=500, racks=3)
    text = text_of(grid_cell, 5, "again", "why")
    result = run_scenario(Scenario.parse(text, "again.yaml"), "virtual", 5)
    assert (result.trace_hash, result.scenario.seed) == (play(grid_cell, 5).trace_hash, 5)


@pytest.mark.parametrize("how", ["failures", "mtbf"])
def test_cells__cells_that_differ_in_durability_meet_the_same_failures(how: str) -> None:
    often = "failures: 3" if how == "failures" else "mtbf: 20s"
    grid = parse_grid(
        "grid: {replication_factor: [1, 3], min_insync_replicas: [1, 2], acks: ['0', 1, all],"
        " unclean_election: [true, false], flush_messages: [none, 1], replica_lag: [1s, 30s],"
        f" {often}}}"
    )
    assert len(grid.cells) == 3 * 2**3 * 3
    for seed in range(1, 20):
        first = failures_of(grid.cells[0], seed)
        assert all(failures_of(other, seed) == first for other in grid.cells)
    assert failures_of(grid.cells[0], 1) != failures_of(grid.cells[0], 2)


def test_cells__a_repair_time_scales_the_same_draws() -> None:
    quick, slow, never = (cell(failures=1, repair_ms=x) for x in (1_000, 10_000, "none"))
    for seed in range(1, 20):
        (a,), (b,), (c,) = (failures_of(grid_cell, seed) for grid_cell in (quick, slow, never))
        assert (a.at_ms, a.brokers) == (b.at_ms, b.brokers) == (c.at_ms, c.brokers)
        assert c.repair_ms is None
        assert a.repair_ms is not None
        assert b.repair_ms is not None
        assert abs(b.repair_ms - 10 * a.repair_ms) <= 10


@pytest.mark.parametrize("domain", ["broker", "rack", "all"])
def test_cells__a_domain_fails_together_and_a_failed_one_does_not_fail_again(domain: str) -> None:
    together = {
        "broker": [(1,), (2,), (3,), (4,), (5,)],
        "rack": [(1, 2, 3), (4, 5)],
        "all": [(1, 2, 3, 4, 5)],
    }
    cell = Cell(brokers=5, racks=2, failure_domain=domain, repair_ms=4_000)
    for grid_cell in (replace(cell, failures=50), replace(cell, mtbf_ms=5_000)):
        found = [failure for seed in range(1, 9) for failure in failures_of(grid_cell, seed)]
        assert sorted({failure.brokers for failure in found}) == together[domain]
        for seed in range(1, 9):
            back: dict[tuple[int, ...], int] = {}
            for failure in failures_of(grid_cell, seed):
                assert grid_cell.first_failure_ms <= failure.at_ms < grid_cell.duration_ms
                assert failure.at_ms > back.get(failure.brokers, 0)
                back[failure.brokers] = failure.at_ms + (failure.repair_ms or 0)


def test_cells__failures_are_as_frequent_as_the_grid_states() -> None:
    grid_cell = Cell(
        mtbf_ms=10_000, repair_ms=1, first_failure_ms=0, duration_ms=100_000, brokers=3
    )
    count = sum(len(failures_of(grid_cell, seed)) for seed in range(1, 201))
    # 3 brokers, 10 each in a run, 200 runs: 6,000 of a Poisson process, within four deviations
    assert abs(count - 6_000) < 4 * 6_000**0.5
    exact = Cell(failures=2, repair_ms=1)
    assert {len(failures_of(exact, seed)) for seed in range(1, 100)} == {2}
    assert failures_of(Cell(), 1) == []
    gone = Cell(failures=9, repair_ms="none")
    assert sorted(x.brokers for x in failures_of(gone, 1)) == [(1,), (2,), (3,)]


def test_cells__a_power_failure_loses_unflushed_records() -> None:
    all_at_once = {"failure": "power", "failure_domain": "all"}
    never, each, tenth, often, seldom = (
        lost(cell(**all_at_once, **flush))
        for flush in (
            {},
            {"flush_messages": 1},
            {"flush_messages": 10},
            {"flush_interval_ms": 100},
            {"flush_interval_ms": 1_500},
        )
    )
    assert each == 0
    assert 0 < tenth < never
    assert 0 < often < seldom < never
    assert lost(cell(**{**all_at_once, "failure": "kill"})) == 0
    assert lost(cell(failure="power")) == 0  # one broker: the others have it
    assert lost(cell(**{**all_at_once, "failure": "wipe"}, flush_messages=1)) > 0


def test_cells__the_operating_system_writes_back_as_linux_does() -> None:
    """By default what is 30 s old is on the disk, and 5 s later at the latest."""
    late = {"failure_domain": "all", "duration_ms": 45_000, "first_failure_ms": 44_000}
    default, never, both = (
        lost(cell(**late, **settings))
        for settings in (
            {},
            {"write_back_ms": "none"},
            {"write_back_ms": 4_000, "flush_interval_ms": 100},
        )
    )
    # Three runs of ten records per second; power goes after 44 s, 9 to 15 s after the write-back.
    assert never > 3 * 400
    assert 3 * 90 < default < 3 * 160
    assert 0 < both < 3 * 10
    topology = values_of(Cell(), 1, "defaults")["topology"]
    assert topology["write_back"] == "30000ms"


def test_cells__with_rack_awareness_a_failed_rack_loses_nothing() -> None:
    rack = {"brokers": 4, "racks": 2, "replication_factor": 2, "failure_domain": "rack"}
    aware, unaware = (
        sum(row.lost for row in rows(cell(**rack, rack_aware=is_aware), range(1, 13)))
        for is_aware in (True, False)
    )
    assert aware == 0 < unaware


def test_cells__acks_min_isr_and_unclean_election_decide_what_is_lost() -> None:
    # Both brokers of a partition fail permanently, one after the other.
    hard = {
        "replication_factor": 2,
        "brokers": 2,
        "failures": 2,
        "failure": "kill",
        "rate_per_s": 20,
        "repair_ms": "none",
        "duration_ms": 20_000,
    }
    by_acks = {
        acks: sum(row.failed + row.unknown + row.lost for row in rows(cell(**hard, acks=acks)))
        for acks in ("0", "1", "all")
    }
    assert by_acks["0"] >= by_acks["1"]
    assert by_acks["0"] > 0
    unavailable = {
        least: sum(
            row.writes_unavailable_ms
            for row in rows(cell(**{**hard, "failures": 1}, min_insync_replicas=least))
        )
        for least in (1, 2)
    }
    assert unavailable[1] < unavailable[2]
    behind = {**hard, "replication_factor": 3, "brokers": 3, "failures": 4, "repair_ms": 20_000}
    unclean, clean = (
        sum(row.lost for row in rows(cell(**behind, acks="1", unclean_election=flag), range(1, 7)))
        for flag in (True, False)
    )
    assert clean == 0 < unclean


def test_cells__the_lag_time_bounds_how_long_a_slow_replica_holds_writes() -> None:
    slow = {"failure": "pause", "repair_ms": 60_000, "duration_ms": 20_000}
    quick, patient = (
        sum(row.writes_unavailable_ms for row in rows(cell(**slow, replica_lag_ms=lag_ms)))
        for lag_ms in (1_000, 30_000)
    )
    assert quick < patient


@pytest.mark.parametrize("how", ["kill", "power", "wipe", "clean", "pause"])
def test_cells__a_broker_returns_however_it_failed_and_however_soon(how: str) -> None:
    for repair_ms in (1, 2_000):
        grid_cell = cell(failure=how, failures=12, repair_ms=repair_ms, failure_domain="all")
        assert all(row.failures >= 3 for row in rows(grid_cell))


def test_cells__the_rest_of_the_columns_reaches_the_run() -> None:
    grid_cell = cell(
        brokers=4,
        partitions=2,
        idempotent=False,
        rate_per_s=20.0,
        size_bytes=50,
        consumers=2,
        duration_ms=3_000,
        failures=0,
    )
    scenario = scenario_of(grid_cell, 1)
    assert scenario.topology.brokers[-1].id == 4
    assert (scenario.workload.producers[0].idempotent, scenario.duration_ms) == (False, 3_000)
    (row,) = rows(grid_cell, range(1, 2))
    assert abs(row.sent - 60) <= 1
    assert row.acked == row.sent
    assert row.failures == 0
    (failure,) = failures_of(cell(failures=1, first_failure_ms=5_999), 1)
    assert failure == Failure(5_999, (1,), 346)  # a change of the draw changes every table
    (faulty,) = rows(cell(failures=0, faults=CellFaults("kills", KILLS)), range(1, 2))
    assert faulty.failures > 0
