"""RF 3, min.insync.replicas 2, acks=all: nothing acked is ever lost, whatever fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kcluster
from kcluster.cli.main import main

SCENARIOS = Path(__file__).parents[3] / "scenarios"
SEEDS, OVERLAPPING_SEEDS = (200, 50) if kcluster.build() == "compiled" else (50, 30)
"""The compiled build plays five times as many in the same time; .ci/run tests both builds."""
RUNS = 10
"""Seeds of each test, and so of those that are not slow."""


def parts(seeds: int) -> list[Any]:
    """The first seed of each part; all parts but one are slow."""
    return [
        pytest.param(first, marks=pytest.mark.long if first == 1 else pytest.mark.slow)
        for first in range(1, seeds + 1, RUNS)
    ]


def play(file: Path, first: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["scenario", "run", str(file), "--seed", str(first), "--runs", str(RUNS)])
    shown = capsys.readouterr().out
    assert not ended.value.code, shown[-4_000:]
    assert f"{RUNS} runs, 0 not as expected" in shown


@pytest.mark.parametrize("first", parts(SEEDS))
def test_safe_settings__no_seed_loses_an_acked_record(
    first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One failure at a time, and the next one when all replicas are in sync."""
    play(SCENARIOS / "safe_settings.yaml", first, capsys)


@pytest.mark.parametrize("first", parts(OVERLAPPING_SEEDS))
def test_safe_settings__overlapping_failures_break_no_guarantee(
    first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    play(SCENARIOS / "safe_settings_overlapping.yaml", first, capsys)
