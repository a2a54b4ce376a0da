"""`kcluster scenario`, `explain`, `schema` and `fault`, as they are typed; exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kcluster.cli.click_tools import kcluster
from kcluster.scenario.play.virtual import VirtualStage

GOOD = """\
story: a leader dies
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 10/s}}
duration: 30s
steps: [{at: 5s, kill: leader(orders-0), for: 5s}]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "failing.yaml").write_text(GOOD + "checks: {acked: 1}\n")
    (tmp_path / "wrong.yaml").write_text("steps: [{at: 5s, kil: 1}]\n")
    (tmp_path / "refused.yaml").write_text(GOOD.replace("kill: leader(orders-0)", "start: 1"))
    return lambda *words: CliRunner().invoke(kcluster, words)


def test_scenario_run__exit_code_0_when_everything_is_as_expected(
    run: Callable[..., Result],
) -> None:
    result = run("scenario", "run", "good.yaml", "--seed", "3")
    assert result.exit_code == 0
    timeline, verdict = result.output.split("\n\n")
    assert "leader_elected" in timeline
    assert verdict.startswith("good: valid, as expected  (virtual, seed 3, ")
    assert "not noticed until: broker 1 fenced" in result.output


def test_scenario_run__exit_code_1_with_timeline_and_replay_line(
    run: Callable[..., Result],
) -> None:
    result = run("scenario", "run", "failing.yaml")
    assert result.exit_code == 1
    assert "leader_elected" in result.output
    assert "FAILED acked: " in result.output
    assert "replay: kcluster scenario run failing.yaml --clock virtual --seed 1" in result.output


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("wrong.yaml", "wrong.yaml:1:18 steps[0].kil: "),
        ("nowhere.yaml", "nowhere.yaml: cannot be read"),
        ("refused.yaml", "start (line 5): broker 1 is up"),
    ],
)
def test_scenario_run__exit_code_2_when_the_run_proves_nothing(
    run: Callable[..., Result], file: str, expected: str
) -> None:
    result = run("scenario", "run", file)
    assert result.exit_code == 2
    assert expected in result.output


def test_scenario_run__prints_one_line_per_run_of_many(run: Callable[..., Result]) -> None:
    result = run("scenario", "run", "good.yaml", "--runs", "3")
    lines = result.output.splitlines()
    assert [line.split("seed ")[1][0] for line in lines[:3]] == ["1", "2", "3"]
    assert lines[-1] == "3 runs, 0 not as expected"


def test_scenario_run__a_bug_in_one_run_is_a_finding_and_others_go_on(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, calls = VirtualStage.start, count(1)

    def start(self: VirtualStage) -> None:
        honest(self)
        assert next(calls) != 2, "a bug"

    monkeypatch.setattr(VirtualStage, "start", start)
    result = run("scenario", "run", "good.yaml", "--runs", "3")
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert "good: CRASHED  (virtual, seed 2): AssertionError: a bug" in lines
    assert "  replay: kcluster scenario run good.yaml --clock virtual --seed 2" in lines
    assert any("in start" in line for line in lines), "the traceback"
    assert "seed 3" in lines[-3]
    assert lines[-1] == "3 runs, 0 not as expected, 1 crashed (a bug in kcluster)"
    calls = count(2)
    shown = json.loads(run("scenario", "run", "good.yaml", "--json").output)
    assert (shown["passed"], shown["seed"]) == (False, 1)
    assert shown["crash"].startswith("AssertionError: a bug")


def test_scenario_run__json(run: Callable[..., Result]) -> None:
    first, second = (json.loads(run("scenario", "run", "good.yaml", "--json").output) for _ in "12")
    assert first["passed"]
    assert first["verdict"]["outcome"] == "valid"
    assert first["trace_hash"] == second["trace_hash"]


def test_scenario_check__reports_all_problems_and_runs_nothing(run: Callable[..., Result]) -> None:
    assert run("scenario", "check", "good.yaml").output == "1 scenario: no problems\n"
    result = run("scenario", "check", "good.yaml", "wrong.yaml", "nowhere.yaml")
    assert result.exit_code == 2
    assert "did you mean kill?" in result.output
    assert "nowhere.yaml" in result.output


def test_explain__explains_a_run_from_its_directory(run: Callable[..., Result]) -> None:
    run("scenario", "run", "good.yaml", "--out", "runs")
    result = run("explain", "runs", "--partition", "orders-0")
    assert result.exit_code == 0
    assert "leader_elected" in result.output
    assert "at the end, orders-0:" in result.output
    refused = run("explain", "runs", "--partition", "ordres-0")
    assert (refused.exit_code, "did you mean orders-0?" in refused.output) == (2, True)
    assert run("explain", "nowhere").exit_code == 2


def test_schema__is_json(run: Callable[..., Result]) -> None:
    assert json.loads(run("schema", "scenario").output)["title"] == "kcluster scenario"
    assert run("schema", "topologie").exit_code == 2


def test_fault__on_a_running_cluster(base: Path) -> None:
    def kcluster_(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kcluster", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    command = ["up", "--brokers", "3", "--base-port", "0", "--profile", "fast"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kcluster", *command], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert "isolate" in kcluster_("fault").stdout
        created = kcluster_("fault", "create_topic: {name: orders}")
        assert "topic orders created" in created.stdout, created.stderr
        cut = kcluster_("fault", "isolate: leader(orders-0)", "--for", "1s")
        assert "no messages pass between" in cut.stdout, cut.stderr
        wrong = kcluster_("fault", "isolte: 1")
        assert (wrong.returncode, "did you mean isolate?" in wrong.stderr) == (2, True)
        refused = kcluster_("fault", "kill: leader(ordres-0)")
        assert (refused.returncode, "there is no topic" in refused.stderr) == (1, True)
    finally:
        process.terminate()
        process.communicate(timeout=20)
