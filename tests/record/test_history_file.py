"""Files of histories, written by several processes, by killed ones, and after half a line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kcluster.clients.ledger import Outcome
from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
from kcluster.judge.history import SendOperation
from kcluster.record import HistoryFile
from kcluster.record.history_file import value_text

WRITER = """
import sys
from itertools import count
from kcluster.clients.ledger import Outcome
from kcluster.judge.history import SendOperation
from kcluster.record import HistoryFile

path, client, records = sys.argv[1:]
history = HistoryFile(path)
for number in range(int(records)) if int(records) else count():
    value = f"{client} {number} " + "x" * 2_000
    history.write(SendOperation(client, "orders", 0, value, Outcome.ACKED, number))
    if number == 50:
        print("half", flush=True)
"""


def writer(path: Path, client: str, records: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(path), client, str(records)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def sends(path: Path) -> int:
    return len(read_history([path]).ledger.sends)


def test_history_file__of_a_killed_program_has_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with writer(path, "shop", 0) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert sends(path) > 50


def test_history_file__two_programs_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for process in [writer(path, name, 300) for name in ("shop", "desk")]:
        with process:
            process.communicate()
    assert sends(path) == 600


def test_history_file__goes_on_after_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('{"op":"read_to_end"}\n{"op":"send","cli')
    for _ in range(2):
        with HistoryFile(path) as history:
            history.write(_SEND)
        history.write(_SEND)  # it is closed
    with pytest.raises(ProblemsError, match=r"history.jsonl:2:1: not JSON") as raised:
        read_history([path])
    assert len(raised.value.problems) == 1
    assert path.read_bytes().count(b"\n") == 4


_SEND = SendOperation("shop", "orders", 0, None, Outcome.UNKNOWN)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (bytearray(b"a"), "a"),
        ("é", "é"),
        ({"b": 1, "a": [b"x"]}, '{"a": ["b\'x\'"], "b": 1}'),
        (10**400, str(10**400)),
        (b"x" * 1_000_000, "x" * 1_000_000),
        (float("nan"), "NaN"),
    ],
)
def test_history_file__odd_values(value: object, text: str) -> None:
    assert value_text(value) == text
