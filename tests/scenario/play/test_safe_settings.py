"""RF 3, min.insync.replicas 2, acks=all, one failure at a time: nothing acked is ever lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[3] / "scenarios" / "safe_settings.yaml"
RUNS = 100
"""Seeds of each of two processes."""


@pytest.mark.timeout_s(240)
def test_safe_settings__no_seed_loses_an_acked_record() -> None:
    command = [sys.executable, "-m", "kcluster.cli.main", "scenario", "run", str(FILE)]
    processes = [
        subprocess.Popen(
            [*command, "--seed", str(first), "--runs", str(RUNS)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for first in (1, 1 + RUNS)
    ]  # fmt: skip
    for process in processes:
        told, _ = process.communicate(timeout=200)
        assert process.returncode == 0, told[-4_000:]
        assert f"{RUNS} runs, 0 not as expected" in told
