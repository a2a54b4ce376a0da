"""Streams groups: what a heartbeat may say, topologies that cannot run, and describing them.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import (
    assigned_group,
    beats_streams,
    commit,
    group_configured,
    join,
    joins_streams,
    streams_topology,
    subtopology,
)
from kcluster.conform.case import COORDINATOR, NOT_COORDINATOR, Ask, Case, CaseBody, Step, passed_on
from kcluster.conform.transactions import ADD_GROUP_HERE, INIT, offsets
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

BEAT, DESCRIBE = ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE

UPDATE = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
AWAY = (Ask(BEAT, beats_streams(-2, instance_id="i1"), to=COORDINATOR),)
TAGGED = group_configured(streams_rack_aware_assignment_tags="zone,row")
JOINED = (Ask(BEAT, joins_streams(), to=COORDINATOR),)
LOG: JsonObject = {"name": "{group}-log", "topic_configs": []}
WORDS: JsonObject = {"name": "{group}-words", "topic_configs": []}


def case(name: str, body: CaseBody, api: ApiKey = BEAT, **more: object) -> Case:
    return Case(name, api, body, **passed_on({"to": COORDINATOR, **more}))


def in_transaction(name: str, offset: JsonObject) -> Case:
    """TxnOffsetCommit into the group of anna, by what it says of the member."""
    before = (*JOINED, INIT, ADD_GROUP_HERE)
    body = offsets(**passed_on(offset))
    return case(
        f"offsets in a transaction: {name}",
        body,
        ApiKey.TXN_OFFSET_COMMIT,
        before=before,
        versions="2+",
    )


def fetched(name: str, **group: object) -> Case:
    """OffsetFetch of the group of anna, by what it says of the member."""
    body = {"groups": [{"group_id": "{group}", "topics": None, **group}]}
    return case(f"offset fetch: {name}", body, ApiKey.OFFSET_FETCH, before=JOINED, versions="9-10")


def static(name: str, body: JsonObject, before: tuple[Step, ...] = (), api: ApiKey = BEAT) -> Case:
    """About anna, who has joined as instance i1."""
    joined = Ask(BEAT, joins_streams(instance_id="i1"), to=COORDINATOR)
    return case(f"static: {name}", body, api, before=(joined, *before), versions="1")


def runs(name: str, *subtopologies: JsonObject) -> Case:
    """Join with this topology."""
    return case(f"topology: {name}", joins_streams(topology=streams_topology(*subtopologies)))


CASES = (
    case("join", joins_streams()),
    case("join: with all details", joins_streams(
        rack_id="r1", user_endpoint={"host": "h", "port": 80},
        client_tags=[{"key": "zone", "value": "a"}])),
    case("join: again", joins_streams(), before=JOINED),
    case("join: wrong broker", joins_streams(), to=NOT_COORDINATOR),
    case("join: empty group", joins_streams(group_id="")),
    case("join: blank group", joins_streams(group_id=" ")),
    case("join: empty member", joins_streams(member_id="")),
    case("join: empty rack", joins_streams(rack_id="")),
    case("join: no rebalance timeout", joins_streams(rebalance_timeout_ms=-1)),
    case("join: with tasks",
         joins_streams(active_tasks=[{"subtopology_id": "0", "partitions": [0]}])),
    case("join: without tasks", joins_streams(active_tasks=None)),
    case("join: without standbys", joins_streams(standby_tasks=None)),
    case("join: no topology", joins_streams(topology=None)),
    case("join: static", joins_streams(instance_id="i1")),
    case("join: empty instance", joins_streams(instance_id="")),
    case("join: warmup tasks",
         joins_streams(warmup_tasks=[{"subtopology_id": "0", "partitions": [0]}])),
    case("join: task offsets", joins_streams(task_offsets=[])),
    case("join: task end offsets", joins_streams(task_end_offsets=[])),
    case("join: asks to shut down", joins_streams(shutdown_application=True)),
    case("join: another topology", joins_streams(
        topology=streams_topology(subtopology("0", ["{fresh}"])), member_id="bert"),
        before=JOINED),
    case("join: a topology to come", joins_streams(
        topology=streams_topology(subtopology("0", ["{topic}"]), epoch=1), member_id="bert"),
        before=JOINED),
    case("join: endpoint without source topics", joins_streams(
        topology=streams_topology(subtopology("0", ["{missing}"])),
        user_endpoint={"host": "h", "port": 80})),

    runs("none"),
    runs("source topic is missing", subtopology("0", ["{topic}", "{missing}"])),
    runs("internal topic is missing", subtopology("0", ["{topic}"], changelogs=[LOG])),
    runs("no source", subtopology("0", [])),
    runs("one id twice", subtopology("0", ["{topic}"]), subtopology("0", ["{topic}"])),
    runs("a changelog twice", subtopology("0", ["{topic}"], changelogs=[LOG, LOG])),
    runs("changelog with partitions",
         subtopology("0", ["{topic}"], changelogs=[{**LOG, "partitions": 3}])),
    runs("Kafka's own topic", subtopology("0", ["__consumer_offsets", "__share_group_state"])),
    runs("bad names", subtopology("0", ["a b", "", "{topic}", "..", "x" * 250])),
    runs("bad sink", subtopology("0", ["{topic}"], sinks=["a/b"])),
    runs("regular expression", subtopology("0", [], source_topic_regex=["a.*"])),
    runs("not copartitioned", subtopology("0", ["{topic}", "{fresh}"], together=([0, 1], []))),
    runs("copartitioned out of range", subtopology("0", ["{topic}"], together=([7], []))),
    runs("repartition topic too narrow", subtopology("0", ["{topic}"], sinks=["{group}-words"],
         repartition=[{**WORDS, "partitions": 2}], together=([0], [0]))),
    runs("negative partitions", subtopology("0", ["{topic}"], sinks=["{group}-words"],
         repartition=[{**WORDS, "partitions": -1}])),
    runs("nobody writes it", subtopology("0", ["{topic}"], repartition=[WORDS])),
    runs("loop", subtopology("0", [], sinks=["{group}-words"], repartition=[WORDS])),
    case("topology: negative epoch",
         joins_streams(topology=streams_topology(subtopology("0", ["{topic}"]), epoch=-1))),

    case("heartbeat", beats_streams(1), before=JOINED),
    case("heartbeat: with tasks", beats_streams(1, active_tasks=[], standby_tasks=[],
         warmup_tasks=[]), before=JOINED),
    case("heartbeat: active tasks alone", beats_streams(1, active_tasks=[]), before=JOINED),
    case("heartbeat: unknown subtopology", beats_streams(1, standby_tasks=[], warmup_tasks=[],
         active_tasks=[{"subtopology_id": "7", "partitions": [0]}]), before=JOINED),
    case("heartbeat: unknown task", beats_streams(1, standby_tasks=[], warmup_tasks=[],
         active_tasks=[{"subtopology_id": "0", "partitions": [0, 3]}]), before=JOINED),
    case("heartbeat: with a topology",
         beats_streams(1, topology=streams_topology(subtopology("0", ["{topic}"]))),
         before=JOINED),
    case("heartbeat: epoch to come", beats_streams(9), before=JOINED),
    case("heartbeat: epoch -3", beats_streams(-3), before=JOINED),
    case("heartbeat: unknown group", beats_streams(1)),
    case("heartbeat: unknown member", beats_streams(1, member_id="bert"), before=JOINED),
    case("heartbeat: wrong broker", beats_streams(1), to=NOT_COORDINATOR),
    case("heartbeat: asks to shut down", beats_streams(1, shutdown_application=True),
         before=JOINED),
    case("heartbeat: a new endpoint", beats_streams(1, user_endpoint={"host": "h", "port": 80}),
         before=JOINED),

    case("leave", beats_streams(-1), before=JOINED),
    case("leave: unknown group", beats_streams(-1)),
    case("leave: unknown member", beats_streams(-1, member_id="bert"), before=JOINED),
    case("leave: as a static member", beats_streams(-2), before=JOINED),

    case("describe", {"group_ids": ["{group}"]}, DESCRIBE, before=JOINED),
    case("describe: operations", {"group_ids": ["{group}"], "include_authorized_operations": True},
         DESCRIBE, before=JOINED),
    case("describe: not ready", {"group_ids": ["{group}"]}, DESCRIBE, before=(
        Ask(BEAT, joins_streams(topology=streams_topology(subtopology("0", ["{missing}"], sinks=[
            "{group}-words"]), subtopology("1", [], repartition=[WORDS]))), to=COORDINATOR),)),
    case("describe: unknown", {"group_ids": ["{group}"]}, DESCRIBE),
    case("describe: empty name", {"group_ids": [""]}, DESCRIBE),
    case("describe: nothing", {"group_ids": []}, DESCRIBE),
    case("describe: wrong broker", {"group_ids": ["{group}"]}, DESCRIBE, to=NOT_COORDINATOR),

    in_transaction("without a member", {"generation": -1, "member_id": ""}),
    in_transaction("member", {"generation": 1, "member_id": "anna"}),
    in_transaction("old epoch", {"generation": 0, "member_id": "anna"}),
    in_transaction("epoch to come", {"generation": 2, "member_id": "anna"}),
    in_transaction("no epoch", {"generation": -1, "member_id": "anna"}),
    in_transaction("unknown member", {"generation": 1, "member_id": "bert"}),
    in_transaction("instance", {"generation": -1, "member_id": "", "group_instance_id": "i"}),
    fetched("nobody's"),
    fetched("member", member_id="anna", member_epoch=1),
    fetched("old epoch", member_id="anna", member_epoch=0),
    fetched("unknown member", member_id="bert", member_epoch=1),
    fetched("no member", member_id=None, member_epoch=1),
    case("offset delete: topic of the application", {"group_id": "{group}", "topics": [
        {"name": "{topic}", "partitions": [{"partition_index": 0}]}]}, ApiKey.OFFSET_DELETE,
        before=JOINED),
    case("offset delete: another topic", {"group_id": "{group}", "topics": [
        {"name": "{fresh}", "partitions": [{"partition_index": 0}]}]}, ApiKey.OFFSET_DELETE,
        before=JOINED),
    case("offset commit: admin, group with members", {**commit()}, ApiKey.OFFSET_COMMIT,
         before=JOINED, versions="2-10"),
    case("offset commit: admin, empty group", {**commit()}, ApiKey.OFFSET_COMMIT, versions="2-10",
         before=(*JOINED, Ask(BEAT, beats_streams(-1), to=COORDINATOR))),
    case("join classic", {"group_id": "{group}", "session_timeout_ms": 10_000,
         "rebalance_timeout_ms": 10_000, "protocol_type": "consumer",
         "protocols": [{"name": "range", "metadata": b""}]}, ApiKey.JOIN_GROUP, before=JOINED,
         versions="9"),
    case("join classic: empty group", {"group_id": "{group}", "session_timeout_ms": 10_000,
         "rebalance_timeout_ms": 10_000, "protocol_type": "consumer",
         "protocols": [{"name": "range", "metadata": b""}]}, ApiKey.JOIN_GROUP,
         before=(*JOINED, Ask(BEAT, beats_streams(-1), to=COORDINATOR)), versions="3",
         mask={"member_id": "a new id", "leader": "as member_id", "members": "as member_id"}),
    case("join: a group with offsets only", joins_streams(), before=assigned_group()),
    case("join: a classic group with members", joins_streams(), before=(
        Ask(ApiKey.JOIN_GROUP, join(), to=COORDINATOR, version=3),)),
    static("join again", joins_streams(instance_id="i1")),
    static("join as another member", joins_streams(member_id="bert", instance_id="i1")),
    static("heartbeat", beats_streams(1, instance_id="i1")),
    static("heartbeat without the instance", beats_streams(1)),
    static("heartbeat of another member", beats_streams(1, member_id="bert", instance_id="i1")),
    static("heartbeat of an unknown instance", beats_streams(1, instance_id="i2")),
    static("leave for good", beats_streams(-1, instance_id="i1")),
    static("leave for a while", beats_streams(-2, instance_id="i1")),
    static("leave of another member", beats_streams(-2, member_id="bert", instance_id="i1")),
    static("leave of an unknown instance", beats_streams(-2, instance_id="i2")),
    static("another rack", beats_streams(1, instance_id="i1", rack_id="r9")),
    static("another endpoint",
           beats_streams(1, instance_id="i1", user_endpoint={"host": "h", "port": 80})),
    static("heartbeat while away", beats_streams(1, instance_id="i1"), AWAY),
    static("come back", joins_streams(member_id="anna-2", instance_id="i1"), AWAY),
    static("come back with an endpoint", joins_streams(
        member_id="anna-2", instance_id="i1", user_endpoint={"host": "h", "port": 80}), AWAY),
    static("come back without the instance", joins_streams(), AWAY),
    static("describe one that is away", {"group_ids": ["{group}"]}, AWAY, DESCRIBE),
    case("heartbeat: task offsets", beats_streams(1, task_offsets=[
        {"subtopology_id": "0", "partition": 0, "offset": 5}], task_end_offsets=[
        {"subtopology_id": "0", "partition": 0, "offset": 9}]), before=JOINED, versions="1"),
    case("heartbeat: a task offset twice", beats_streams(1, task_offsets=2 * [
        {"subtopology_id": "0", "partition": 0, "offset": 5}]), before=JOINED, versions="1"),
    case("heartbeat: an end offset twice", beats_streams(1, task_end_offsets=2 * [
        {"subtopology_id": "0", "partition": 0, "offset": 5}]), before=JOINED, versions="1"),
    case("heartbeat: offset of an unknown task", beats_streams(1, task_offsets=[
        {"subtopology_id": "7", "partition": -1, "offset": -5}]), before=JOINED, versions="1"),
    case("join: missing tags", joins_streams(client_tags=[{"key": "zone", "value": "a"}]),
         before=TAGGED, versions="1"),
    case("join: all tags", joins_streams(client_tags=[
        {"key": "zone", "value": "a"}, {"key": "row", "value": "1"}]), before=TAGGED,
        versions="1"),
    case("describe: with the topology", {
        "group_ids": ["{group}"], "include_topology_description": True,
    }, DESCRIBE, before=JOINED, versions="1"),
    case("update: no plugin", {"group_id": "{group}", "member_id": "anna"}, UPDATE, before=JOINED),
    case("update: no group", {"group_id": "", "member_id": ""}, UPDATE),
    case("update: wrong broker", {"group_id": "{group}", "member_id": "anna"}, UPDATE,
         to=NOT_COORDINATOR),
    case("delete: with members", {"groups_names": ["{group}"]}, ApiKey.DELETE_GROUPS,
         before=JOINED, versions="2"),
    case("delete: empty", {"groups_names": ["{group}"]}, ApiKey.DELETE_GROUPS, versions="2",
         before=(*JOINED, Ask(BEAT, beats_streams(-1), to=COORDINATOR))),
)  # fmt: skip
