"""What a sweep records of a run."""

from __future__ import annotations

import pytest

from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.runs import ERROR, FORMAT, RunRow, play
from kcluster.pipeline.sweep.worker import is_set, row_of, rows_of, set_bit
from kcluster.pipeline.tables import ddl


def test_runs__the_table_has_the_columns_of_a_row_with_the_types_of_earlier_tables() -> None:
    columns = [column.replace("`", "").split() for column in ddl(RunRow).split(", ")]
    assert [name for name, _ in columns] == list(RunRow.__struct_fields__)
    # Sweeps resume in tables of earlier versions: one file with another type breaks the table.
    types = {type_: {name for name, each in columns if each == type_} for _, type_ in columns}
    assert types.pop("int") == {"format"}
    assert types.pop("string") == {"cell", "outcome", "error", "trace_hash"}
    assert types.pop("array<bigint>") == {"noticed_ms", "elected_ms", "acked_ms"}
    assert types.pop("double") == {
        "writes_unavailable_ms", "reads_unavailable_ms", "ack_p50_ms", "ack_p99_ms", "wall_ms",
    }  # fmt: skip
    assert list(types) == ["bigint"]


def test_runs__a_run_without_failures_keeps_all_records_and_has_no_failover() -> None:
    row = play(Cell(duration_ms=5_000), 1)
    assert (row.format, row.outcome, row.error) == (FORMAT, "valid", "")
    assert (row.sent, row.acked, row.lost, row.failures) == (51, 51, 0, 0)
    assert (row.noticed_ms, row.elected_ms, row.acked_ms) == ([], [], [])
    assert (row.writes_unavailable_ms, row.reads_unavailable_ms) == (0, 0)
    assert row.ack_p50_ms is not None
    assert 0 < row.ack_p50_ms <= (row.ack_p99_ms or 0) < 100


def test_runs__a_dead_leader_causes_a_failover() -> None:
    cell = Cell(failures=1, repair_ms="none", failure="kill", duration_ms=20_000)
    rows = [play(cell, seed) for seed in range(12, 16)]
    led = [row for row in rows if row.elected_ms]
    assert 0 < len(led) < len(rows)  # the death of a follower is not a failover
    for row in led:
        ((noticed,), (elected,), (acked,)) = (row.noticed_ms, row.elected_ms, row.acked_ms)
        # broker.session.timeout.ms is 9 s, a heartbeat was at most 2 s old
        assert 7_000 <= noticed <= 9_500
        assert noticed <= elected < acked
        assert abs(row.writes_unavailable_ms - acked) < 500


def test_runs__without_another_replica_it_lasts_until_the_leader_is_back() -> None:
    cell = Cell(
        brokers=1,
        replication_factor=1,
        failures=1,
        repair_ms=30_000,
        failure="kill",
        duration_ms=120_000,
        rate_per_s=1,
    )
    rows = [play(cell, seed) for seed in range(1, 6)]
    led = [row for row in rows if row.acked_ms]
    assert led
    assert all(row.elected_ms for row in led)
    for row in led:
        assert row.noticed_ms[0] < row.elected_ms[0] < row.acked_ms[0]
        assert abs(row.writes_unavailable_ms - row.acked_ms[0]) < 2_000


def test_runs__one_that_raises_is_reported_in_one_line_and_the_others_are_played() -> None:
    class Odd(Exception):
        """An exception that no handler expects."""

    def odd(cell: Cell, seed: int) -> RunRow:
        if seed == 2:
            raise Odd("two\n  lines")
        return RunRow(FORMAT, cell.key, seed, "valid")

    rows = [row_of(odd, Cell(), seed) for seed in (1, 2, 3)]
    assert [row.outcome for row in rows] == ["valid", ERROR, "valid"]
    assert rows[1].error.startswith("Odd: two lines (test_runs.py:")

    def stops(cell: Cell, seed: int) -> RunRow:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        row_of(stops, Cell(), 1)


def test_runs__a_worker_plays_the_missing_runs() -> None:
    import msgspec

    cells = [Cell(), Cell(acks="1")]
    done = bytearray(2)
    for number in (3, 9):
        set_bit(done, number)
    assert [number for number in range(16) if is_set(done, number)] == [3, 9]
    rows = rows_of(
        1,
        10,
        bytes(done),
        msgspec.json.encode(cells),
        [10, 20, 30, 40, 50],
        lambda cell, seed: RunRow(FORMAT, cell.key, seed, "valid"),
    )
    a, b = (cell.key for cell in cells)
    assert [(row[1], row[2]) for row in rows] == [
        (b, 10),
        (a, 20),
        (a, 30),
        (b, 30),
        (a, 40),
        (b, 40),
        (a, 50),
    ]
