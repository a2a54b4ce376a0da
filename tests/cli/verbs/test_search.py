"""`kcluster search`, as it is typed; exit codes, files, JSON."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kcluster.cli.click_tools import kcluster
from tests.search.spaces import LOSING


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "losing.yaml").write_text(LOSING)
    (tmp_path / "topology.yaml").write_text("brokers: 3\n")
    (tmp_path / "wrong.yaml").write_text("steps: [{at: 5s, kil: 1}]\n")
    return lambda *words: CliRunner().invoke(kcluster, ("search", *words))


def test_search__finds_shrinks_and_writes_a_file_that_repeats_it(
    run: Callable[..., Result],
) -> None:
    words = ("losing.yaml", "--runs", "40", "--jobs", "1", "--stop-on", "lost-write", "--json")
    result = run(*words)
    assert result.exit_code == 1, result.output
    finding, summary = map(json.loads, result.stdout.splitlines())
    assert finding["finding"] == "lost-write"
    assert finding["file"] == "search-losing/lost-write-acks-1.yaml"
    assert [*summary["findings"]] == ["lost-write (acks=1)"]
    again = CliRunner().invoke(kcluster, ("scenario", "run", "-q", finding["file"]))
    assert again.exit_code == 0, again.output


def test_search__of_a_topology_nothing_is_found_and_the_search_can_go_on(
    run: Callable[..., Result],
) -> None:
    words = ("topology.yaml", "--runs", "1", "--jobs", "1", "--out", "kept")
    first, second = run(*words), run(*words)
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert first.stdout.startswith("1 run in")
    assert first.stdout.endswith("nothing found\n")
    assert json.loads(Path("kept/search.json").read_text())["runs"] == 2
    other = run("losing.yaml", "--out", "kept", "--jobs", "1")
    assert other.exit_code == 2
    assert "another scenario; name another --out" in other.stderr


def test_search__its_processes_have_ended_when_it_ends(run: Callable[..., Result]) -> None:
    result = run("topology.yaml", "--runs", "2", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert multiprocessing.active_children() == []


def test_search__mistakes_are_refused_with_the_nearest_name(run: Callable[..., Result]) -> None:
    result = run("losing.yaml", "--stop-on", "lost-wriet")
    assert result.exit_code == 2
    assert "did you mean lost-write?" in result.stderr
    assert "wrong.yaml:1:" in run("wrong.yaml").stderr
    assert run("safe_setings").exit_code == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("losing.yaml", "--ship-env"), "--ship-env is for the workers of a --master"),
        (("losing.yaml", "--master", "local", "--jobs", "2"), "choose one of --jobs and --master"),
        (("shop.py", "--master", "local"), "programs run on this machine: leave out --master"),
    ],
)
def test_search__on_spark_has_options_of_its_own(
    run: Callable[..., Result], words: tuple[str, ...], reason: str
) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_shrink__leaves_out_what_the_failure_does_not_need(run: Callable[..., Result]) -> None:
    Path("losing.yaml").write_text(LOSING.replace("5s..12s", "6s"))
    shrunk = CliRunner().invoke(kcluster, ("shrink", "losing.yaml", "--seed", "3", "--json"))
    assert shrunk.exit_code == 1, shrunk.output
    finding = json.loads(shrunk.stdout)
    assert finding["finding"] == "lost-write"
    assert len(finding["steps"]) == 2
    again = CliRunner().invoke(kcluster, ("scenario", "run", "-q", finding["file"]))
    assert again.exit_code == 0, again.output


def test_shrink__of_a_scenario_that_keeps_its_promises_says_so(run: Callable[..., Result]) -> None:
    Path("kept.yaml").write_text(LOSING.replace("acks: 1", "acks: all"))
    kept = CliRunner().invoke(kcluster, ("shrink", "kept.yaml"))
    assert kept.exit_code == 0, kept.output
    assert kept.stdout == "kept: no promise is broken  (valid, seed 1)\n"
    assert CliRunner().invoke(kcluster, ("shrink", "wrong.yaml")).exit_code == 2
