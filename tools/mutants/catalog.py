"""All mutations, by name.

Owns: the list.  Never: describes a mutation (areas/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tools.mutants.areas import (
    compaction,
    elections,
    groups,
    logs,
    members,
    metadata,
    replication,
    share,
    streams,
    transactions,
)
from tools.mutants.mutation import Mutation

AREAS: Final[Mapping[str, tuple[Mutation, ...]]] = {
    "Replication": replication.MUTATIONS,
    "Elections and fencing": elections.MUTATIONS,
    "Metadata and its effects": metadata.MUTATIONS,
    "Logs, producers, indexes": logs.MUTATIONS,
    "Transactions": transactions.MUTATIONS,
    "Groups": (*groups.MUTATIONS, *members.MUTATIONS),
    "Share groups": share.MUTATIONS,
    "Streams groups": streams.MUTATIONS,
    "Compaction and moves": compaction.MUTATIONS,
}
"""The mutations by their area."""
MUTATIONS: Final = {one.name: one for area in AREAS.values() for one in area}
"""The mutations by their name."""
