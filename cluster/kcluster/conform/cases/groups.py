"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the admin APIs of groups.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import assigned_group, join, sync
from kcluster.conform.case import (
    COORDINATOR,
    NOT_COORDINATOR,
    Ask,
    Case,
    CaseBody,
    Sleep,
    passed_on,
)
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

JOIN, SYNC = ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP
BEAT, LEAVE = ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP
DESCRIBE, LIST, DELETE = ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS

MEMBER = Ask(JOIN, join(), to=COORDINATOR, may_fail=True, save={"member": "member_id"}, version=9)
"""Asks for an id: MEMBER_ID_REQUIRED comes with one."""
JOINED = (MEMBER, Ask(JOIN, join(member="{member}"), to=COORDINATOR, version=9))
STABLE = (*JOINED, Ask(SYNC, sync(), to=COORDINATOR))
STATIC = (
    Ask(JOIN, join(instance="i1"), to=COORDINATOR, save={"member": "member_id"}, version=9),
    Ask(SYNC, sync(instance="i1"), to=COORDINATOR),
)


def beat(generation: int = 1, member: str = "{member}", instance: object = None) -> JsonObject:
    return {
        "group_id": "{group}",
        "generation_id": generation,
        "member_id": member,
        "group_instance_id": instance,
    }


def leave(*members: tuple[str, object], group: str = "{group}") -> JsonObject:
    named = [{"member_id": id_, "group_instance_id": instance} for id_, instance in members]
    return {"group_id": group, "member_id": members[0][0] if members else "", "members": named}


def case(name: str, api: ApiKey, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, api, body, versions, **passed_on({"to": COORDINATOR, **more}))


OURS = {"groups": "others' groups are among them"}

