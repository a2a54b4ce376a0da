"""A search of programs from the catalogue: quick ones are found, by their words."""

from __future__ import annotations

import pytest

from tools.program_bugs.catalog import CATALOG
from tools.program_bugs.measure import BUG, TWIN, Search, measure

QUICK = ("queue_worker", "own_offsets")


@pytest.mark.long
@pytest.mark.timeout_s(300)
@pytest.mark.parametrize("name", QUICK)
def test_measure__a_quick_bug_is_found(name: str) -> None:
    program = CATALOG[name]
    found = measure(program, Search(name, BUG, 12))
    assert found.problem == ""
    assert 1 <= found.run <= 12
    assert found.is_right(program)
    assert (found.steps, found.sentence.count("kill app")) == (1, 1)


@pytest.mark.long
@pytest.mark.timeout_s(300)
def test_measure__a_twin_is_left_in_peace() -> None:
    found = measure(CATALOG["queue_worker"], Search("queue_worker", TWIN, 4))
    assert (found.problem, found.run, found.runs) == ("", 0, 4)
