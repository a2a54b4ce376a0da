"""Run directories, judged as if the truth from inside were not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kcluster.clients.ledger import Ledger
from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
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


def test_run_directory__a_topology_of_something_else(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "topology": {"topics": 3}}))
    with pytest.raises(ProblemsError, match="its rows are not of a run"):
        read_history([run])
