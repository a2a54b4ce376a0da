"""`kcluster scenario`, `explain`, `schema` and `fault`, as they are typed; exit codes."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kcluster.broker.node import BrokerNode
from kcluster.cli.click_tools import kcluster
from kcluster.scenario.play.virtual import VirtualStage
from tests.rig.patience import PATIENCE_S

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
    (tmp_path / "refused.yaml").write_text(
        GOOD.replace("kill: leader(orders-0), for: 5s", "start: 1")
    )
    return lambda *words: CliRunner().invoke(kcluster, words)


def test_scenario_run__an_unwritable_run_directory_is_one_line_after_the_result(
    run: Callable[..., Result],
) -> None:
    result = run("scenario", "run", "good.yaml", "--out", "wrong.yaml/runs")
    assert result.exit_code == 2
    assert "good: valid, as expected" in result.stdout
    assert result.stderr == "kcluster: wrong.yaml/runs: cannot be written: Not a directory\n"


def test_scenario_run__a_topology_is_recognised(run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text("brokers: 3\ntopics: {orders: {}}\n")
    assert run("scenario", "run", "topology.yaml").stderr == (
        "topology.yaml: a topology, not a scenario; start a cluster with it: "
        "kcluster up topology.yaml\n"
    )
    assert run("up", "--", "good.yaml").stderr == (
        "good.yaml: a scenario, which has a topology; run it: kcluster scenario run good.yaml\n"
    )


def test_scenario_run__exit_code_0_when_everything_is_as_expected(
    run: Callable[..., Result],
) -> None:
    result = run("scenario", "run", "good.yaml", "--seed", "3", "--verbose")
    assert result.exit_code == 0
    timeline, verdict = result.output.split("\n\n")
    assert "leader_elected" in timeline
    assert verdict.splitlines()[-1].startswith("good: valid, as expected  (virtual, seed 3, ")
    assert "not noticed until: broker 1 fenced" in verdict


def test_scenario_run__is_a_screen_with_the_answer_last(run: Callable[..., Result]) -> None:
    lines = run("scenario", "run", "good.yaml").output.splitlines()
    assert len(lines) <= 24
    assert lines[-2] == "  valid: no anomaly, and every invariant held"
    assert lines[-1].startswith("good: valid, as expected  (virtual, seed 1, ")
    assert not any("leader_elected" in line for line in lines)


def test_scenario_run__quiet_is_the_answer_alone(run: Callable[..., Result]) -> None:
    (line,) = run("scenario", "run", "good.yaml", "-q").output.splitlines()
    assert line.startswith("good: valid, as expected")
    failed = run("scenario", "run", "failing.yaml", "--quiet").output.splitlines()
    assert [line.split()[0] for line in failed] == ["FAILED", "replay:", "failing:"]
    both = run("scenario", "run", "good.yaml", "-q", "-v")
    assert both.exit_code == 2
    assert "choose one of --verbose and --quiet" in both.output


def test_scenario_run__exit_code_1_with_timeline_and_replay_line(
    run: Callable[..., Result],
) -> None:
    result = run("scenario", "run", "failing.yaml")
    assert result.exit_code == 1
    replay = "replay: kcluster scenario run failing.yaml --clock virtual --seed 1"
    assert "FAILED acked: " in result.output
    assert f"{replay} -v\n" in result.output
    verbose = run("scenario", "run", "failing.yaml", "-v")
    assert "leader_elected" in verbose.output
    assert f"{replay}\n" in verbose.output


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


def test_scenario_run__many_runs_take_the_memory_of_one(run: Callable[..., Result]) -> None:
    def brokers() -> int:
        return sum(isinstance(each, BrokerNode) for each in gc.get_objects())

    gc.collect()
    before = brokers()
    run("scenario", "run", "good.yaml", "--runs", "3")
    assert brokers() <= before


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


def test_scenario_run__by_name_from_anywhere(run: Callable[..., Result]) -> None:
    result = run("scenario", "run", "acks-one-crash")
    assert result.exit_code == 0, result.output
    assert "acks_one_crash: invalid, as expected" in result.output
    (lost,) = [line for line in result.output.splitlines() if "lost-write: " in line]
    assert lost.count("(acks=1)") == 1
    wrong = run("scenario", "run", "incidents/acks_one_crsh.yaml")
    assert wrong.exit_code == 2
    assert "no such file, nor does a scenario of this name ship" in wrong.output
    assert "did you mean acks_one_crash?" in wrong.output


def test_scenario_run__of_a_directory_all_scenario_files(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    two = tmp_path / "two"
    two.mkdir()
    for name in ("a", "b"):
        (two / f"{name}.yaml").write_text(GOOD)
    (two / "topology.yaml").write_text("brokers: 3\n")
    result = run("scenario", "run", "two")
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "2 runs, 0 not as expected")
    (tmp_path / "none").mkdir()
    assert "none: a directory without a scenario file" in run("scenario", "check", "none").output


def test_scenario_new__writes_a_scenario_that_runs_and_overwrites_none(
    run: Callable[..., Result],
) -> None:
    written = run("scenario", "new", "mine.yaml")
    assert written.output == "mine.yaml is written; run it: kcluster scenario run mine.yaml\n"
    result = run("scenario", "run", "mine.yaml")
    assert result.exit_code == 0, result.output
    assert "mine: valid, as expected" in result.output
    again = run("scenario", "new", "mine.yaml")
    assert (again.exit_code, "mine.yaml exists; name another" in again.output) == (2, True)


def test_scenario_new__a_drill_loses_a_rack_of_a_topology_under_load(
    run: Callable[..., Result],
) -> None:
    Path("site").mkdir()
    Path("site/t.yaml").write_text(
        "profile: fast\nbrokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]\n"
        "topics: {orders: {partitions: 3, min.insync.replicas: 2}, 'no': {}}\n"
    )
    words = ("scenario", "new", "site/drill.yaml", "--topology", "site/t.yaml", "--lose")
    assert run(*words, "rack b").exit_code == 0
    result = run("scenario", "run", "site/drill.yaml", "-v")
    assert result.exit_code == 0, result.output
    assert "broker 2     power lost" in result.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--lose", "rack b"), "--topology and --lose go together"),
        (("--topology", "t.yaml", "--lose", "rack q"), "--lose 'rack q': rack q: no such rack"),
        (("--topology", "t.yaml", "--lose", "rak a"), "--lose 'rak a': "),
        (("--topology", "none.yaml", "--lose", "rack a"), "none.yaml: no such file"),
    ],
)
def test_scenario_new__a_drill_that_cannot_be_is_refused(
    words: tuple[str, ...], expected: str, run: Callable[..., Result]
) -> None:
    Path("t.yaml").write_text("brokers: [{id: 1, rack: a}]\n")
    result = run("scenario", "new", *words)
    assert result.exit_code == 2
    assert expected in result.output
    assert not Path("scenario.yaml").exists()


def test_scenario_list_and_show(run: Callable[..., Result]) -> None:
    listed = run("scenario", "list").output
    assert re.search("  zombie_leader +A replaced leader, cut off", listed)
    assert "Sweeps (kcluster pipeline sweep NAME):" in listed
    kinds = {
        json.loads(line)["kind"]
        for line in run("scenario", "list", "--json").output.split("\n")[:-1]
    }
    assert kinds == {"scenario", "profile", "search", "sweep"}
    for name in ("zombie_leader", "one_failure_at_a_time", "racks"):
        assert run("scenario", "show", name).output.startswith("# ")
    wrong = run("scenario", "show", "zombie_leeder")
    assert (wrong.exit_code, "did you mean zombie_leader?" in wrong.output) == (2, True)


def test_scenario_help__has_topics_and_actions(run: Callable[..., Result]) -> None:
    assert "  checks       What must be true in the end." in run("scenario", "help").output
    assert "writes_unavailable" in run("scenario", "help", "checks").output
    wrong = run("scenario", "help", "cheks")
    assert (wrong.exit_code, "did you mean checks?" in wrong.output) == (2, True)


def test_fault_help__explains_one_action_or_lists_all(run: Callable[..., Result]) -> None:
    for words in (("slow",), ("slow: {nodes: 3}",)):
        shown = run("fault", *words, "--help").output
        assert shown.startswith("slow: Slow links down.")
        assert "  latency              time  [default: 0]\n" in shown
        assert "kcluster fault 'slow: {nodes: 3, latency: 50ms, jitter: 10ms}'" in shown
    listed = run("fault", "--help").output
    assert "  slow             Slow links down.\n" in listed
    assert "--for TIME" in listed


def test_explain__explains_a_run_from_its_directory(run: Callable[..., Result]) -> None:
    run("scenario", "run", "good.yaml", "--out", "runs")
    result = run("explain", "runs", "--partition", "orders-0")
    assert result.exit_code == 0
    assert "leader_elected" in result.output
    assert "at the end, orders-0:" in result.output
    assert "0 epoch 0" in result.output, "a pipe has no colours"
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
        assert "topic_created          orders       created: 1" in created.stdout, created.stderr
        cut = kcluster_("fault", "isolate: leader(orders-0)", "--for", "1s")
        assert "no messages pass between" in cut.stdout, cut.stderr
        wrong = kcluster_("fault", "isolte: 1")
        assert (wrong.returncode, "did you mean isolate?" in wrong.stderr) == (2, True)
        wrong = kcluster_("fault", "kill: shop")
        assert "shop: no such node; there are leader(orders-0)" in wrong.stderr
        refused = kcluster_("fault", "kill: leader(ordres-0)")
        assert (refused.returncode, "there is no topic" in refused.stderr) == (2, True)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
