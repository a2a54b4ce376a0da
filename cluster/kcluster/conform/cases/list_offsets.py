"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: offsets of a log.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import produce
from kcluster.conform.case import Ask, Case
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

LIST, EPOCHS, DELETE = (
    ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DELETE_RECORDS,
)  # fmt: skip


def listed(
    timestamp: object, topic: str = "{topic}", replica_id: int = -1, **more: object
) -> JsonObject:
    partition = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1, **more}
    return {"replica_id": replica_id, "topics": [{"name": topic, "partitions": [partition]}]}


def epoch(
    leader_epoch: int, topic: str = "{topic}", replica_id: int = -2, **more: object
) -> JsonObject:
    partition = {"partition": 0, "leader_epoch": leader_epoch, **more}
    return {"replica_id": replica_id, "topics": [{"topic": topic, "partitions": [partition]}]}


def deleted(
    offset: int, topic: str = "{fresh}", index: int = 0, timeout_ms: int = 5_000
) -> JsonObject:
    partitions = [{"partition_index": index, "offset": offset}]
    return {"timeout_ms": timeout_ms, "topics": [{"name": topic, "partitions": partitions}]}


FIVE = (Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}", count=5)),)
INTERNAL = "__consumer_offsets"

CASES = (
    Case("latest", LIST, listed(-1)),
    Case("earliest", LIST, listed(-2)),
    Case("largest timestamp", LIST, listed(-3)),
    Case("earliest local", LIST, listed(-4)),
    Case("latest tiered", LIST, listed(-5)),
    Case("earliest pending upload", LIST, listed(-6)),
    Case("no such special timestamp", LIST, listed(-7)),
    Case("time 0", LIST, listed(0)),
    Case("a time between records", LIST, listed("{now+3}")),
    Case("a time after all records", LIST, listed("{now+100000}")),
    Case("latest of an empty log", LIST, listed(-1, "{fresh}")),
    Case("largest timestamp of an empty log", LIST, listed(-3, "{fresh}")),
    Case("time 0 of an empty log", LIST, listed(0, "{fresh}")),
    Case("unknown topic", LIST, listed(-1, "{missing}")),
    Case("unknown partition", LIST, listed(-1, partition_index=9)),
    Case("negative partition", LIST, listed(-1, partition_index=-1)),
    Case("invalid topic name", LIST, listed(-1, "a b")),
    Case("empty topic name", LIST, listed(-1, "")),
    Case("wrong leader", LIST, listed(-1), to=2),
    Case("leader epoch as it is", LIST, listed(-1, current_leader_epoch=0)),
    Case("future leader epoch", LIST, listed(-1, current_leader_epoch=9)),
    Case("future leader epoch, wrong leader", LIST, listed(-1, current_leader_epoch=9), to=2),
    Case("negative leader epoch", LIST, listed(-1, current_leader_epoch=-2)),
    Case("read committed", LIST, {**listed(-1), "isolation_level": 1}),
    Case("no such isolation level", LIST, {**listed(-1), "isolation_level": 9}),
    Case("as a debugging replica", LIST, listed(-1, replica_id=-2), to=2),
    Case("as a follower", LIST, listed(-1, replica_id=2)),
    Case("as a broker that has no replica", LIST, listed(-1, replica_id=9)),
    Case("nothing", LIST, {"replica_id": -1, "topics": []}),
    Case("no partitions", LIST, {"topics": [{"name": "{topic}", "partitions": []}]}),
    Case(
        "partition twice", LIST,
        {"replica_id": -1, "topics": [{"name": "{topic}", "partitions": [
            {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1},
            {"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1},
        ]}]},
    ),
    Case("negative timeout", LIST, {**listed(-1), "timeout_ms": -1}),

    Case("epoch 0", EPOCHS, epoch(0)),
    Case("epoch -1", EPOCHS, epoch(-1)),
    Case("epoch to come", EPOCHS, epoch(5)),
    Case("epoch as a follower", EPOCHS, epoch(0, replica_id=2)),
    Case("epoch of an unknown topic", EPOCHS, epoch(0, "{missing}")),
    Case("epoch of an unknown partition", EPOCHS, epoch(0, partition=9)),
    Case("epoch of the wrong leader", EPOCHS, epoch(0), to=2),
    Case("epoch with a future leader epoch", EPOCHS, epoch(0, current_leader_epoch=7)),
    Case("epoch with the current one", EPOCHS, epoch(0, current_leader_epoch=0)),
    Case("epochs of nothing", EPOCHS, {"topics": []}),

    Case("delete before 2", DELETE, deleted(2), before=FIVE),
    Case("delete before 0", DELETE, deleted(0), before=FIVE),
    Case("delete all", DELETE, deleted(-1), before=FIVE),
    Case("delete before -5", DELETE, deleted(-5), before=FIVE),
    Case("delete beyond the end", DELETE, deleted(6), before=FIVE),
    Case("delete of an unknown topic", DELETE, deleted(0, "{missing}")),
    Case("delete of an unknown partition", DELETE, deleted(0, index=9)),
    Case("delete at the wrong leader", DELETE, deleted(0, index=1)),
    Case("delete of an internal topic", DELETE, deleted(0, INTERNAL), to="coordinator"),
    Case("delete with timeout 0", DELETE, deleted(2, timeout_ms=0), before=FIVE),
    Case("delete with timeout -1", DELETE, deleted(2, timeout_ms=-1), before=FIVE),
    Case("delete nothing", DELETE, {"topics": [], "timeout_ms": 100}),
)  # fmt: skip
