"""Every mutation applies to the core as it is, and names what exists."""

from __future__ import annotations

import ast

import pytest

from kcluster.search.findings import NAMES
from tools.mutants import workloads
from tools.mutants.catalog import AREAS, MUTATIONS
from tools.mutants.mutation import Edit, MutationError, changed_texts, mutation

LOG = "partition/log/log.py"


def test_catalog__every_mutation_applies() -> None:
    broken = []
    for one in MUTATIONS.values():
        try:
            for text in changed_texts(one).values():
                ast.parse(text)
        except (MutationError, SyntaxError) as error:
            broken.append(f"{one.name}: {error}")
    assert broken == []


def test_catalog__names_are_unique_and_what_they_refer_to_exists() -> None:
    assert len(MUTATIONS) == sum(map(len, AREAS.values()))
    for one in MUTATIONS.values():
        assert set(one.expects) <= set(NAMES), one.name
        assert set(one.workloads) <= set(workloads.NAMES), one.name
        assert bool(one.expects) != bool(one.equivalent), one.name


@pytest.mark.parametrize("name", workloads.NAMES)
def test_catalog__every_workload_leaves_faults_open(name: str) -> None:
    assert all(space.sources for space in workloads.spaces(name))


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (Edit(LOG, "def no_such_thing(", "x"), "has 0 times, not once: def no_such_thing("),
        (Edit(LOG, "self", "this"), "times, not once: self"),
        (Edit("partition/logs.py", "a", "b"), "there is no partition/logs.py"),
    ],
)
def test_mutation__that_no_longer_applies_is_named(edit: Edit, text: str) -> None:
    with pytest.raises(MutationError) as caught:
        changed_texts(mutation("of_yesterday", "", edit, on="data", expects="crash"))
    assert str(caught.value).startswith("of_yesterday: ")
    assert text in str(caught.value)
