"""The files from which histories are read, right and wrong."""

from __future__ import annotations

import gzip
import tracemalloc
from codecs import BOM_UTF8
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
from kcluster.judge.parts import judge_history
from kcluster.runs.directory import RunError


def outcome_of(*paths: Path) -> str:
    return judge_history(read_history(paths)).outcome


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_files__json_lines_of_operations(tmp_path: Path) -> None:
    path = written(
        tmp_path / "history.jsonl",
        '{"op":"send","client":"p","topic":"t","partition":0,"value":"a","outcome":"acked","offset":0}',
        '{"op":"poll","client":"c","records":[{"topic":"t","partition":0,"offset":0,"value":"a"}]}',
    )
    assert outcome_of(path) == "valid"


def test_files__every_problem_at_once_with_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path / "history.jsonl",
        '{"op":"sned","client":"p"}',
        '{"op":"send","client":"p","topic":"t","partition":"0","value":"a","outcome":"acked"}',
        "half of a li",
        "",
        '{"client":"p"}',
        '{"op":"poll","client":"c","records":[],"isolaton":"x"}',
        '{"op":"read_to_end"}',
    )
    with pytest.raises(ProblemsError) as raised:
        read_history([path, tmp_path / "missing.jsonl"])
    lines = [line.removeprefix(f"{tmp_path}/") for line in str(raised.value).splitlines()]
    assert lines == [
        "missing.jsonl: No such file or directory",
        "history.jsonl:1:1: op sned: no such operation; did you mean send?",
        "history.jsonl:2:1: send: Expected `int`, got `str` - at `$.partition`",
        "history.jsonl:3:1: not JSON: half of a li (JSON is malformed: invalid character (byte 0))",
        "history.jsonl:5:1: `op` is missing: one of assign, incomplete, log_end, poll, position,"
        " read_from_start, read_to_end, send, topic, transaction",
        "history.jsonl:6:1: poll: Object contains unknown field `isolaton`",
    ]


def test_files__verifiable_clients(tmp_path: Path) -> None:
    """Lines as Kafka's tools print them, with a log's line in between."""
    producer = written(
        tmp_path / "producer.out",
        '{"timestamp":5,"name":"startup_complete"}',
        '{"timestamp":9,"name":"producer_send_success","key":null,"value":"0","topic":"t","partition":0,"offset":0}',
        "[2026-11-23 10:00:00,000] WARN something (org.apache.kafka.clients.NetworkClient)",
        '{"timestamp":9,"name":"producer_send_success","key":null,"value":"1","topic":"t","partition":0,"offset":1}',
        '{"timestamp":9,"name":"producer_send_success","key":null,"value":"2","topic":"t","partition":0,"offset":2}',
        '{"timestamp":12,"name":"producer_send_error","exception":"class TimeoutException",'
        '"message":"x","topic":"t","key":null,"value":"3"}',
    )
    received = (
        '{{"timestamp":20,"name":"record_data","key":null,"value":"{0}","topic":"t",'
        '"partition":0,"offset":{0}}}'
    )
    assigned = (
        '{"timestamp":15,"name":"partitions_assigned","partitions":[{"topic":"t","partition":0}]}'
    )
    consumed = '{"timestamp":21,"name":"records_consumed","count":2,"partitions":[]}'
    consumer = written(
        tmp_path / "consumer.out", assigned, received.format(0), received.format(2), consumed
    )
    judgment = judge_history(read_history([producer, consumer]))
    assert [(each.anomaly.name, each.anomaly.first) for each in judgment.proven] == [
        ("lost-write", 1)
    ]
    quiet = written(tmp_path / "quiet.out", assigned, consumed)
    with pytest.raises(
        ProblemsError, match=r"quiet.out:2:1: .* run VerifiableConsumer with --verbose"
    ):
        read_history([producer, quiet])


