"""`kcluster pipeline sweep` and `replay`: their output, and errors in one line."""

from __future__ import annotations

import csv
import re
import shlex
import socket
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from kcluster.cli.verbs.pipeline import command as pipeline
from kcluster.cli.work.sweep import _rate
from kcluster.pipeline.sweep.columns import Cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout_s(240)

GRID = """
name: tiny
seeds: 8
grid:
  replication_factor: [1, 2]
  min_insync_replicas: [1, 2]
  brokers: 2
  acks: [1, all]
  failures: 1
  failure: power
  failure_domain: all
  first_failure: 500ms
  repair: 1s
  duration: 2s
  consumers: 0
"""


def kcluster(*words: str) -> Result:
    return CliRunner().invoke(pipeline, words, prog_name="kcluster pipeline")


@pytest.fixture
def grid(tmp_path: Path) -> str:
    file = tmp_path / "grid.yaml"
    file.write_text(GRID)
    return str(file)


def refused(*words: str) -> str:
    """The one line on stderr of a command that is refused."""
    result = kcluster(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.count("\n") == 1
    return result.stderr.rstrip().removeprefix("kcluster: ")


def test_cli_sweep__runs_are_summed_and_compared_and_a_loss_can_be_replayed(
    spark: SparkSession, grid: str, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    first = kcluster(
        "sweep",
        grid,
        "--seeds",
        "4",
        "--out",
        out,
        "--master",
        "local[2]",
        "--compare",
        "acks=1,replication_factor=1",
        "5",
    )
    assert first.exit_code == 0, first.output
    lines = first.stdout.splitlines()
    assert lines[0] == (
        "2 impossible combinations left out, such as:"
        " min_insync_replicas 2 exceeds replication_factor 1"
    )
    assert lines[1].startswith("24 runs in ")
    assert lines[1].endswith(" runs/s); 0 done before")
    assert lines[2].startswith("cell 1: replication_factor=1 min_insync_replicas=1 acks=1: P(loss)")
    assert {"report.md", "report.html", "compare.md", "losses.csv"} <= {
        file.name for file in Path(out).iterdir()
    }

    with open(Path(out) / "losses.csv", encoding="utf-8") as file:
        loss = next(iter(csv.DictReader(file)))
    program, group, *replay = shlex.split(loss["replay"])
    assert (program, group) == ("kcluster", "pipeline")
    result = kcluster(*replay)
    assert result.exit_code == 0
    assert f"  invalid: {loss['lost']} lost-write" in result.stdout
    assert result.stdout.endswith(f"  replay: {loss['replay']}\n")


def test_cli_sweep__a_replay_is_printed_as_a_complete_scenario(grid: str, tmp_path: Path) -> None:
    result = kcluster("replay", grid, "acks=1,replication_factor=1", "3", "--scenario")
    assert result.exit_code == 0
    file = tmp_path / "again.yaml"
    file.write_text(result.stdout)
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.play.running import run_scenario

    scenario = Scenario.parse(result.stdout, str(file))
    assert scenario.seed == 3
    played = run_scenario(scenario, "virtual", scenario.seed)
    ran = kcluster("replay", grid, "1", "3", "--out", str(tmp_path / "runs"))
    assert ran.exit_code == 0
    assert "run directory: " in ran.stdout
    assert played.trace_hash in "".join(
        path.read_text("utf-8") for path in (tmp_path / "runs").rglob("*.json")
    )


def test_cli_sweep__bad_input_is_one_line(grid: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens there
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        assert refused("sweep", grid, "--out", str(tmp_path / "o"), "--master", master) == (
            f"no Spark at {master}: {master.removeprefix('spark://')}: Connection refused"
        )
    assert "a master is local[2]" in refused("sweep", grid, "--out", grid + "o", "--master", "yrn")
    assert refused("sweep", "no.yaml") == (
        "no.yaml: cannot be read: no such file, nor does a sweep of this name ship with kcluster;"
        " kcluster scenario list shows all"
    )
    assert refused("sweep", grid, "--out", grid) == f"{grid}: File exists"
    assert refused("sweep", grid, "--seeds", "3,3") == "--seeds: seed 3 twice"
    assert refused("sweep", grid, "--compare", "1", "9") == "cell 9: the cells are 1 to 6"
    assert refused("replay", grid, "ack=1", "3") == (
        "cell ack=1: ack: no such column; did you mean acks?"
    )
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("grid:\n  ackz: 1\n  broker: 2\n")
    result = kcluster("sweep", str(wrong))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"{wrong}:2:3 grid.ackz: no such column; did you mean acks?",
        f"{wrong}:3:3 grid.broker: no such column; did you mean brokers?",
    ]


def test_cli_sweep__the_help_names_every_column() -> None:
    words = re.findall(r"\w+", kcluster("sweep", "--help").stdout)
    assert [key for key in Cell().columns() if key not in words] == []


def test_cli_sweep__progress_shows_the_rate_and_the_time_left() -> None:
    assert _rate(0, 1.0, 10) == ""
    assert _rate(30, 2.0, 900) == f"15.0 runs/s, {timedelta(minutes=1)} left"


def test_replay__a_sweep_that_ships_is_found_by_its_name() -> None:
    shown = kcluster("replay", "racks", "1", "3", "--scenario")
    assert shown.exit_code == 0, shown.output
    assert "racks" in shown.output
    assert "did you mean racks?" in refused("replay", "rack", "1", "3")
