"""The workloads on which mutations are searched for, by name.

Owns: the names, and the space of each.  Never: runs one.  Kafka: no counterpart.

All are scenarios that ship with kcluster, most of them for searches.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from kcluster.scenario.language.profiles import shipped_profile
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_files, library_path
from kcluster.search.schedule import Space, space_of
from kcluster.search.widened import with_moves

SHIPPED: Final = {
    "data": "safe_settings_overlapping",
    "transactions": "txn_storm",
    "groups": "groups_storm",
    "share": "share_storm",
    "compaction": "compact_storm",
    "power": "power_storm",
}
"""The name of the scenario that ships, by the workload's name."""
NAMES: Final = (*SHIPPED, *(file.name for file in library_files(LibraryKind.SEARCH)))


def path_of(workload: str) -> Path:
    """The file of a workload."""
    shipped = SHIPPED.get(workload)
    kind = LibraryKind.SCENARIO if shipped else LibraryKind.SEARCH
    path = library_path(kind, shipped or workload)
    assert path is not None, workload
    return path


@cache
def space(workload: str) -> Space:
    """What may be drawn for a workload."""
    scenario = Scenario.load(path_of(workload))
    return space_of(scenario, with_moves(shipped_profile("overlapping_faults"), scenario))