def test_files__a_history_of_jepsen(tmp_path: Path) -> None:
    pytest.importorskip("edn_format")
    path = written(
        tmp_path / "history.edn",
        "{:type :invoke, :f :send, :value [[:send 3 7]], :process 0, :time 1000000, :index 0}",
        "{:type :ok, :f :send, :value [[:send 3 [0 7]]], :process 0, :time 2000000, :index 1}",
        "{:type :info, :f :kill, :value :majority, :process :nemesis, :time 2500000, :index 2}",
        "{:type :ok, :f :send, :value [[:send 3 [1 8]]], :process 0, :time 3000000, :index 3}",
        "{:type :ok, :f :send, :value [[:send 3 [2 9]]], :process 0, :time 4000000, :index 4}",
        "{:type :ok, :f :assign, :value [3], :process 1, :time 5000000, :index 5}",
        "{:type :ok, :f :poll, :value [[:poll {3 [[0 7] [2 9]]}]], :process 1, :time 6000000}",
    )
    judgment = judge_history(read_history([path]))
    (proven,) = judgment.proven
    assert (
        str(proven.anomaly) == "lost-write: k-3: 8, acked (acks=all) at offset 1, is not in the log"
    )
    assert [proof.origin.line for proof in proven.proofs] == [4, 7, 7]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", "hello\n"), ("a.log", "\x00\xff"), ("a.json", '{"a": [}\n'), ("b.edn", "{:type")],
)
def test_files__no_history(tmp_path: Path, name: str, content: str) -> None:
    pytest.importorskip("edn_format")
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ProblemsError, match=rf"{name}:1:1: (no history|not EDN)"):
        read_history([path])


SENT = (
    b'{"op":"send","client":"p","topic":"t","partition":0,"value":"a","outcome":"acked","offset":0}'
)
READ = b'{"op":"poll","client":"c","records":[{"topic":"t","partition":0,"offset":0,"value":"a"}]}'


def problems_of(*paths: Path | str) -> str:
    with pytest.raises(ProblemsError) as raised:
        read_history(paths)
    return str(raised.value)


def test_files__compressed_or_with_a_mark_of_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(BOM_UTF8 + SENT + b"\n" + READ + b"\n"))
    assert outcome_of(path) == "valid"
    path.write_bytes(path.read_bytes()[:-20])
    assert "history.jsonl.gz: Compressed file ended before" in problems_of(path)


def test_files__stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = TextIOWrapper(BufferedReader(BytesIO(SENT + b"\n" + READ + b"\nhalf\n")))
    monkeypatch.setattr("sys.stdin", stdin)
    assert problems_of("-").startswith("stdin:3:1: not JSON: half")


def test_files__a_line_without_end_is_not_kept(tmp_path: Path) -> None:
    """1 GiB of NULs, which takes no room on the disk, and must take none in memory."""
    path = tmp_path / "history.jsonl"
    with path.open("wb") as file:
        file.write(SENT + b"\n")
        file.truncate(1 << 30)
    tracemalloc.start()
    try:
        assert problems_of(path) == f"{path}:2:1: the line is longer than 16 MiB"
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("hello", ":1:1: the file is encoded in UTF-16; a history is UTF-8"),
        ("", ":1:1: the file is empty; a history is one of"),
    ],
)
def test_files__wrong_or_no_bytes(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "history.out"
    path.write_bytes(content.encode("utf-16") if content else b"")
    assert problems_of(path).startswith(f"{path}{problem}")


def test_files__a_value_that_is_no_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(SENT.replace(b'"a"', b'"\xe4"') + b"\n")
    assert problems_of(path).startswith(f"{path}:1:1: not JSON")


def test_files__the_same_file_twice(tmp_path: Path) -> None:
    """Otherwise each record would have been sent twice and read twice."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(SENT + b"\n" + READ + b"\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    assert problems_of(path, path) == f"{path}: the file is given twice"
    assert problems_of(path, link) == f"{link}: the same file as {path}"


def test_files__kinds_that_are_mixed(tmp_path: Path) -> None:
    produced = (
        b'{"timestamp":9,"name":"producer_send_success","key":null,"value":"0","topic":"t",'
        b'"partition":0,"offset":0}\n'
    )
    path = tmp_path / "mixed.out"
    path.write_bytes(produced + SENT + b"\n")
    text = "an operation (send) in a verifiable client's output: use two files"
    assert problems_of(path) == f"{path}:2:1: {text}"
    path.write_bytes(SENT + b"\n" + produced)
    assert problems_of(path).startswith(f"{path}:2:1: `op` is missing")


def test_files__a_directory_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"run\.json"):
        read_history([tmp_path])


def test_files__an_empty_file_of_operations_is_an_empty_history(tmp_path: Path) -> None:
    assert outcome_of(written(tmp_path / "none.jsonl")) == "unknown"


def test_files__a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """Its program was killed while it wrote the line; other half lines are problems."""
    path = tmp_path / "history.jsonl"
    path.write_text('{"op":"read_to_end"}\n{"op":"send","cli')
    assert outcome_of(path) == "unknown"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(ProblemsError, match=r"history.jsonl:2:1: not JSON"):
        read_history([path])
