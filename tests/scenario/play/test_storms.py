"""The random workloads that ship with kcluster: the core keeps its promises under all of them.

More seeds: kcluster scenario run txn_storm --runs 1000.
"""

from __future__ import annotations

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_path
from kcluster.scenario.play.running import run_scenario

SEEDS = {
    # A leader had compacted what its successor still has.
    "compact_storm": (1, 5139, 5196),
    # Words that counted too late, departures and answers out of order, a LeaveGroup that waits.
    "groups_storm": (3, 32, 473),
    "power_storm": (1, 2),
    # An assignment in an answer that was lost, a rest that was none: twice.  A record that was
    # delivered as often as it may be, in answers that were lost.
    "share_storm": (33, 35, 45, 214),
    "txn_storm": (1, 2),
}
"""By workload; some seeds have shown a bug or a false alarm, named above them."""


@pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds]
)
def test_storm__is_survived(name: str, seed: int) -> None:
    path = library_path(LibraryKind.SCENARIO, name)
    assert path is not None
    result = run_scenario(Scenario.load(path), "virtual", seed)
    assert result.passed, "\n".join((*result.failures, *result.verdict.lines()))
