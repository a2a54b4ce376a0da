from __future__ import annotations

from pathlib import Path

import pytest

from bench import micro
from bench.micro import Micro, Timing
from bench.micro_cases import all_cases


@pytest.mark.parametrize("name", all_cases())
def test_micro__every_case_can_be_called(name: str) -> None:
    call = all_cases()[name]()
    call()
    call()


def test_micro__slower_means_more_units_not_more_time() -> None:
    before = Timing(us=10, units=1)
    assert "SLOWER" not in micro.line("x", Timing(us=30, units=1.1), before)
    assert "SLOWER" in micro.line("x", Timing(us=10, units=1.2), before)
    assert "×" not in micro.line("x", Timing(us=10, units=1.2), None)


def test_micro__figures_survive_a_file(tmp_path: Path) -> None:
    kept = Micro(5.0, {"parse": Timing(0.5, 0.1)})
    micro.save(kept, tmp_path / "micro.json")
    assert micro.load(tmp_path / "micro.json") == kept
    assert "| parse | 0.50 |" in micro.render(kept)
