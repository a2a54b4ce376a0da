"""OffsetCommit, OffsetFetch, FindCoordinator, InitProducerId.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import assigned_group, commit, join, sync
from kcluster.conform.case import COORDINATOR, NOT_COORDINATOR, Ask, Case, CaseBody, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

COMMIT, FETCH = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
FIND, INIT = ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID
COMMITTED = assigned_group()
STABLE = (
    Ask(ApiKey.JOIN_GROUP, join(), to=COORDINATOR, version=9, may_fail=True,
        save={"member": "member_id"}),
    Ask(ApiKey.JOIN_GROUP, join(member="{member}"), to=COORDINATOR, version=9),
    Ask(ApiKey.SYNC_GROUP, sync(), to=COORDINATOR),
)  # fmt: skip


def case(name: str, api: ApiKey, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, api, body, versions, **passed_on({"to": COORDINATOR, **more}))


def fetched(
    *indexes: int,
    group: str = "{group}",
    topic: str = "{topic}",
    topic_id: object = "{topic_id}",
    all_topics: bool = False,
    **more: object,
) -> JsonObject:
    one = {"name": topic, "partition_indexes": list(indexes)}
    with_id = {**one, "topic_id": topic_id}
    in_group = {"group_id": group, "topics": None if all_topics else [with_id], **more}
    return {"group_id": group, "topics": None if all_topics else [one], "groups": [in_group]}


def groups(*names: str) -> JsonObject:
    topics = [{"name": "{topic}", "topic_id": "{topic_id}", "partition_indexes": [0]}]
    return {"groups": [{"group_id": name, "topics": topics} for name in names]}


def unknown_topic_first() -> JsonObject:
    """OffsetFetch of a topic that does not exist, then of one that does."""
    unknown, known = fetched(0, topic="{missing}", topic_id="{missing_id}"), fetched(0)
    group = known["groups"][0]
    by_id = [*unknown["groups"][0]["topics"], *group["topics"]]
    topics = [*unknown["topics"], *known["topics"]]
    return {**known, "topics": topics, "groups": [{**group, "topics": by_id}]}


def key(name: str, kind: int = 0) -> JsonObject:
    return {"key": name, "key_type": kind, "coordinator_keys": [name]}


def init(
    transactional_id: str | None = None, timeout_ms: int = 60_000, **more: object
) -> JsonObject:
    return {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms, **more}


FIND_EMPTY = Ask(FIND, {"coordinator_keys": [""]}, save={"nobodys": "coordinators[0].node_id"})
TWO = {**commit(), "topics": [*commit()["topics"], *commit(partition=1)["topics"]]}
RANDOM = dict.fromkeys(("node_id", "port"), "coordinators are placed at random")

CASES = (
    case("commit", COMMIT, commit()),
    case("commit: with metadata", COMMIT, commit(committed_metadata="note")),
    case("commit: null metadata", COMMIT, commit(committed_metadata=None)),
    case("commit: metadata too long", COMMIT, commit(committed_metadata="x" * 5000)),
    case("commit: offset -1", COMMIT, commit(-1)),
    case("commit: offset -5", COMMIT, commit(-5)),
    case("commit: kept for ever", COMMIT, {**commit(), "retention_time_ms": 2**63 - 1}, "2-4"),
    case("commit: kept since ever", COMMIT, {**commit(), "retention_time_ms": -(2**63)}, "2-4"),
    case("commit: offset 2^63-1", COMMIT, commit(2**63 - 1)),
    case("commit: leader epoch", COMMIT, commit(committed_leader_epoch=3), "6+"),
    case("commit: unknown topic", COMMIT, commit(topic="{missing}", topic_id="{missing_id}")),
    case("commit: empty topic name", COMMIT, commit(topic="", topic_id=bytes(16))),
    case("commit: unknown partition", COMMIT, commit(partition=9)),
    case("commit: partition -1", COMMIT, commit(partition=-1)),
    case("commit: wrong broker", COMMIT, commit(), to=NOT_COORDINATOR),
    case("commit: empty group", COMMIT, commit(group=""), before=(FIND_EMPTY,), to="{nobodys}"),
    case("commit: member unknown", COMMIT, commit(generation=1, member="me")),
    case("commit: generation 0 of a new group", COMMIT, commit(generation=0)),
    case("commit: nothing", COMMIT, {"group_id": "{group}", "topics": []}),
    case("commit: no partitions", COMMIT, {"group_id": "{group}", "topics": [
        {"name": "{topic}", "topic_id": "{topic_id}", "partitions": []}]}),
    case("commit: topic named twice", COMMIT, TWO),
    case("commit: as a member", COMMIT, commit(generation=1, member="{member}"), before=STABLE),
    case("commit: wrong generation", COMMIT, commit(generation=7, member="{member}"),
         before=STABLE),
    case("commit: stranger to a group with members", COMMIT, commit(), before=STABLE),
    case("commit: unknown member of a group with members", COMMIT,
         commit(generation=1, member="me"), before=STABLE),
    case("commit: unknown instance", COMMIT, {**commit(generation=1, member="{member}"),
         "group_instance_id": "i9"}, "7+", before=STABLE),
    case("commit: again, lower", COMMIT, commit(2), before=COMMITTED),

    case("fetch", FETCH, fetched(0), before=COMMITTED),
    case("fetch: what was not committed", FETCH, fetched(0, 1), before=COMMITTED),
    case("fetch: all", FETCH, fetched(all_topics=True), "2+", before=COMMITTED),
    case("fetch: null topics, too early", FETCH, {"group_id": "{group}", "topics": []}, "1-7",
         before=COMMITTED),
    case("fetch: unknown group", FETCH, fetched(0)),
    case("fetch: all of an unknown group", FETCH, fetched(all_topics=True), "2+"),
    case("fetch: unknown topic", FETCH, fetched(0, topic="{missing}", topic_id="{missing_id}"),
         before=COMMITTED),
    case("fetch: an unknown topic before a known one", FETCH, unknown_topic_first(),
         before=COMMITTED),
    case("fetch: unknown partition", FETCH, fetched(9, -1), before=COMMITTED),
    case("fetch: partition twice", FETCH, fetched(0, 0), before=COMMITTED),
    case("fetch: no partitions", FETCH, fetched(), before=COMMITTED),
    case("fetch: empty group", FETCH, fetched(0, group=""), to="{nobodys}",
         before=(FIND_EMPTY, Ask(COMMIT, commit(group=""), version=9, to="{nobodys}"))),
    case("fetch: wrong broker", FETCH, fetched(0), to=NOT_COORDINATOR),
    case("fetch: stable", FETCH, {**fetched(0), "require_stable": True}, "7+", before=COMMITTED),
    case("fetch: as a member of no group", FETCH, fetched(0, member_id="me", member_epoch=3), "9+",
         before=COMMITTED),
    case("fetch: as a member of a classic group", FETCH,
         fetched(0, member_id="{member}", member_epoch=1), "9+", before=STABLE),
    case("fetch: group twice", FETCH, groups("{group}", "{group}"), "8+", before=COMMITTED),
    case("fetch: no groups", FETCH, {"groups": []}, "8+"),

    Case("find: group", FIND, key("{group}"), mask=RANDOM),
    Case("find: empty group", FIND, key(""), mask=RANDOM),
    Case("find: unknown kind", FIND, key("a", 9), "1+"),
    Case("find: kind -1", FIND, key("a", -1), "1+"),
    Case("find: share key", FIND, key("a:b:0", 2), "1-5"),
    Case("find: malformed share key", FIND, key("a", 2), "6"),
    Case("find: two", FIND, {"coordinator_keys": ["{group}", "{group2}"]}, "4+", mask=RANDOM),
    Case("find: twice", FIND, {"coordinator_keys": ["{group}", "{group}"]}, "4+", mask=RANDOM),
    Case("find: none", FIND, {"coordinator_keys": []}, "4+"),

    Case("init", INIT, init(), before=(Ask(INIT, init(), retry=("COORDINATOR_LOAD",)),)),
    Case("init: timeout 0", INIT, init(timeout_ms=0)),
    Case("init: timeout -1", INIT, init(timeout_ms=-1)),
    Case("init: empty id", INIT, init("")),
    Case("init: transactional, timeout 0", INIT, init("{user}", 0)),
    Case("init: transactional, timeout too long", INIT, init("{user}", 10**9)),
    Case("init: id without epoch", INIT, init(producer_id=5), "3+"),
    Case("init: epoch without id", INIT, init(producer_epoch=5), "3+"),
    Case("init: id and epoch", INIT, init(producer_id=5, producer_epoch=3), "3+"),
    Case("init: id -2", INIT, init(producer_id=-2, producer_epoch=3), "3+"),
)  # fmt: skip
