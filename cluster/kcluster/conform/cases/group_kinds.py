"""Groups of each kind and what belongs to another: heartbeats, descriptions, offsets, deletions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import beats_streams, commit, join, joins_streams, sync
from kcluster.conform.case import COORDINATOR, Ask, Case, Sleep, Step
from kcluster.conform.cases.consumer_groups import beat, joins
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

CONSUMER, SHARE = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT
STREAMS = ApiKey.STREAMS_GROUP_HEARTBEAT
SHARED = {"group_id": "{group}", "member_id": "a", "member_epoch": 0,
          "subscribed_topic_names": ["{topic}"]}  # fmt: skip
LEFT_EPOCH = -1
INITIALIZED = Sleep(1_000)
"""Time enough for the coordinator to initialize the state of the share partitions."""

MEMBERS: dict[str, tuple[Step, ...]] = {
    "classic": (
        Ask(ApiKey.JOIN_GROUP, join(instance="i1"), to=COORDINATOR, version=9,
            save={"member": "member_id"}),
        Ask(ApiKey.SYNC_GROUP, sync(instance="i1"), to=COORDINATOR),
    ),
    "consumer": (Ask(CONSUMER, joins("a"), to=COORDINATOR),),
    "share": (Ask(SHARE, SHARED, to=COORDINATOR), INITIALIZED),
    "streams": (Ask(STREAMS, joins_streams(), to=COORDINATOR),),
}  # fmt: skip
"""The group with one member, by kind."""
LEFT: dict[str, tuple[Step, ...]] = {
    "classic": (
        Ask(ApiKey.LEAVE_GROUP, {"group_id": "{group}", "members": [
            {"member_id": "", "group_instance_id": "i1"}]}, to=COORDINATOR),
    ),
    "consumer": (Ask(CONSUMER, beat("a", LEFT_EPOCH), to=COORDINATOR),),
    "share": (Ask(SHARE, {**SHARED, "member_epoch": LEFT_EPOCH}, to=COORDINATOR),),
    "streams": (Ask(STREAMS, beats_streams(LEFT_EPOCH), to=COORDINATOR),),
}  # fmt: skip
"""How this member leaves."""

GROUP = {"group_id": "{group}"}
ONE = [{"name": "{topic}", "partitions": [{"partition_index": 0}]}]
ASKED: dict[str, tuple[ApiKey, JsonObject]] = {
    "consumer heartbeat": (CONSUMER, beat("a", 1)),
    "share heartbeat": (SHARE, {**SHARED, "member_epoch": 1}),
    "streams heartbeat": (STREAMS, beats_streams(1)),
    "joins as a consumer": (CONSUMER, joins("other")),
    "joins as a share consumer": (SHARE, {**SHARED, "member_id": "other"}),
    "joins as an application": (STREAMS, joins_streams()),
    "sync": (ApiKey.SYNC_GROUP, sync(member="a")),
    "classic heartbeat": (ApiKey.HEARTBEAT, {**GROUP, "generation_id": 1, "member_id": "a"}),
    "leave": (ApiKey.LEAVE_GROUP, {**GROUP, "members": [{"member_id": "nobody"}]}),
    "describe as classic": (ApiKey.DESCRIBE_GROUPS, {"groups": ["{group}"]}),
    "describe as consumers": (ApiKey.CONSUMER_GROUP_DESCRIBE, {"group_ids": ["{group}"]}),
    "describe as share": (ApiKey.SHARE_GROUP_DESCRIBE, {"group_ids": ["{group}"]}),
    "describe as streams": (ApiKey.STREAMS_GROUP_DESCRIBE, {"group_ids": ["{group}"]}),
    "share offsets": (
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": [{**GROUP, "topics": None}]}
    ),
    "alter share offsets": (
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        {**GROUP, "topics": [{"topic_name": "{topic}", "partitions": [{"partition_index": 0}]}]},
    ),
    "delete share offsets": (
        ApiKey.DELETE_SHARE_GROUP_OFFSETS, {**GROUP, "topics": [{"topic_name": "{topic}"}]}
    ),
    "delete offsets": (ApiKey.OFFSET_DELETE, {**GROUP, "topics": ONE}),
    "commit": (ApiKey.OFFSET_COMMIT, commit()),
    "delete": (ApiKey.DELETE_GROUPS, {"groups_names": ["{group}"]}),
}  # fmt: skip
OWN = {
    "classic": ("sync", "classic heartbeat", "describe as classic"),
    "consumer": ("consumer heartbeat", "joins as a consumer", "describe as consumers"),
    "share": ("share heartbeat", "joins as a share consumer", "describe as share", "share offsets"),
    "streams": ("streams heartbeat", "joins as an application", "describe as streams"),
}
"""What belongs to the kind itself has cases in its own family."""


def _cases() -> list[Case]:
    return [
        Case(f"{kind}, {state}: {name}", api, body, to=COORDINATOR, before=before,
             versions="newest")
        for kind, members in MEMBERS.items()
        for state, before in (("a member", members), ("empty", (*members, *LEFT[kind])))
        for name, (api, body) in ASKED.items()
        if name not in OWN[kind]
    ]  # fmt: skip


CASES = tuple(_cases())
