"""The workloads on which mutations are searched for, by name.

Owns: the names, and the spaces of each.  Never: runs one.  Kafka: no counterpart.

All but two are scenarios that ship with kcluster, most of them for searches.  The other two stand
for what `kcluster search` takes without a scenario: all that ship, or workloads that it draws
around a topology.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from kcluster.config.files.tree import Map, from_yaml
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_files, library_path, searched_paths
from kcluster.search.around import around_topology
from kcluster.search.schedule import Space
from kcluster.search.spaces import searched_space

SHIPPED: Final = {
    "data": "safe_settings_overlapping",
    "transactions": "txn_storm",
    "groups": "groups_storm",
    "share": "share_storm",
    "compaction": "compact_storm",
    "power": "power_storm",
}
"""The name of the scenario that ships, by the workload's name."""
ANY: Final = "any"
"""The name of all workloads that ship for searches."""
AROUND: Final = "topology"
"""The name of the workloads around the topology that ships."""
AROUND_SEED: Final = 1
"""Draws these workloads, and that search: other seeds are other workloads."""
TOPOLOGY: Final = Path(__file__).resolve().parents[2] / "topology.yaml"
NAMES: Final = (*SHIPPED, *(file.name for file in library_files(LibraryKind.SEARCH)))


def paths_of(workload: str) -> list[Path]:
    """The files of a workload."""
    if workload == ANY:
        return searched_paths()
    return [TOPOLOGY if workload == AROUND else _path_of(workload)]


def _path_of(workload: str) -> Path:
    shipped = SHIPPED.get(workload)
    kind = LibraryKind.SCENARIO if shipped else LibraryKind.SEARCH
    path = library_path(kind, shipped or workload)
    assert path is not None, workload
    return path


@cache
def spaces(workload: str) -> tuple[Space, ...]:
    """What may be drawn for a workload: one space for each scenario."""
    return tuple(map(searched_space, _scenarios(workload)))


def _scenarios(workload: str) -> list[Scenario]:
    if workload != AROUND:
        return [Scenario.load(path) for path in paths_of(workload)]
    tree, problems = from_yaml(TOPOLOGY.read_text("utf-8"), str(TOPOLOGY))
    assert isinstance(tree, Map), TOPOLOGY
    return around_topology(tree, TOPOLOGY.name, problems, AROUND_SEED)
