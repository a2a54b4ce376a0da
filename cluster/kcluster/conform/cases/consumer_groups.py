"""Consumer groups (KIP-848): ConsumerGroupHeartbeat, ConsumerGroupDescribe, offsets by epoch.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import commit, join, sync
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

BEAT, DESCRIBE = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE
JOIN, SYNC, CLASSIC_BEAT = ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT
LEAVE, LIST, DELETE = ApiKey.LEAVE_GROUP, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS


def beat(member: str = "a", epoch: int = 2, owned: object = None, **more: object) -> JsonObject:
    """A heartbeat; `owned`: partitions of {topic}."""
    if owned is not None:
        owned = [{"topic_id": "{topic_id}", "partitions": owned}] if owned else []
    return {
        "group_id": "{group}",
        "member_id": member,
        "member_epoch": epoch,
        "topic_partitions": owned,
        **more,
    }


def joins(member: str = "a", **more: object) -> JsonObject:
    """The first heartbeat of a member."""
    first = {
        "epoch": 0,
        "owned": [],
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["{topic}"],
    }
    return beat(member, **{**passed_on(first), **more})


def ask(body: JsonObject, **more: object) -> Ask:
    return Ask(BEAT, body, 1, to=COORDINATOR, **passed_on(more))


JOINED = (ask(joins()),)
PAUSE = Sleep(1_100)
"""Longer than the assignment interval."""
TWO = (*JOINED, PAUSE, ask(joins("b")))
STATIC = (ask(joins(instance_id="i1")),)
AWAY = (*STATIC, ask(beat(epoch=-2, instance_id="i1")))
CLASSIC = (
    Ask(JOIN, join(), to=COORDINATOR, may_fail=True, save={"member": "member_id"}, version=9),
    Ask(JOIN, join(member="{member}", metadata="{subscription}"), to=COORDINATOR, version=9),
    Ask(SYNC, sync(assignments=[]), to=COORDINATOR),
)

NEW_ID = {"member_id": "a new id"}
BY_HASH = {"partitions": "which of the members gets more depends on a hash of their ids there"}


def case(name: str, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, BEAT, body, versions, **passed_on({"to": COORDINATOR, **more}))


def other(name: str, api: ApiKey, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, api, body, versions, **passed_on({"to": COORDINATOR, **more}))


def fetched(member: str | None, epoch: int) -> JsonObject:
    asked = {
        "group_id": "{group}",
        "member_id": member,
        "member_epoch": epoch,
        "topics": [{"name": "{topic}", "topic_id": "{topic_id}", "partition_indexes": [0]}],
    }
    return {"groups": [asked]}


CASES = (
    case("join: first", joins()),
    case("join: without an id", joins(""), mask=NEW_ID),
    case("join: blank id", joins(" ")),
    case("join: wrong broker", joins(), to=NOT_COORDINATOR),
    case("join: empty group", joins(group_id="")),
    case("join: blank instance", joins(instance_id=" ")),
    case("join: empty rack", joins(rack_id="")),
    case("join: no rebalance timeout", joins(rebalance_timeout_ms=-1)),
    case("join: rebalance timeout of 0", joins(rebalance_timeout_ms=0)),
    case("join: null partitions", joins(owned=None)),
    case("join: with partitions", joins(owned=[0])),
    case("join: no subscription", joins(subscribed_topic_names=None)),
    case("join: no topics", joins(subscribed_topic_names=[])),
    case("join: a topic twice", joins(subscribed_topic_names=["{topic}", "{topic}"])),
    case("join: a missing topic", joins(subscribed_topic_names=["{missing}"])),
    case("join: unknown assignor", joins(server_assignor="best")),
    case("join: empty assignor", joins(server_assignor="")),
    case("join: range", joins(server_assignor="range")),
    case("join: by expression", joins(subscribed_topic_names=None,
         subscribed_topic_regex="{topic}"), "1"),
    case("join: empty expression", joins(subscribed_topic_names=None,
         subscribed_topic_regex=""), "1"),
    case("join: bad expression", joins(subscribed_topic_regex="(a"), "1"),
    case("join: look-ahead", joins(subscribed_topic_regex="(?=a)"), "1"),
    case("join: again", joins(), before=JOINED),
    case("join: a second one", joins("b"), before=(*JOINED, PAUSE)),
    case("join: a second one at once", joins("b"), before=JOINED),
    case("join: classic group of another type", joins(), before=(
        Ask(JOIN, join(protocol_type="connect"), to=COORDINATOR, may_fail=True,
            save={"member": "member_id"}, version=9),
        Ask(JOIN, join(member="{member}", protocol_type="connect"), to=COORDINATOR, version=9))),
    case("join: classic group of unreadable members", joins(), before=(
        *CLASSIC[:1], Ask(JOIN, join(member="{member}", metadata=b"x"), to=COORDINATOR, version=9),
        Ask(SYNC, sync(assignments=[]), to=COORDINATOR))),
    case("join: classic group", joins(), before=CLASSIC, mask=BY_HASH),
    case("join: empty classic group", joins(), before=(
        *CLASSIC, Ask(LEAVE, {"group_id": "{group}", "member_id": "{member}",
                              "members": [{"member_id": "{member}"}]}, to=COORDINATOR))),

    case("beat: unknown group", beat()),
    case("beat: classic group", beat(), before=CLASSIC),
    case("beat: unknown member", beat("b"), before=JOINED),
    case("beat: no id", beat(""), before=JOINED),
    case("beat: nothing new", beat(), before=JOINED),
    case("beat: everything again", joins(epoch=2, owned=[0, 1, 2]), before=JOINED),
    case("beat: epoch too new", beat(epoch=3), before=JOINED),
    case("beat: epoch too old", beat(epoch=1), before=JOINED),
    case("beat: epoch -3", beat(epoch=-3), before=JOINED),
    case("beat: not its partitions", beat(owned=[7]), before=JOINED),
    case("beat: the epoch before", beat(epoch=2, owned=[0]), before=(
        *TWO, PAUSE, ask(beat()), ask(beat(owned=[0, 1])))),
    case("beat: the epoch before, all owned", beat(epoch=2, owned=[0, 1, 2]), before=(
        *TWO, PAUSE, ask(beat()), ask(beat(owned=[0, 1])))),
    case("beat: asked to revoke", beat(), before=TWO),
    case("beat: has revoked", beat(owned=[0, 1]), before=(*TWO, ask(beat()))),
    case("beat: has not revoked", beat(owned=[0, 1, 2]), before=(*TWO, ask(beat()))),
    case("beat: says nothing of it", beat(), before=(*TWO, ask(beat()))),
    case("beat: gets what was revoked", beat("b", 3), before=(
        *TWO, ask(beat()), ask(beat(owned=[0, 1])))),
    case("beat: other topics", beat(subscribed_topic_names=["{fresh}"]), before=(*JOINED, PAUSE)),
    case("beat: other topics at once", beat(subscribed_topic_names=["{fresh}"]), before=JOINED),
    case("beat: no topics any more", beat(subscribed_topic_names=[]), before=(*JOINED, PAUSE)),
    case("beat: another rack", beat(rack_id="r9"), before=JOINED),
    case("beat: wrong broker", beat(), to=NOT_COORDINATOR),

    case("leave", beat(epoch=-1), before=JOINED),
    case("leave: unknown group", beat(epoch=-1)),
    case("leave: unknown member", beat("b", epoch=-1), before=JOINED),
    case("leave: no id", beat("", epoch=-1), before=JOINED),
    case("leave: classic group", beat(epoch=-1), before=CLASSIC),
    case("leave: -2 without an instance", beat(epoch=-2), before=JOINED),

    case("static: join", joins(instance_id="i1")),
    case("static: joined by another", joins("b", instance_id="i1"), before=STATIC),
    case("static: beat of another", beat("b", instance_id="i1"), before=STATIC),
    case("static: unknown instance", beat(instance_id="i9"), before=STATIC),
    case("static: beat without its instance", beat(), before=STATIC),
    case("static: away", beat(epoch=-2, instance_id="i1"), before=STATIC),
    case("static: away under another id", beat("b", epoch=-2, instance_id="i1"), before=STATIC),
    case("static: back", joins("b", instance_id="i1"), before=AWAY),
    case("static: back with other topics", joins("b", instance_id="i1",
         subscribed_topic_names=["{fresh}"]), before=(*AWAY, PAUSE)),
    case("static: leaves for good", beat(epoch=-1, instance_id="i1"), before=STATIC),
    case("static: beat while away", beat(instance_id="i1"), before=AWAY),

    other("describe", DESCRIBE, {"group_ids": ["{group}"]}, before=(*JOINED, Sleep(100))),
    other("describe: two members", DESCRIBE, {"group_ids": ["{group}"]},
          before=(*TWO, ask(beat()), Sleep(100))),
    other("describe: a static one away", DESCRIBE, {"group_ids": ["{group}"]},
          before=(*AWAY, Sleep(100))),
    other("describe: mixed", DESCRIBE, {"group_ids": ["{group}"]},
          before=(*CLASSIC, *JOINED, Sleep(100)), mask=BY_HASH),
    other("describe: unknown", DESCRIBE, {"group_ids": ["{group}"]}),
    other("describe: classic", DESCRIBE, {"group_ids": ["{group}"]}, before=CLASSIC),
    other("describe: empty id", DESCRIBE, {"group_ids": [""]}),
    other("describe: twice", DESCRIBE, {"group_ids": ["{group}", "{group}"]},
          before=(*JOINED, Sleep(100))),
    other("describe: operations", DESCRIBE,
          {"group_ids": ["{group}"], "include_authorized_operations": True},
          before=(*JOINED, Sleep(100))),
    other("describe: wrong broker", DESCRIBE, {"group_ids": ["{group}"]}, to=NOT_COORDINATOR),
    other("describe groups", ApiKey.DESCRIBE_GROUPS, {"groups": ["{group}"]}, before=JOINED),

    other("commit", ApiKey.OFFSET_COMMIT, commit(3, generation=2, member="a"), "2,8-",
          before=JOINED),
    other("commit: epoch too old", ApiKey.OFFSET_COMMIT, commit(3, generation=1, member="a"),
          "9-", before=JOINED),
    other("commit: epoch too new", ApiKey.OFFSET_COMMIT, commit(3, generation=3, member="a"),
          "9-", before=JOINED),
    other("commit: not its partition", ApiKey.OFFSET_COMMIT, commit(3, generation=2, member="b"),
          "9-", before=(*TWO, ask(beat()))),
    other("commit: the epoch since it has the partition", ApiKey.OFFSET_COMMIT,
          commit(3, generation=2, member="a"), "9-",
          before=(*TWO, ask(beat()), ask(beat(owned=[0, 1])))),
    other("commit: unknown member", ApiKey.OFFSET_COMMIT, commit(3, generation=2, member="b"),
          "9-", before=JOINED),
    other("commit: no member", ApiKey.OFFSET_COMMIT, commit(3, generation=-1, member=""), "8-",
          before=JOINED),
    other("commit: no member, empty group", ApiKey.OFFSET_COMMIT,
          commit(3, generation=-1, member=""), "8-", before=(*JOINED, ask(beat(epoch=-1)))),
    other("fetch offsets", ApiKey.OFFSET_FETCH, fetched("a", 2), "9-", before=JOINED),
    other("fetch offsets: epoch too old", ApiKey.OFFSET_FETCH, fetched("a", 1), "9-",
          before=JOINED),
    other("fetch offsets: unknown member", ApiKey.OFFSET_FETCH, fetched("b", 2), "9-",
          before=JOINED),
    other("fetch offsets: no member", ApiKey.OFFSET_FETCH, fetched(None, -1), "8-",
          before=JOINED),
    other("delete offsets: subscribed", ApiKey.OFFSET_DELETE,
          {"group_id": "{group}", "topics": [{"name": "{topic}",
           "partitions": [{"partition_index": 0}]}]}, before=JOINED),
    other("delete: with members", DELETE, {"groups_names": ["{group}"]}, before=JOINED),
    other("delete: empty", DELETE, {"groups_names": ["{group}"]},
          before=(*JOINED, ask(beat(epoch=-1)))),
    other("list: consumer groups", LIST, {"types_filter": ["Consumer"]}, "5+", before=JOINED,
          mask={"groups": "others' groups are among them"}),

    other("classic: heartbeat of a consumer member", CLASSIC_BEAT,
          {"group_id": "{group}", "generation_id": 2, "member_id": "a"}, before=JOINED),
    other("classic: sync of a consumer member", SYNC, sync(member="a", generation=2),
          before=JOINED),
    other("classic: leave by a consumer member", LEAVE, {"group_id": "{group}", "member_id": "a",
          "members": [{"member_id": "a"}]}, before=JOINED),
    other("classic: join", JOIN, join(metadata="{subscription}"), "0,4,9", before=(*JOINED, PAUSE),
          mask=NEW_ID),
    other("classic: join, static", JOIN, join(metadata="{subscription}", instance="i1"), "5,9",
          before=(*JOINED, PAUSE), mask=NEW_ID),
    other("classic: join of another type", JOIN, join(protocol_type="connect"), "0,9",
          before=JOINED),
    other("classic: join with the id of nobody", JOIN,
          join(metadata="{subscription}", member="me"), "0,9", before=(*JOINED, PAUSE)),
    other("classic: join an empty consumer group", JOIN, join(metadata="{subscription}"), "0",
          before=(*JOINED, ask(beat(epoch=-1))), mask={**NEW_ID, "leader": "a new id"}),
)  # fmt: skip
