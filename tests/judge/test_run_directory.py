"""Run directories, judged as if the truth from inside were not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kcluster.clients.ledger import Ledger
from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
from kcluster.judge.history import history_of_ledger
from kcluster.judge.parts import judge_history
from kcluster.runs.directory import write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_path
from kcluster.scenario.play.running import run_scenario


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = library_path(LibraryKind.SCENARIO, "duplicate_by_lost_ack")
    assert path is not None
    result = run_scenario(Scenario.load(path), "virtual")
    return write_run(tmp_path_factory.mktemp("runs"), result.record())


def test_run_directory__the_files_from_inside_are_not_read(run: Path) -> None:
    for file in ("appends.jsonl", "logs.jsonl", "replicas.jsonl"):
        (run / file).write_text("")
    history = read_history([run])
    assert isinstance(history.ledger, Ledger)
    judgment = judge_history(history)
    assert judgment.outcome in ("invalid", "unknown")
    assert judgment.sent == len((run / "sends.jsonl").read_text().splitlines())


WIPED = """
topology:
  brokers: 1
  topics: {orders: {partitions: 1, replication_factor: 1}}
workload:
  producers: [{topic: orders, name: shop, rate: 10/s, stop: 1s, acks: 1, idempotent: false}]
  consumers: [{partitions: [orders-0], name: billing, start: 3s}]
duration: 4s
steps:
  - {at: 2s, kill: {brokers: 1, how: wipe}}
  - {at: 2500ms, start: 1}
"""
"""The disk is lost before the consumer begins: it reaches the end of an empty log."""


def scenario_of(name: str) -> Scenario:
    path = library_path(LibraryKind.SCENARIO, name)
    return Scenario.parse(WIPED) if path is None else Scenario.load(path)


@pytest.mark.parametrize("name", ["wiped", "acks_one_crash", "hanging_transaction"])
def test_run_directory__it_is_judged_like_the_history_of_its_clients(
    tmp_path: Path, name: str
) -> None:
    result = run_scenario(scenario_of(name), "virtual")
    judged = result.recorder.judged
    assert judged is not None
    history = history_of_ledger(judged.ledger, name, result.verdict.outcome != "unknown")
    history.is_read_from_start = True
    found = judge_history(read_history([write_run(tmp_path, result.record())]))
    expected = judge_history(history)
    assert [each.anomaly for each in found.proven] == [each.anomaly for each in expected.proven]
    assert (found.undecided, found.outcome) == (expected.undecided, expected.outcome)


def test_run_directory__one_of_an_older_version_has_no_positions(tmp_path: Path) -> None:
    """Its consumers may never have reached the end of the log."""
    path = write_run(tmp_path, run_scenario(scenario_of("wiped"), "virtual").record())
    assert [str(each.anomaly) for each in judge_history(read_history([path])).proven] == [
        "unseen: orders-0: offsets 0 to 9 (10 records, shop:0 to shop:9), acked, were read by no"
        " consumer"
    ]
    (path / "positions.jsonl").unlink()
    assert judge_history(read_history([path])).outcome == "unknown"


def test_run_directory__a_topology_of_something_else(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "topology": {"topics": 3}}))
    with pytest.raises(ProblemsError, match="its rows are not of a run"):
        read_history([run])
