"""The record of a proxy on a disk that fails, and the headers that it leaves out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kcluster.contract import Note
from kcluster.events.network import RuleRemoved
from kcluster.protocol.records.batches import parse_batches
from kcluster.proxy.client_rows import MAX_BATCH_RECORDS, heads_of
from kcluster.proxy.run_files import RunFiles
from kcluster.runs.directory import RunError
from tests.rig.requests import batch


def test_run_files__a_record_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    lines: list[str] = []
    files = RunFiles(tmp_path / "out", "proxy", "1", lines.append)
    shutil.rmtree(tmp_path / "out")
    for number in range(3):
        files.note(Note((-1, number), 1, RuleRemoved("rule-1", 0, 0)))
        files.flush()
    assert files.dropped_rows == 3
    (line,) = lines
    assert "No such file or directory; rows that cannot be written are dropped" in line
    with pytest.raises((OSError, RunError)):
        files.draw()


@pytest.mark.parametrize("count", [-1, 2, MAX_BATCH_RECORDS + 1, 2**31 - 1])
def test_heads__a_batch_that_announces_more_records_than_it_can_have_is_left_out(
    count: int,
) -> None:
    good, bad = batch(b"a"), batch(b"b")
    (made_up,) = parse_batches(bad)
    made_up.record_count = count
    assert [head.count for head in heads_of([*parse_batches(good), made_up])] == [1]
