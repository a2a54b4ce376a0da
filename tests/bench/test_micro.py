from __future__ import annotations

from pathlib import Path

import pytest

from bench import micro
from bench.micro import Micro, Timing
from bench.micro_cases import all_cases
from bench.tls_cases import tls_cases

CASES = {**all_cases(), **tls_cases()}


@pytest.mark.parametrize("name", CASES)
def test_micro__every_case_can_be_called(name: str) -> None:
    call = CASES[name]()
    call()
    call()


def test_micro__slower_means_more_units_not_more_time() -> None:
    before = Timing(us=10, units=1)
    assert "SLOWER" not in micro.line("x", Timing(us=30, units=1.1), before)
    assert "SLOWER" in micro.line("x", Timing(us=10, units=1.2), before)
    assert "×" not in micro.line("x", Timing(us=10, units=1.2), None)


def test_micro__figures_survive_a_file(tmp_path: Path) -> None:
    figures = Micro(5.0, "compiled", {"parse": Timing(0.5, 0.1)})
    micro.save(figures, tmp_path / "micro.json")
    assert micro.load(tmp_path / "micro.json") == figures
    assert "| parse | 0.50 |" in micro.render(figures)
    assert "compiled" in micro.render(figures)


def test_micro__names_the_build_it_measured_and_the_committed_one() -> None:
    before = Micro(5.0, "pure Python")
    same, other = micro.head("pure Python", before), micro.head("compiled", before)
    assert same.startswith("hot paths, pure Python ")
    assert len(same.splitlines()) == len(micro.head("compiled", None).splitlines()) == 1
    warning, _ = other.splitlines()
    assert warning == "not like with like: now compiled, committed pure Python"


def test_micro__the_committed_figures_name_their_build() -> None:
    committed = micro.load()
    assert committed is not None
    assert committed.build in ("pure Python", "compiled")
    assert committed.build in micro.head("neither", committed)


def test_micro__figures_of_two_builds_are_not_mixed() -> None:
    before = Micro(5.0, "pure Python")
    assert micro.mixes("compiled", before)
    assert not micro.mixes("pure Python", before)
    assert not micro.mixes("compiled", None)
