"""Output and files that cannot be written: a full disk, a poor encoding, a wrong directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

import kcluster
from tests.rig.patience import PATIENCE_S

CODE = str(Path(kcluster.__file__).parents[1])
FULL = "/dev/full"
Start = Callable[..., Any]

pytestmark = pytest.mark.skipif(not os.path.exists(FULL), reason="Linux has this device")


def print_version(output: IO[str], unbuffered: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kcluster", "version"],
        env={**os.environ, "PYTHONPATH": CODE, "PYTHONUNBUFFERED": unbuffered},
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output__on_a_full_disk(unbuffered: str) -> None:
    with open(FULL, "w") as full:
        done = print_version(full, unbuffered)
    assert done.stderr == "kcluster: the output: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output__into_a_pipe_that_nobody_reads_is_quiet(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        done = print_version(closed, unbuffered)
    assert (done.returncode, done.stderr) == (1, "")


def test_output__in_an_encoding_that_lacks_a_character() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kcluster", "learn", "1"],
        env={**os.environ, "PYTHONPATH": CODE, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "? broker 1  leader" in done.stdout


@pytest.mark.parametrize("option", ["--record", "--out"])
def test_up__a_file_that_cannot_be_written_is_reported_before_the_start(
    option: str, tmp_path: Path, start_up: Start
) -> None:
    (tmp_path / "file").touch()
    up = start_up("--brokers", "1", "--base-port", "0", option, "file/x")
    _, err = up.process.communicate(timeout=PATIENCE_S)
    assert up.ready == ""
    assert up.process.returncode == 2
    assert err == "kcluster: file/x: cannot be written: Not a directory\n"
