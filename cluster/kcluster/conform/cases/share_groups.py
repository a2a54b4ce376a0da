"""ShareGroupHeartbeat, ShareGroupDescribe, and the offsets of share groups.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import commit, join
from kcluster.conform.case import COORDINATOR, NOT_COORDINATOR, Ask, Case, CaseBody, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

BEAT, DESCRIBE = ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE
OFFSETS, ALTER = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS
DELETE = ApiKey.DELETE_SHARE_GROUP_OFFSETS


def case(name: str, api: ApiKey, body: CaseBody, **more: object) -> Case:
    return Case(name, api, body, **passed_on({"to": COORDINATOR, **more}))


def beat(member: str = "anna", epoch: int = 0, **more: object) -> JsonObject:
    names = {"subscribed_topic_names": ["{topic}"]} if epoch == 0 else {}
    return {
        "group_id": "{group}",
        "member_id": member,
        "member_epoch": epoch,
        **passed_on(names),
        **more,
    }


def alter(
    topic: str = "{topic}", *partitions: tuple[int, int], group: str = "{group}"
) -> JsonObject:
    cells = [{"partition_index": one, "start_offset": start} for one, start in partitions]
    return {"group_id": group, "topics": [{"topic_name": topic, "partitions": cells}]}


def offsets(topic: str | None = "{topic}", *partitions: int, group: str = "{group}") -> JsonObject:
    rows = None if topic is None else [{"topic_name": topic, "partitions": list(partitions)}]
    return {"groups": [{"group_id": group, "topics": rows}]}


def delete(*topics: str, group: str = "{group}") -> JsonObject:
    return {"group_id": group, "topics": [{"topic_name": name} for name in topics]}


READY = (
    Ask(ApiKey.FIND_COORDINATOR, {"key_type": 2, "coordinator_keys": [f"a:{'A' * 22}:0"]},
        retry=("COORDINATOR_NOT_AVAILABLE", "INVALID_REPLICATION"),
        note="the share state has its topic"),
    Ask(ALTER, alter("{fresh}", (0, 0), (1, 0)), to=COORDINATOR, retry=("UNKNOWN_TOPIC",),
        note="its coordinators know the topic"),
)  # fmt: skip
JOINED = (Ask(BEAT, beat(), to=COORDINATOR),)
CLASSIC = (
    Ask(ApiKey.OFFSET_COMMIT, {"group_id": "{group}", "generation_id_or_member_epoch": -1,
        "topics": [{"name": "{topic}", "partitions": [{"partition_index": 0}]}]}, 8,
        to=COORDINATOR),
)  # fmt: skip

CASES = (
    case("heartbeat: joins", BEAT, beat()),
    case("heartbeat: joins with a rack", BEAT, beat(rack_id="r1")),
    case("heartbeat: joins again", BEAT, beat(), before=JOINED),
    case("heartbeat: joins without topics", BEAT, beat(subscribed_topic_names=None)),
    case("heartbeat: joins with no topic", BEAT, beat(subscribed_topic_names=[])),
    case("heartbeat: a topic that does not exist", BEAT, beat(subscribed_topic_names=["{new}"])),
    case("heartbeat: a topic twice", BEAT, beat(subscribed_topic_names=["{topic}", "{topic}"])),
    case("heartbeat: an empty topic name", BEAT, beat(subscribed_topic_names=[""])),
    case("heartbeat: no member id", BEAT, beat("")),
    case("heartbeat: a blank member id", BEAT, beat(" ")),
    case("heartbeat: a long member id", BEAT, beat("m" * 36)),
    case("heartbeat: a member id that is too long", BEAT, beat("m" * 37)),
    case("heartbeat: an empty rack", BEAT, beat(rack_id="")),
    case("heartbeat: epoch -1 of no group", BEAT, beat(epoch=-1)),
    case("heartbeat: epoch -1 of no member", BEAT, beat("bert", -1), before=JOINED),
    case("heartbeat: epoch -2", BEAT, beat(epoch=-2), before=JOINED),
    case("heartbeat: leaves", BEAT, beat(epoch=-1), before=JOINED),
    case("heartbeat: epoch of no group", BEAT, beat(epoch=1)),
    case("heartbeat: epoch of no member", BEAT, beat("bert", 2), before=JOINED),
    case("heartbeat: epoch too high", BEAT, beat(epoch=7), before=JOINED),
    case("heartbeat: epoch too low", BEAT, beat(epoch=1), before=JOINED),
    case("heartbeat: another member", BEAT, beat("bert"), before=JOINED),
    case("heartbeat: of a classic group", BEAT, beat(), before=CLASSIC),
    case("heartbeat: wrong broker", BEAT, beat(), to=NOT_COORDINATOR),

    case("another: join", ApiKey.JOIN_GROUP, join(), before=JOINED, mask={
         "member_id": "may be drawn"}),
    case("another: heartbeat of a consumer group", ApiKey.CONSUMER_GROUP_HEARTBEAT, {
        "group_id": "{group}", "member_id": "m", "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["{topic}"], "topic_partitions": []}, before=JOINED),
    case("another: commit", ApiKey.OFFSET_COMMIT, commit(), before=JOINED),
    case("another: commit as a member", ApiKey.OFFSET_COMMIT, commit(generation=2, member="anna"),
         before=JOINED),
    case("another: fetch offsets", ApiKey.OFFSET_FETCH, {"groups": [{"group_id": "{group}",
         "topics": None}]}, versions="8+", before=JOINED),
    case("another: fetch offsets as a member", ApiKey.OFFSET_FETCH, {"groups": [{
         "group_id": "{group}", "member_id": "anna", "member_epoch": 2, "topics": None}]},
         versions="9+", before=JOINED),
    case("another: fetch an offset", ApiKey.OFFSET_FETCH, {"groups": [{
         "group_id": "{group}", "member_id": "anna", "member_epoch": 2, "topics": [
             {"name": "{topic}", "topic_id": "{topic_id}", "partition_indexes": [0]}]}]},
         versions="9+", before=JOINED),
    case("another: delete offsets", ApiKey.OFFSET_DELETE, {"group_id": "{group}", "topics": [
         {"name": "{topic}", "partitions": [{"partition_index": 0}]}]}, before=JOINED),
    case("another: describe as a consumer group", ApiKey.CONSUMER_GROUP_DESCRIBE,
         {"group_ids": ["{group}"]}, before=JOINED),
    case("another: describe as a classic group", ApiKey.DESCRIBE_GROUPS, {"groups": ["{group}"]},
         before=JOINED),
    case("another: delete with members", ApiKey.DELETE_GROUPS, {"groups_names": ["{group}"]},
         before=JOINED),
    case("another: delete", ApiKey.DELETE_GROUPS, {"groups_names": ["{group}"]},
         before=(*JOINED, Ask(BEAT, beat(epoch=-1), to=COORDINATOR))),

    case("describe: a member", DESCRIBE, {"group_ids": ["{group}"]}, before=JOINED),
    case("describe: with operations", DESCRIBE,
         {"group_ids": ["{group}"], "include_authorized_operations": True}, before=JOINED),
    case("describe: no group", DESCRIBE, {"group_ids": ["{group}"]}),
    case("describe: a classic group", DESCRIBE, {"group_ids": ["{group}"]}, before=CLASSIC),
    case("describe: an empty id", DESCRIBE, {"group_ids": [""]}),
    case("describe: nothing", DESCRIBE, {"group_ids": []}),
    case("describe: wrong broker", DESCRIBE, {"group_ids": ["{group}"]}, to=NOT_COORDINATOR),

    case("offsets: of no group", OFFSETS, offsets("{topic}", 0, 1)),
    case("offsets: all of no group", OFFSETS, offsets(None)),
    case("offsets: unknown topic", OFFSETS, offsets("{new}", 0)),
    case("offsets: unknown partition", OFFSETS, offsets("{topic}", 9)),
    case("offsets: no partitions", OFFSETS, offsets("{topic}")),
    case("offsets: no topics", OFFSETS, {"groups": [{"group_id": "{group}", "topics": []}]}),
    case("offsets: no groups", OFFSETS, {"groups": []}),
    case("offsets: wrong broker", OFFSETS, offsets("{topic}", 0), to=NOT_COORDINATOR),
    case("offsets: all, wrong broker", OFFSETS, offsets(None), to=NOT_COORDINATOR),

    case("alter: again", ALTER, alter("{fresh}", (0, 0)), before=READY,
         after=(Ask(OFFSETS, offsets("{fresh}", 0), to=COORDINATOR),)),
    case("alter: unknown topic", ALTER, alter("{new}", (0, 0))),
    case("alter: unknown partition", ALTER, alter("{fresh}", (9, 0))),
    case("alter: one of two", ALTER, alter("{fresh}", (1, 5), (9, 0)), before=READY),
    case("alter: no partitions", ALTER, alter("{fresh}")),
    case("alter: nothing", ALTER, {"group_id": "{group}", "topics": []}),
    case("alter: an empty id", ALTER, alter("{fresh}", (0, 0), group="")),
    case("alter: a group with members", ALTER, alter("{topic}", (0, 0)), before=JOINED),
    case("alter: a classic group", ALTER, alter("{topic}", (0, 0)), before=CLASSIC),
    case("alter: wrong broker", ALTER, alter("{topic}", (0, 0)), to=NOT_COORDINATOR),

    case("delete: no group", DELETE, delete("{topic}")),
    case("delete: an empty id", DELETE, delete("{topic}", group="")),
    case("delete: a group with members", DELETE, delete("{topic}"), before=JOINED),
    case("delete: a classic group", DELETE, delete("{topic}"), before=CLASSIC),
    case("delete: what was altered", DELETE, delete("{fresh}"),
         before=(*READY, Ask(OFFSETS, offsets(None), to=COORDINATOR, until="{fresh}")),
         after=(Ask(OFFSETS, offsets(None), to=COORDINATOR),)),
    case("delete: what was not", DELETE, delete("{topic}", "{new}"),
         before=READY),
    case("delete: wrong broker", DELETE, delete("{topic}"), to=NOT_COORDINATOR),
)  # fmt: skip
