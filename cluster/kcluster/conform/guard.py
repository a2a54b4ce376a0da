"""What may be sent to a cluster that belongs to somebody.

Owns: the APIs that change nothing, the fields that name what a request changes, the refusals.
Never: sends.

A request may change topics, groups and transactional ids whose names begin with the prefix of the
run; if the run has users, also users with it, and what they may do with such names; nothing else.
It is judged by its fields, whatever the case around it says, and as if `validate_only` did not
exist: a cluster may not know that field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message

READ_ONLY: Final = frozenset(
    (
        ApiKey.API_VERSIONS, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN, ApiKey.DESCRIBE_GROUPS, ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_QUORUM, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.FETCH, ApiKey.FIND_COORDINATOR,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.LIST_CONFIG_RESOURCES, ApiKey.LIST_GROUPS,
        ApiKey.LIST_OFFSETS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.LIST_TRANSACTIONS,
        ApiKey.OFFSET_FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ApiKey.SASL_HANDSHAKE,
        ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE,
    )
)  # fmt: skip
"""The APIs that change nothing that other clients see.  A Fetch of a topic of this run, even one in
the name of a replica, changes that topic only."""

_GROUP: Final = ("group_id",)
NAMED_BY: Final[dict[ApiKey, tuple[str, ...]]] = {
    ApiKey.ADD_OFFSETS_TO_TXN: ("group_id", "transactional_id"),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        "v3_and_below_transactional_id", "transactions.transactional_id",
        "v3_and_below_topics.name", "transactions.topics.name",
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("topics.name",),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ("dirs.topics.name",),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _GROUP,
    ApiKey.CREATE_PARTITIONS: ("topics.name",),
    ApiKey.CREATE_TOPICS: ("topics.name",),
    ApiKey.DELETE_GROUPS: ("groups_names",),
    ApiKey.DELETE_RECORDS: ("topics.name",),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.DELETE_SHARE_GROUP_STATE: _GROUP,
    ApiKey.DELETE_TOPICS: ("topics.name", "topic_names"),
    ApiKey.ELECT_LEADERS: ("topic_partitions.topic",),
    ApiKey.END_TXN: ("transactional_id",),
    ApiKey.HEARTBEAT: _GROUP,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _GROUP,
    ApiKey.INIT_PRODUCER_ID: ("transactional_id",),
    ApiKey.JOIN_GROUP: _GROUP,
    ApiKey.LEAVE_GROUP: _GROUP,
    ApiKey.METADATA: ("topics.name",),
    ApiKey.OFFSET_COMMIT: _GROUP,
    ApiKey.OFFSET_DELETE: _GROUP,
    ApiKey.PRODUCE: ("topic_data.name", "transactional_id"),
    ApiKey.SHARE_ACKNOWLEDGE: _GROUP,
    ApiKey.SHARE_FETCH: _GROUP,
    ApiKey.SHARE_GROUP_HEARTBEAT: _GROUP,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _GROUP,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _GROUP,
    ApiKey.SYNC_GROUP: _GROUP,
    ApiKey.TXN_OFFSET_COMMIT: ("group_id", "transactional_id"),
    ApiKey.WRITE_SHARE_GROUP_STATE: _GROUP,
    ApiKey.WRITE_TXN_MARKERS: ("markers.topics.name",),
}  # fmt: skip
"""The fields that name what a request changes.  An empty list of them changes nothing."""
_CONFIGS: Final = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
_OWN_RESOURCES: Final = (2, 32)
"""The types of config resources that a run makes: TOPIC, GROUP."""


USERS_NAMED_BY: Final = {
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("deletions.name", "upsertions.name"),
    ApiKey.CREATE_ACLS: ("creations.resource_name",),
    ApiKey.DELETE_ACLS: (),
    ApiKey.SASL_AUTHENTICATE: (),
}
"""As NAMED_BY, in a run with users."""
PRINCIPALS: Final = {
    ApiKey.CREATE_ACLS: "creations.principal",
    ApiKey.DELETE_ACLS: "filters.principal_filter",
}
"""The fields with the principals whose rights a request changes."""


def refusal(api: int, request: Message, prefix: str, *, has_users: bool = False) -> str:
    """Why a request is not sent; "" if it may be sent.  `has_users`: whether the run has users."""
    if api in READ_ONLY:
        return ""
    if has_users and api in USERS_NAMED_BY:
        return _of_users(ApiKey(api), request, prefix)
    if api in _CONFIGS:
        return _of_configs(request, prefix)
    known = ApiKey(api) if api in ApiKey._value2member_map_ else None
    if known not in NAMED_BY:
        return "it would change the cluster itself"
    if known is ApiKey.METADATA and not getattr(request, "allow_auto_topic_creation", True):
        return ""
    if known is ApiKey.ELECT_LEADERS and getattr(request, "topic_partitions", None) is None:
        return "it would change all topics of the cluster"
    for path in NAMED_BY[known]:
        for name in _values(request, path.split(".")):
            if name and not name.startswith(prefix):
                return "it names what is not of this run"
            if not name and path in _GROUP and name is not None:
                return "it names the group without a name"
    return ""


def _of_users(api: ApiKey, request: Message, prefix: str) -> str:
    for path in USERS_NAMED_BY[api]:
        if not all((name or "").startswith(prefix) for name in _values(request, path.split("."))):
            return "it names what is not of this run"
    if api in PRINCIPALS:
        principals = _values(request, PRINCIPALS[api].split("."))
        if not all((one or "").startswith(f"User:{prefix}") for one in principals):
            return "it would change the rights of others"
    return ""


def _of_configs(request: Message, prefix: str) -> str:
    for resource in getattr(request, "resources", ()):
        if resource.resource_type not in _OWN_RESOURCES or (
            resource.resource_name and not resource.resource_name.startswith(prefix)
        ):
            return "it would change configs of the cluster itself"
    return ""


def _values(value: object, path: list[str]) -> Iterator[str | None]:
    """The texts at a path, which passes through lists."""
    if isinstance(value, list):
        for one in value:
            yield from _values(one, path)
    elif not path:
        assert value is None or isinstance(value, str), value
        yield value
    elif value is not None:
        yield from _values(getattr(value, path[0]), path[1:])
