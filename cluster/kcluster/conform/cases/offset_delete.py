"""OffsetDelete: offsets of topics that a group no longer reads.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from struct import pack

from kcluster.conform.bodies import assigned_group, commit, join, sync
from kcluster.conform.case import COORDINATOR, NOT_COORDINATOR, Ask, Case, CaseBody, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

DELETE = ApiKey.OFFSET_DELETE
READ = "__consumer_offsets"
"""What members read: a name that is the same everywhere, for it is inside of their metadata."""
SUBSCRIPTION = pack(f">hih{len(READ)}si", 0, 1, len(READ), READ.encode(), 0)
"""A consumer's to READ, version 0."""


def members(protocol_type: str = "consumer", metadata: bytes = SUBSCRIPTION) -> tuple[Ask, ...]:
    """A group of one member, which has committed an offset of READ and one of {topic}."""
    joining: JsonObject = {"protocol_type": protocol_type, "metadata": metadata}
    mine: JsonObject = {"generation": 1, "member": "{member}"}
    return (
        Ask(
            ApiKey.JOIN_GROUP,
            join(**joining),
            to=COORDINATOR,
            version=9,
            may_fail=True,
            save={"member": "member_id"},
        ),
        Ask(ApiKey.JOIN_GROUP, join(member="{member}", **joining), to=COORDINATOR, version=9),
        Ask(ApiKey.SYNC_GROUP, sync(protocol_type=protocol_type), to=COORDINATOR),
        Ask(ApiKey.OFFSET_COMMIT, commit(**mine, topic=READ), to=COORDINATOR, version=9),
        Ask(ApiKey.OFFSET_COMMIT, commit(**mine), to=COORDINATOR),
    )


LEFT = (Ask(ApiKey.LEAVE_GROUP, {
    "group_id": "{group}", "member_id": "{member}", "members": [{"member_id": "{member}"}],
}, to=COORDINATOR),)  # fmt: skip


def deleted(*topics: tuple[str, list[int]], group: str = "{group}") -> JsonObject:
    return {
        "group_id": group,
        "topics": [
            {"name": name, "partitions": [{"partition_index": index} for index in partitions]}
            for name, partitions in topics
        ],
    }


def case(name: str, body: CaseBody, **more: object) -> Case:
    return Case(name, DELETE, body, **passed_on({"to": COORDINATOR, **more}))


MINE, OTHER = (READ, [0]), ("{topic}", [0])

CASES = (
    case("of a group without members", deleted(OTHER), before=assigned_group()),
    case("of an unknown group", deleted(MINE)),
    case("of a nameless group", deleted(MINE, group="")),
    case("at the wrong broker", deleted(MINE), to=NOT_COORDINATOR),
    case("not committed", deleted(("{topic}", [1])), before=assigned_group()),
    case("of unknown partitions", deleted(("{topic}", [0, 9, -1])), before=assigned_group()),
    case("of an unknown topic", deleted(("{missing}", [0]), OTHER), before=assigned_group()),
    case("nothing", deleted(), before=assigned_group()),
    case("no partitions", deleted(("{topic}", [])), before=assigned_group()),
    case("twice", deleted(("{topic}", [0, 0]), OTHER), before=assigned_group()),
    case("of a topic that members read", deleted(MINE), before=members()),
    case("of a topic that no member reads", deleted(OTHER), before=members()),
    case("of both", deleted(MINE, OTHER), before=members()),
    case("of both and unknown ones", deleted((READ, [0, 99]), ("{missing}", [0]), OTHER),
         before=members()),
    case("after the members left", deleted(MINE, OTHER), before=members() + LEFT),
    case("of a group that is no consumers'", deleted(MINE), before=members("connect")),
    case("of no consumers, unknown topic", deleted(("{missing}", [0])),
         before=members("connect")),
    case("of no consumers, after they left", deleted(MINE), before=members("connect") + LEFT),
    case("of a subscription that cannot be read", deleted(MINE), before=members(metadata=b"?")),
)  # fmt: skip
