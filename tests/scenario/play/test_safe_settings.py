"""RF 3, min.insync.replicas 2, acks=all, one failure at a time: nothing acked is ever lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.cli.main import main

FILE = Path(__file__).parents[3] / "scenarios" / "safe_settings.yaml"
SEEDS = 200
RUNS = 25
"""Seeds of each test: small enough that two workers share them evenly."""


@pytest.mark.slow
@pytest.mark.timeout_s(120)
@pytest.mark.parametrize("first", range(1, SEEDS + 1, RUNS))
def test_safe_settings__no_seed_loses_an_acked_record(
    first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["scenario", "run", str(FILE), "--seed", str(first), "--runs", str(RUNS)])
    shown = capsys.readouterr().out
    assert not ended.value.code, shown[-4_000:]
    assert f"{RUNS} runs, 0 not as expected" in shown
