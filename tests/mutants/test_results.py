"""Results are kept, and a changed mutation is measured again; the page shows what was measured."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tools.mutants.catalog import MUTATIONS
from tools.mutants.measure import Limits, Measured
from tools.mutants.page import page_of
from tools.mutants.results import Results, is_within, judged, key_of
from tools.mutants.workloads import ANY, AROUND

KIP_279 = MUTATIONS["kip279_unknown_epoch"]
FOUND = Measured(
    name=KIP_279.name,
    guided=True,
    seed=1,
    runs=4,
    cpu_s=1.25,
    run=4,
    workload="data",
    finding="committed-differs",
    names=("committed-differs",),
    is_right=True,
    steps_before=9,
    steps=5,
    sentence="committed-differs at +5s: orders-0: offset 7 is of epoch 2 here.",
)


def test_results__are_found_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "results.jsonl"
    key = key_of(KIP_279, 1, guided=True)
    Results(file).add(key, FOUND)
    again = Results(file)
    assert again.get(key) == FOUND
    again.forget()
    assert Results(file).get(key) is None


def test_results__of_some_mutations_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results = Results(file)
    results.add("one", FOUND)
    results.add("other", FOUND)
    results.forget({"one"})
    assert (Results(file).get("one"), Results(file).get("other")) == (None, FOUND)


def test_results__of_another_search_are_not_taken() -> None:
    keys = {
        key_of(KIP_279, 1, guided=True),
        key_of(KIP_279, 2, guided=True),
        key_of(KIP_279, 1, guided=False),
        key_of(MUTATIONS["kip320_no_fencing"], 1, guided=True),
    }
    assert len(keys) == 4


def test_results__are_judged_by_the_names_that_are_expected_now() -> None:
    found = replace(FOUND, names=("crash", "committed-lost"), finding="crash", is_right=False)
    again = judged(KIP_279, found)
    assert (again.finding, again.is_right) == ("committed-lost", True)
    assert not judged(KIP_279, replace(FOUND, names=("crash",))).is_right


def test_results__of_a_search_with_other_limits_are_taken_if_they_would_be_the_same() -> None:
    missed = replace(FOUND, run=0, runs=20, cpu_s=6.0)
    assert is_within(FOUND, Limits(runs=4))
    assert not is_within(FOUND, Limits(runs=3))
    assert is_within(missed, Limits(runs=20))
    assert is_within(missed, Limits(runs=50, cpu_s=6.0))
    assert not is_within(missed, Limits(runs=50, cpu_s=9.0))


def test_page__has_a_row_for_each_mutation() -> None:
    page = page_of([FOUND], Limits())
    assert f"| `{KIP_279.name}` | `committed-differs` | 4 | 1.2 s | 9 → 5 | KIP-279: " in page
    for name in MUTATIONS:
        assert f"\n| `{name}` | " in page


def test_page__shows_the_searches_without_a_scenario_beside_it() -> None:
    every = replace(FOUND, without=ANY, run=17, runs=17)
    missed = replace(FOUND, without=AROUND, run=0, runs=60)
    assert "| `committed-differs` | 4 | 1.2 s | 9 → 5 | 17 | > 60 | " in page_of(
        [FOUND, every, missed], Limits()
    )
