"""Fetch: readable offsets, size limits, errors of sessions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, fetch, produce
from kcluster.conform.case import Ask, Case, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

API = ApiKey.FETCH
SOME = "4,7,12-13,18"


def of_two(*wanted: JsonObject, **more: object) -> JsonObject:
    """One topic, several partitions."""
    partitions = [{"partition_max_bytes": 1 << 20, **one} for one in wanted]
    topics = [{"topic": "{topic}", "topic_id": "{topic_id}", "partitions": partitions}]
    return {"max_wait_ms": 0, "min_bytes": 1, "topics": topics, **more}


def as_replica(replica_id: int, offset: int = 0, **more: object) -> JsonObject:
    request = {
        "replica_id": replica_id,
        "replica_state": {"replica_id": replica_id, "replica_epoch": -1},
    }
    return fetch(offset, request=request, **passed_on(more))


def session(id_: object, epoch: int, **more: object) -> JsonObject:
    return fetch(request={"session_id": id_, "session_epoch": epoch}, **passed_on(more))


def opened(**more: object) -> tuple[Ask, ...]:
    return (Ask(API, session(0, 0, **more), on="case", save={"session": "session_id"}),)


NOTHING: JsonObject = {"max_wait_ms": 0, "min_bytes": 1, "topics": []}
DELETE = ApiKey.DELETE_RECORDS
TWO_OF_THREE = (
    Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}", batch(3))),
    Ask(DELETE, {"timeout_ms": 5_000, "topics": [
        {"name": "{fresh}", "partitions": [{"partition_index": 0, "offset": 2}]}]}),
)  # fmt: skip

CASES = (
    Case("from the start", API, fetch()),
    Case("from the middle", API, fetch(7)),
    Case("at the end", API, fetch(10)),
    Case("beyond the end", API, fetch(11)),
    Case("offset -1", API, fetch(-1)),
    Case("before the log start", API, fetch(1, "{fresh}", "{fresh_id}"), SOME,
         before=TWO_OF_THREE),
    Case("an empty log", API, fetch(0, "{fresh}", "{fresh_id}"), SOME),
    Case("unknown topic", API, fetch(0, "{missing}", "{missing_id}")),
    Case("unknown partition", API, fetch(partition=9)),
    Case("negative partition", API, fetch(partition=-1), SOME),
    Case("invalid topic name", API, fetch(0, "a b"), "4-12"),
    Case("empty topic name", API, fetch(0, ""), "4-12"),
    Case("id zero", API, fetch(0, "", bytes(16)), "13+"),
    Case("wrong leader, no epoch", API, fetch(), to=2),
    Case("wrong leader, its epoch", API, fetch(current_leader_epoch=0), to=2),
    Case("future leader epoch", API, fetch(current_leader_epoch=9)),
    Case("future leader epoch at a follower", API, fetch(current_leader_epoch=9), to=2),
    Case("negative leader epoch", API, fetch(current_leader_epoch=-2)),
    Case("last fetched epoch as it is", API, fetch(5, last_fetched_epoch=0), "12+"),
    Case("last fetched epoch to come", API, fetch(5, last_fetched_epoch=9), "12+"),
    Case("last fetched epoch, beyond the end", API, fetch(11, last_fetched_epoch=0), "12+"),
    Case("last fetched epoch negative", API, fetch(5, last_fetched_epoch=-3), "12+"),
    Case("partition_max_bytes 1", API, fetch(partition_max_bytes=1)),
    Case("partition_max_bytes 0", API, fetch(partition_max_bytes=0), SOME),
    Case("partition_max_bytes -1", API, fetch(partition_max_bytes=-1), SOME),
    Case("max_bytes 1", API, fetch(request={"max_bytes": 1})),
    Case("max_bytes 0", API, fetch(request={"max_bytes": 0}), SOME),
    Case("max_bytes -1", API, fetch(request={"max_bytes": -1}), SOME),
    Case("min_bytes 0", API, fetch(10, request={"min_bytes": 0, "max_wait_ms": 500}), SOME),
    Case("min_bytes -1", API, fetch(10, request={"min_bytes": -1, "max_wait_ms": 500}), SOME),
    Case("min_bytes above what there is", API,
         fetch(request={"min_bytes": 1 << 20, "max_wait_ms": 50}), SOME),
    Case("max_wait -1", API, fetch(10, request={"max_wait_ms": -1}), SOME),
    Case("read committed", API, fetch(request={"isolation_level": 1})),
    Case("no such isolation level", API, fetch(request={"isolation_level": 9}), SOME),
    Case("log start offset given", API, fetch(log_start_offset=3), "5+"),
    Case("rack given", API, fetch(request={"rack_id": "r1"}), "11+"),
    Case("cluster id that is not ours", API, fetch(request={"cluster_id": "nobody"}), "12+"),
    Case("nothing", API, NOTHING),
    Case("nothing, waiting", API, {**NOTHING, "max_wait_ms": 50}, SOME),
    Case("no partitions", API, of_two(), SOME),
    Case("two partitions", API, of_two({"partition": 0}, {"partition": 1})),
    Case("a partition twice", API, of_two({"partition": 0, "fetch_offset": 3}, {"partition": 0})),
    Case("max_bytes over two partitions", API,
         of_two({"partition": 0}, {"partition": 0, "fetch_offset": 5}, max_bytes=1), SOME),
    Case("as a follower without an epoch", API, as_replica(2)),
    Case("as a follower", API, as_replica(2, current_leader_epoch=0), "9+"),
    Case("as a broker that is no replica", API, as_replica(9)),
    Case("as a broker that is no replica, with an epoch", API,
         as_replica(9, current_leader_epoch=0), "9+"),
    Case("as a follower beyond the end", API, as_replica(2, 99), SOME),
    Case("as replica -2", API, as_replica(-2), SOME),
    Case("as replica -3", API, as_replica(-3), SOME),

    Case("session: new", API, session(0, 0), "7+"),
    Case("session: new, with an id", API, session(77, 0), "7+"),
    Case("session: none", API, session(0, -1), "7+"),
    Case("session: id, but epoch -1", API, session(77, -1), "7+"),
    Case("session: unknown id", API, session(77, 5), "7+"),
    Case("session: no id, epoch 5", API, session(0, 5), "7+"),
    Case("session: epoch -2", API, session(0, -2), "7+"),
    Case("session: next, nothing new", API, {**NOTHING, "session_id": "{session}",
         "session_epoch": 1}, "13+", before=opened(offset=10)),
    Case("session: wrong epoch", API, {**NOTHING, "session_id": "{session}",
         "session_epoch": 2}, "13+", before=opened()),
    Case("session: closed by epoch -1", API, {**NOTHING, "session_id": "{session}",
         "session_epoch": -1}, "13+", before=opened()),
    Case("session: names for a session of ids", API, {**NOTHING, "session_id": "{session}",
         "session_epoch": 1}, "7-12", before=opened()),
    Case("session: nothing in a new one", API, {**NOTHING, "session_epoch": 0}, "7+"),
    Case("session: an unknown topic in it", API,
         session(0, 0, topic="{missing}", topic_id="{missing_id}"), "7+"),
    Case("session: forgets what it never had", API, {**NOTHING, "session_epoch": 0,
         "forgotten_topics_data": [{"topic": "{topic}", "topic_id": "{topic_id}",
                                    "partitions": [0, 9]}]}, "7+"),
)  # fmt: skip