CASES = (
    case("join: first", JOIN, join(), mask={"leader": "a new id"}),
    case("join: with the id given", JOIN, join(member="{member}"), "4+", before=(MEMBER,)),
    case("join: an id of one's own", JOIN, join(member="me"), "0,4,9"),
    case("join: static", JOIN, join(instance="i1"), "5+", mask={"leader": "a new id"}),
    case("join: wrong broker", JOIN, join(), to=NOT_COORDINATOR),
    case("join: empty group", JOIN, join(group=""), "0,4,9"),
    case("join: session too short", JOIN, join(session_timeout_ms=1), "0,4,9"),
    case("join: session too long", JOIN, join(session_timeout_ms=10**8), "0,4,9"),
    case("join: session -1", JOIN, join(session_timeout_ms=-1), "0,4,9"),
    case("join: no subscription", JOIN, join(metadata=b"subscribed"), "0"),
    case("join: no protocols", JOIN, join(protocols=()), "0,4,9"),
    case("join: no protocol type", JOIN, join(protocol_type=""), "0,4,9"),
    case("join: another protocol", JOIN, join(protocols=("other",)), "0,4,9", before=STABLE),
    case("join: another protocol type", JOIN, join(protocol_type="connect"), "0,4,9",
         before=STABLE),
    case("join: instance name with a blank", JOIN, join(instance="a b"), "5,9"),
    case("join: empty instance name", JOIN, join(instance=""), "5,9"),
    case("join: static again", JOIN, join(instance="i1"), "5+", before=STATIC,
         mask={"leader": "a new id"}),
    case("join: static, another's id", JOIN, join(instance="i1", member="other"), "5,9",
         before=STATIC),
    case("join: member again, same protocols", JOIN, join(member="{member}"), before=STABLE),

    case("sync: leader", SYNC, sync(), before=JOINED),
    case("sync: again", SYNC, sync(), before=STABLE),
    case("sync: unknown group", SYNC, sync(member="me")),
    case("sync: unknown member", SYNC, sync(member="me"), before=STABLE),
    case("sync: generation too old", SYNC, sync(generation=0), before=STABLE),
    case("sync: generation to come", SYNC, sync(generation=2), before=STABLE),
    case("sync: generation -1", SYNC, sync(generation=-1), before=STABLE),
    case("sync: other protocol type", SYNC, sync(protocol_type="connect"), "5+", before=JOINED),
    case("sync: other protocol name", SYNC, sync(protocol_name="other"), "5+", before=JOINED),
    case("sync: wrong broker", SYNC, sync(member="me"), to=NOT_COORDINATOR),
    case("sync: empty group", SYNC, sync(group="", member="me")),
    case("sync: nothing assigned", SYNC, sync(assignments=[]), before=JOINED),
    case("sync: assigned to strangers", SYNC, sync(
        assignments=[{"member_id": "you", "assignment": b"x"}]), before=JOINED),
    case("sync: static, fenced", SYNC, sync(instance="i1", member="me"), "3+", before=STATIC),

    case("heartbeat", BEAT, beat(), before=STABLE),
    case("heartbeat: before the sync", BEAT, beat(), before=JOINED),
    case("heartbeat: unknown group", BEAT, beat(member="me")),
    case("heartbeat: unknown member", BEAT, beat(member="me"), before=STABLE),
    case("heartbeat: wrong generation", BEAT, beat(7), before=STABLE),
    case("heartbeat: generation -1", BEAT, beat(-1), before=STABLE),
    case("heartbeat: wrong broker", BEAT, beat(member="me"), to=NOT_COORDINATOR),
    case("heartbeat: empty group", BEAT, {**beat(member="me"), "group_id": ""}),
    case("heartbeat: fenced", BEAT, beat(member="me", instance="i1"), "3+", before=STATIC),
    case("heartbeat: unknown instance", BEAT, beat(instance="i9"), "3+", before=STATIC),

    case("leave", LEAVE, leave(("{member}", None)), before=STABLE),
    case("leave: unknown group", LEAVE, leave(("me", None))),
    case("leave: unknown member", LEAVE, leave(("me", None)), before=STABLE),
    case("leave: by instance", LEAVE, leave(("", "i1")), "3+", before=STATIC),
    case("leave: unknown instance", LEAVE, leave(("", "i9")), "3+", before=STATIC),
    case("leave: fenced", LEAVE, leave(("me", "i1")), "3+", before=STATIC),
    case("leave: nobody", LEAVE, leave(), "3+", before=STABLE),
    case("leave: twice", LEAVE, leave(("{member}", None), ("{member}", None)), "3+",
         before=STABLE),
    case("leave: empty group", LEAVE, leave(("me", None), group="")),
    case("leave: wrong broker", LEAVE, leave(("me", None)), to=NOT_COORDINATOR),

    case("describe: stable", DESCRIBE, {"groups": ["{group}"]}, before=STABLE),
    case("describe: joined", DESCRIBE, {"groups": ["{group}"]}, before=(*JOINED, Sleep(100))),
    case("describe: unknown", DESCRIBE, {"groups": ["{group}"]}),
    case("describe: twice", DESCRIBE, {"groups": ["{group}", "{group}"]}, before=STABLE),
    case("describe: nothing", DESCRIBE, {"groups": []}),
    case("describe: operations", DESCRIBE,
         {"groups": ["{group}"], "include_authorized_operations": True}, "3+", before=STABLE),
    case("describe: wrong broker", DESCRIBE, {"groups": ["{group}"]}, to=NOT_COORDINATOR),

    case("list", LIST, {}, before=STABLE, mask=OURS),
    case("list: unknown state", LIST, {"states_filter": ["Sleeping"]}, "4+"),
    case("list: dead ones", LIST, {"states_filter": ["Dead"]}, "4+"),
    case("list: unknown type", LIST, {"types_filter": ["modern"]}, "5+"),
    case("list: dead share groups", LIST, {"types_filter": ["share"], "states_filter": ["Dead"]},
         "5+"),

    case("delete: empty group", DELETE, {"groups_names": ["{group}"]},
         before=(*STABLE, Ask(LEAVE, leave(("{member}", None)), to=COORDINATOR))),
    case("delete: with members", DELETE, {"groups_names": ["{group}"]}, before=STABLE),
    case("delete: unknown", DELETE, {"groups_names": ["{group}"]}),
    case("delete: twice", DELETE, {"groups_names": ["{group}", "{group}"]}),
    case("delete: nothing", DELETE, {"groups_names": []}),
    case("delete: wrong broker", DELETE, {"groups_names": ["{group}"]}, to=NOT_COORDINATOR),
    case("delete: committed only", DELETE, {"groups_names": ["{group}"]}, before=assigned_group()),
)  # fmt: skip
