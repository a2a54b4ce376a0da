"""A search for a mutation: a few quick ones are found by their names, the core as it is is not."""

from __future__ import annotations

import pytest
from msgspec import structs

from tools.mutants.catalog import MUTATIONS
from tools.mutants.measure import Limits, measure
from tools.mutants.mutation import Edit, mutation
from tools.mutants.workloads import ANY, AROUND

pytestmark = pytest.mark.pure_python  # the text of a compiled module cannot be replaced

QUICK = {"hw_counts_non_isr": "watermark-above-isr", "kip841_fenced_joins": "fenced-in-isr"}


@pytest.mark.parametrize(("name", "finding"), QUICK.items(), ids=QUICK)
def test_measure__a_quick_mutation_is_found_by_name(name: str, finding: str) -> None:
    found = measure(MUTATIONS[name], 1, Limits(runs=16), shrinks=False)
    assert (found.finding, found.is_right) == (finding, True)
    assert finding in found.names
    assert 1 <= found.run <= 16


@pytest.mark.parametrize("without", [ANY, AROUND])
def test_measure__without_a_scenario(without: str) -> None:
    """The workloads take turns."""
    bare = structs.replace(MUTATIONS["hw_counts_non_isr"], workloads=(without,))
    found = measure(bare, 1, Limits(runs=16), shrinks=False)
    assert (found.finding, found.without) == ("watermark-above-isr", without)


def test_measure__what_changes_nothing_is_not_found() -> None:
    edit = Edit("partition/epochs.py", "assert epoch >= 0, epoch\n", "assert epoch > -1, epoch\n")
    found = measure(mutation("nothing", "", edit, on="data", expects="crash"), 1, Limits(runs=4))
    assert (found.run, found.runs, found.finding) == (0, 4, "")


def test_measure__a_finding_with_another_name_is_another_cause() -> None:
    edit = Edit("partition/epochs.py", "assert epoch >= 0, epoch\n", "assert epoch < 0, epoch\n")
    broken = mutation("broken", "", edit, on="data", expects="lost-write")
    found = measure(broken, 1, Limits(runs=2), shrinks=False)
    assert (found.run, found.is_right) == (1, False)
