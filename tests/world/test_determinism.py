"""The same seed gives the same bytes at the same times, in whichever process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("kafka")

pytestmark = pytest.mark.pure_python

ROOT = Path(__file__).parents[2]


def begin(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.world.bodies.traced", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_seed_has_one_trace_in_fresh_processes_forked_children_and_under_a_tracer() -> None:
    # At the same time, and so at different speeds.
    runs = [begin("--in-a-child"), begin("--under-a-tracer")]
    reports = [run.communicate(timeout=100)[0].split() for run in runs]
    assert [len(hashes) for hashes in reports] == [2, 1]
    assert len({each for hashes in reports for each in hashes}) == 1
