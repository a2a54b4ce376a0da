"""One module per API family, by subject; importing this package registers every handler.

Owns: the list of handler modules.  Never: anything else (registry.py has the table).
"""

from __future__ import annotations

from kcluster.broker.handlers.admin import (
    elections,
    features,
    log_dirs,
    quorum,
    reassignments,
    telemetry,
    topics,
)
from kcluster.broker.handlers.configs import (
    alter_configs,
    client_quotas,
    config_resources,
    describe_configs,
)
from kcluster.broker.handlers.data import (
    delete_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from kcluster.broker.handlers.groups import (
    consumer_groups,
    find_coordinator,
    group_offsets,
    groups,
    offset_fetch,
    streams_groups,
    txn_offset_commit,
)
from kcluster.broker.handlers.metadata import (
    api_versions,
    describe_cluster,
    describe_topic_partitions,
    metadata,
)
from kcluster.broker.handlers.security import acls, authentication, delegation_tokens, scram
from kcluster.broker.handlers.share import (
    share_acknowledge,
    share_fetch,
    share_group_offsets,
    share_groups,
    share_state,
)
from kcluster.broker.handlers.transactions import (
    changes,
    init_producer_id,
    inspection,
    write_markers,
)

__all__ = [
    "acls",
    "alter_configs",
    "api_versions",
    "authentication",
    "changes",
    "client_quotas",
    "config_resources",
    "consumer_groups",
    "delegation_tokens",
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
    "init_producer_id",
    "inspection",
    "list_offsets",
    "log_dirs",
    "metadata",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "quorum",
    "reassignments",
    "scram",
    "share_acknowledge",
    "share_fetch",
    "share_group_offsets",
    "share_groups",
    "share_state",
    "streams_groups",
    "telemetry",
    "topics",
    "txn_offset_commit",
    "write_markers",
]
