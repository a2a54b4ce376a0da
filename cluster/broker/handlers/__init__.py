"""One module per API family; importing this package registers every handler.

Owns: the list of handler modules.  Never: anything else (registry.py has the table).
"""

from __future__ import annotations

from cluster.broker.handlers import (
    acls,
    api_versions,
    authentication,
    configs,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    elections,
    features,
    fetch,
    find_coordinator,
    group_offsets,
    groups,
    list_offsets,
    log_dirs,
    metadata,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    producer_ids,
    producers_and_transactions,
    quorum,
    reassignments,
    topics,
)

__all__ = [
    "acls",
    "api_versions",
    "authentication",
    "configs",
    "delete_records",
    "describe_cluster",
    "describe_configs",
    "describe_topic_partitions",
    "elections",
    "features",
    "fetch",
    "find_coordinator",
    "group_offsets",
    "groups",
    "list_offsets",
    "log_dirs",
    "metadata",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "producer_ids",
    "producers_and_transactions",
    "quorum",
    "reassignments",
    "topics",
]
