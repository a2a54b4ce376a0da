"""The stacks of waiting records on the page of a finished run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.evidence.rows import WaitingRow
from kcluster.runs.page.document import page_of_record
from kcluster.runs.page.waiting import LEAST_MS, MAX_ROWS, waiting_rows
from kcluster.runs.record import RunInfo, RunRecord, SendRow
from tests.runs.page.stage import failover_run

if TYPE_CHECKING:
    from playwright.sync_api import Page


def send(sent_ms: int, ended_ms: int, partition: int = 0) -> SendRow:
    return SendRow(
        "shop", "t", partition, "v", -1, True, "acked", 0, sent_ms, ended_ms, attempts=1, error=""
    )


def run_of(*sends: SendRow, ended_ms: int = 20_000) -> RunRecord:
    record = RunRecord(RunInfo("waits", "virtual", 1, 0, ended_ms))
    record.sends = list(sends)
    return record


def test_waiting__records_pile_up_until_a_leader_answers() -> None:
    record = run_of(send(0, 5), send(1_000, 1_500), send(1_150, 1_500), send(1_400, 1_501))
    assert waiting_rows(record) == [
        WaitingRow(1_000, "shop", "t", 0, 1, 1_000),
        WaitingRow(1_100, "shop", "t", 0, 1, 1_000),
        WaitingRow(1_200, "shop", "t", 0, 2, 1_000),
        WaitingRow(1_300, "shop", "t", 0, 2, 1_000),
        WaitingRow(1_400, "shop", "t", 0, 3, 1_000),
        WaitingRow(1_500, "shop", "t", 0, 0, 1_500),
    ]


def test_waiting__a_record_that_is_acked_at_once_waits_for_nothing() -> None:
    assert waiting_rows(run_of(send(0, LEAST_MS - 1), send(-1, 500))) == []


def test_waiting__each_partition_has_its_own_stack_at_every_time() -> None:
    record = run_of(send(1_000, 1_400), send(1_150, -1, partition=1), ended_ms=1_600)
    rows = [(row.at_ms, row.partition, row.count) for row in waiting_rows(record)]
    assert rows == [
        (1_000, 0, 1), (1_100, 0, 1), (1_200, 0, 1), (1_200, 1, 1), (1_300, 0, 1), (1_300, 1, 1),
        (1_400, 0, 0), (1_400, 1, 1), (1_500, 1, 1), (1_600, 1, 0),
    ]  # fmt: skip


def test_waiting__an_hour_without_a_leader_has_a_bounded_number_of_rows() -> None:
    hour_ms = 3_600_000
    sends = [send(at, -1, at % 50) for at in range(0, hour_ms, 1_000)]
    sends += [send(at, -1, at // 1_000 % 50) for at in range(0, hour_ms, 1_000)]
    assert len(waiting_rows(run_of(*sends, ended_ms=hour_ms))) <= MAX_ROWS + 200


@pytest.mark.xdist_group("page")
def test_waiting__the_page_of_a_leaders_death_has_the_same_stacks(
    tab: Callable[..., Page], tmp_path: Path
) -> None:
    record = failover_run()
    rows = waiting_rows(record)
    assert {row.count == 0 for row in rows} == {True, False}
    file = tmp_path / "run.html"
    file.write_text(page_of_record(record), "utf-8")
    page = tab(f"{file.as_uri()}#view=partition")
    page.evaluate("kclusterPage.ready")
    for row in rows:
        asked = [row.client, row.at_ms, f"{row.topic}-{row.partition}"]
        found = page.evaluate(
            """([client, at, name]) =>
              kclusterPage.model.waitingAt(client, at, kclusterPage.model.partitions.get(name))""",
            asked,
        )
        assert found == {"count": row.count, "oldest": row.oldest_ms}
