"""What executors get from the driver: a Python without any packages plays a run with it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kcluster.pipeline.shipping import dependencies, write_archive

pytest.importorskip("packaging")

PLAY = """
import sys
sys.path.insert(0, sys.argv[1])
from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.runs import play
print(play(Cell(duration_ms=1_000), 1).outcome)
"""


def in_bare_python(place: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run it without site-packages, as a worker on another machine does."""
    command = [sys.executable, "-I", "-S", "-c", program, str(place)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_shipping__a_bare_python_plays_a_run_with_the_dependencies(tmp_path: Path) -> None:
    write_archive(tmp_path / "package.zip", ships_dependencies=True)
    zipfile.ZipFile(tmp_path / "package.zip").extractall(tmp_path / "unpacked")
    ended = in_bare_python(tmp_path / "unpacked", PLAY)
    assert (ended.stdout, ended.stderr) == ("valid\n", "")


def test_shipping__dependencies_are_those_of_the_command_without_extras() -> None:
    names = [each.name.lower() for each in dependencies()]
    assert {"gevent", "greenlet", "msgspec", "networkx"} <= set(names)
    assert not {"kcluster-sim", "pyspark", "matplotlib"} & set(names)
    assert len(names) == len(set(names))
