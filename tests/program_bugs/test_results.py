"""Results are kept, and a changed search is made again; the page shows what was measured."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tools.program_bugs.catalog import CATALOG
from tools.program_bugs.measure import BUG, TWIN, Measured, Search
from tools.program_bugs.page import page_of
from tools.program_bugs.results import ProgramResults, is_enough, key_of

POOL = CATALOG["pool"]
SEARCH = Search("pool", BUG, 50)
FOUND = Measured(
    SEARCH,
    run=4,
    runs=5,
    cpu_s=7.25,
    reason="AssertionError: an order was not charged",
    sentence="Without faults, the test passes. It needs one step: kill app billing at the 9th"
    " commit of billing for 5s. Without this step it does not happen.",
    steps_before=2,
    steps=1,
)


def test_program_results__are_found_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "results.jsonl"
    key = key_of(POOL, SEARCH)
    ProgramResults(file).add(key, FOUND)
    assert ProgramResults(file).get(key) == FOUND


def test_program_results__of_another_search_are_not_taken() -> None:
    searches = (SEARCH, replace(SEARCH, kind=TWIN), replace(SEARCH, seed=2))
    keys = {key_of(POOL, each) for each in (*searches, replace(SEARCH, plain=True))}
    assert len({*keys, key_of(CATALOG["tasks"], SEARCH)}) == 5


def test_program_results__are_taken_for_another_number_of_runs_if_they_would_be_the_same() -> None:
    missed = replace(FOUND, run=0, runs=50)
    assert is_enough(FOUND, replace(SEARCH, runs=4))
    assert is_enough(FOUND, replace(SEARCH, runs=3)), "a longer search tells more"
    assert not is_enough(replace(missed, runs=2), replace(SEARCH, runs=3))
    assert is_enough(missed, SEARCH)
    assert not is_enough(missed, replace(SEARCH, runs=60))
    assert not is_enough(replace(FOUND, problem="it does not begin"), SEARCH)


def test_page__has_a_row_for_each_program() -> None:
    twin = Measured(replace(SEARCH, kind=TWIN), runs=50)
    page = page_of([FOUND, twin], 50)
    assert "| `pool` | kafka-python | 4 | 7 s | 2 → 1 | 50 | Auto-commit while a pool" in page
    assert "needs one step: kill app billing at the 9th commit of billing for 5s.*" in page
    for name in CATALOG:
        assert f"\n| `{name}` | " in page


def test_page__shows_a_find_for_another_reason_as_such() -> None:
    other = replace(FOUND, reason="KafkaTimeoutError")
    assert not other.is_right(POOL)
    assert "| 4, another bug |" in page_of([other], 50)
