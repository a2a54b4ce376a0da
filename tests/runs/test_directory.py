"""Run directories: a round trip through the files, and reports of corrupt files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kcluster.evidence.rows import (
    BeliefRow,
    CredentialRow,
    ExchangeRow,
    GroupMemberValue,
    GroupRow,
    LoginRow,
    TransactionStateRow,
)
from kcluster.runs.directory import INFO, SCENARIO, VERDICT, RunError, find_run, read_run, write_run
from kcluster.runs.explain import explain
from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import (
    FORMAT,
    READABLE,
    TABLES,
    CommitRow,
    EpochsRow,
    PositionRow,
    ProblemRow,
    ProcessedRow,
    TransactionRow,
)
from tests.runs.stage import unclean_run


def test_directory__a_run_survives_a_round_trip(tmp_path: Path) -> None:
    record = unclean_run()
    record.scenario = "story: é\n"
    record.commits = [CommitRow("g", "m", 1, "app", "orders", 0, 5, 1, 2_000, "ILLEGAL_GENERATION")]
    record.processed = [ProcessedRow("orders", 0, 4, "worker", 1_900)]
    record.transactions = [TransactionRow("app", 1, "shop", 2, "aborted", 1_000, 1_200, "TIMEOUT")]
    record.positions = [PositionRow("reader", "orders", 0, 6, 9_000)]
    record.problems = [ProblemRow("missed", "orders", 0, 5, 7, 3, "missed: orders-0")]
    record.exchanges = [ExchangeRow(1_500, "app", 1, "Produce", 1_490, 1_500, "orders", 0, 1)]
    record.beliefs = [BeliefRow("app", "orders", 0, 1, 0, 1_400)]
    record.epochs = [EpochsRow("orders", 0, 2, 6_000, 0, ((0, 0), (1, 5)))]
    member = GroupMemberValue("app-1", "app", (("orders", 0),))
    record.groups = [GroupRow("g", "classic", "Stable", 1, 2, (member,), 1_450)]
    record.transaction_states = [
        TransactionStateRow("shop", 7, 0, "Ongoing", (("orders", 0),), 1, 1_100)
    ]
    record.logins = [
        LoginRow("shop", "shop", 2, "CLIENT", "PLAIN", "User:shop", 1, 9_000, "", 1_100)
    ]
    record.credentials = [CredentialRow("certificate", "broker 2", "CLIENT", "valid", 7, 1_000)]
    path = write_run(tmp_path, record)
    again, problems = read_run(path)
    assert problems == []
    assert again.info == record.info
    assert again.scenario == record.scenario
    assert again.verdict == json.loads(json.dumps(record.verdict))
    for field in TABLES:
        assert getattr(again, field) == getattr(record, field), field
        assert getattr(again, field), field


def test_directory__it_has_its_own_name_and_latest_links_to_the_last(tmp_path: Path) -> None:
    first = write_run(tmp_path, unclean_run("a/../b <c>"))
    second = write_run(tmp_path, unclean_run("a/../b <c>"))
    assert first != second
    assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name, "latest"}
    assert first.name.startswith("a-..-b-c--virtual-7-")
    assert (tmp_path / "latest").resolve() == second.resolve()
    assert find_run(tmp_path).resolve() == second.resolve()
    assert read_run(tmp_path)[0].info.name == "a/../b <c>"


def test_directory__a_run_of_an_older_version_lacks_tables_and_columns(tmp_path: Path) -> None:
    record = unclean_run()
    path = write_run(tmp_path, record)
    for field in (field for field, table in TABLES.items() if table.is_new):
        (path / TABLES[field].file).unlink()
    replicas = path / "replicas.jsonl"
    replicas.write_text(replicas.read_text().replace(',"last_stable_offset":-1', ""))
    again, problems = read_run(path)
    assert (again.moves, problems) == (record.moves, [])


def test_directory__a_corrupt_line_is_reported_and_the_rest_is_used(tmp_path: Path) -> None:
    record = unclean_run()
    path = write_run(tmp_path, record)
    events = path / "events.jsonl"
    lines = events.read_bytes().split(b"\n")
    lines[2] = lines[2][:20]
    events.write_bytes(b"\n".join(lines))
    (path / "sends.jsonl").write_text('{"producer": 3}\n')
    (path / "reads.jsonl").unlink()
    (path / "verdict.json").write_text("{")
    again, problems = read_run(path)
    assert again.notes == [*record.notes[:2], *record.notes[3:]]
    assert (again.sends, again.reads, again.verdict) == ([], [], {})
    assert again.moves == record.moves
    places = [problem.rpartition("/")[2].split(": ")[0] for problem in problems]
    assert places == ["verdict.json", "events.jsonl:3", "sends.jsonl:1", "reads.jsonl"]


@pytest.mark.parametrize("number", [1, READABLE[0] - 1, FORMAT + 1])
def test_directory__one_of_another_format_is_refused_in_one_line(
    tmp_path: Path, number: int
) -> None:
    record = unclean_run()
    record.info.version, record.info.replay = "0.9", "kcluster scenario run x.yaml --seed 7"
    path = write_run(tmp_path, record)
    info = json.loads((path / "run.json").read_text())
    info["format"] = number
    (path / "run.json").write_text(json.dumps(info))
    with pytest.raises(RunError) as refused:
        read_run(path)
    again = ": run the scenario again: kcluster scenario run x.yaml --seed 7"
    assert str(refused.value) == (
        f"{path}/run.json: format {number}, written by kcluster 0.9; this version reads"
        f" formats {READABLE[0]} and {FORMAT}"
        f"{again if number < FORMAT else ''}"
    )


def test_directory__a_run_of_the_format_before_is_read(tmp_path: Path) -> None:
    """Its sends have no fates."""
    path = write_run(tmp_path, unclean_run())
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, "format": 3}))
    sends = [json.loads(line) for line in (path / "sends.jsonl").read_text().splitlines()]
    for send in sends:
        del send["fate"], send["at"], send["epoch"], send["anomalies"]
    (path / "sends.jsonl").write_text("".join(json.dumps(send) + "\n" for send in sends))
    record, problems = read_run(path)
    assert not problems
    assert [(send.value, send.fate, send.at) for send in record.sends] == [
        (value, "", -1) for value in "abc"
    ]


def test_directory__every_kind_of_event_is_written_as_its_type(tmp_path: Path) -> None:
    record = unclean_run()
    path = write_run(tmp_path, record)
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    assert lines[2] == {
        "id": [-1, 2],
        "at_ms": 3_000,
        "cause": None,
        "event": {"kind": "broker_down", "broker": 1, "how": "kill", "bug": ""},
    }
    assert lines[4]["event"]["reason"] == {
        "kind": "restarted",
        "broker": 1,
        "previous_epoch": 7,
        "clean": False,
    }


def test_directory__one_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere: no such directory"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"no run: run\.json is missing"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(RunError, match=r"run\.json: Expected `object`"):
        read_run(tmp_path)


NESTED = b"[" * 200_000
DAMAGE = {
    "missing": None,
    "binary": bytes(range(256)) * 4,
    "no utf-8": b'{"at_ms": 5, "kind": "\xff", "name": "\xff", "reason": "\xff"}\n',
    "nested": NESTED,
    "nested inside": b'{"reason": ' + NESTED + b'\n{"event": ' + NESTED,
    "cut": b'{"at_ms": 5, "ev',
    "wrong types": b'{"at_ms": [], "windows": 5, "anomalies": [{}], "event": {"type": 5}}\n',
    "another kind": b"7\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_directory__from_a_stranger_gives_lines_and_never_a_traceback(
    tmp_path: Path, damage: str
) -> None:
    path = write_run(tmp_path, unclean_run())
    files = [VERDICT, SCENARIO, *(table.file for table in TABLES.values())]
    for file in files:
        (path / file).unlink(missing_ok=True)
        if (content := DAMAGE[damage]) is not None:
            (path / file).write_bytes(content)
    record, problems = read_run(path)
    assert {problem.split(": ")[0].split(":")[0] for problem in problems} >= {str(path / VERDICT)}
    assert list(explain(record))
    assert "<html" in page_of_record(record)


@pytest.mark.parametrize("damage", DAMAGE)
def test_directory__whose_facts_are_damaged_is_refused_in_one_line(
    tmp_path: Path, damage: str
) -> None:
    path = write_run(tmp_path, unclean_run())
    (path / INFO).unlink()
    if (content := DAMAGE[damage]) is not None:
        (path / INFO).write_bytes(content)
    with pytest.raises(RunError) as refused:
        read_run(path)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_directory__may_hold_other_things_than_files(tmp_path: Path) -> None:
    path = write_run(tmp_path, unclean_run())
    for file in (VERDICT, SCENARIO, "events.jsonl"):
        (path / file).unlink(missing_ok=True)
        (path / file).mkdir()
    (path / "reads.jsonl").unlink()
    (path / "reads.jsonl").symlink_to("/dev/zero")
    problems = read_run(path)[1]
    assert sorted(problem.rpartition("/")[2] for problem in problems) == [
        f"{file}: not a regular file" for file in ("events.jsonl", "reads.jsonl", SCENARIO, VERDICT)
    ]


@pytest.mark.parametrize("change", [{"brokers": 5}, {"brokers": [{"id": "x"}]}, {"brokers": [7]}])
def test_directory__of_a_wrong_topology_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write_run(tmp_path, unclean_run())
    info = json.loads((path / INFO).read_text())
    info["topology"] |= change
    (path / INFO).write_text(json.dumps(info))
    with pytest.raises(RunError, match="brokers"):
        read_run(path)
