"""AlterPartitionReassignments, ListPartitionReassignments: errors, reassignments that end at once,
and the state after one.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Ask, Case, Sleep, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

ALTER, LIST = ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS

CREATE = Ask(
    ApiKey.CREATE_TOPICS,
    {
        "timeout_ms": 10_000,
        "topics": [
            {
                "name": "{new}",
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [
                    {"partition_index": 0, "broker_ids": [1, 2]},
                    {"partition_index": 1, "broker_ids": [2, 3]},
                ],
                "configs": [{"name": "min.insync.replicas", "value": "2"}],
            }
        ],
    },
)
STATE_AFTER = (
    Sleep(1_000),
    Ask(ApiKey.METADATA, {"topics": [{"name": "{new}"}]}),
    Ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, {
        "topics": [{"name": "{new}"}], "response_partition_limit": 10,
    }),
    Ask(LIST, {"topics": [{"name": "{new}", "partition_indexes": [0, 1, 2]}]}),
)  # fmt: skip


def moved(
    *wanted: tuple[int, list[int] | None], topic: str = "{new}", **more: object
) -> JsonObject:
    return {
        "timeout_ms": 10_000,
        **more,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index, "replicas": replicas} for index, replicas in wanted
                ],
            }
        ],
    }


def refused(name: str, *wanted: tuple[int, list[int] | None], **more: object) -> Case:
    return Case(name, ALTER, moved(*wanted, **passed_on(more)), before=(CREATE, Sleep(300)))


def held(name: str, *wanted: tuple[int, list[int] | None]) -> Case:
    body = moved(*wanted, allow_replication_factor_change=False)
    return Case(name, ALTER, body, versions="1+", before=(CREATE, Sleep(300)), after=STATE_AFTER)


def done(name: str, *wanted: tuple[int, list[int] | None]) -> Case:
    return Case(name, ALTER, moved(*wanted), before=(CREATE, Sleep(300)), after=STATE_AFTER)


CASES = (
    Case("no topics", ALTER, {"topics": []}),
    Case("no topics and no time", ALTER, {"topics": [], "timeout_ms": 0}),
    Case("no partitions", ALTER, moved(topic="{topic}")),
    Case("unknown topic", ALTER, moved((0, [1]), (1, None), topic="{missing}")),
    Case("a topic without a name", ALTER, moved((0, [1]), topic="")),
    refused("unknown partitions", (7, [1]), (-1, [1]), (7, None)),
    refused("nothing to cancel", (0, None)),
    refused("no replicas", (0, [])),
    refused("a replica twice", (0, [1, 2, 1])),
    refused("an unknown broker", (0, [1, 99])),
    refused("broker -1", (0, [-1, 1])),
    refused("no time", (0, [1, 3]), timeout_ms=0),
    refused("less than no time", (0, [1, 3]), (1, None), timeout_ms=-1),
    held("the factor held, fewer", (0, [1])),
    held("the factor held, more", (0, [1, 2, 3]), (1, [3, 2])),
    done("as it is", (0, [1, 2])),
    done("reordered", (0, [2, 1])),
    done("fewer, the leader stays", (0, [1])),
    done("fewer, the leader goes", (0, [2])),
    done("more", (0, [3, 1, 2])),
    done("another follower", (0, [1, 3])),
    done("another leader", (0, [3, 2]), (1, [1])),
    done("one of three is refused", (0, [1, 3]), (5, [1]), (1, [3, 99])),

    Case("list, unknown topic", LIST, {
        "topics": [{"name": "{missing}", "partition_indexes": [0]}],
    }),
    Case("list, nothing moves", LIST, {
        "topics": [{"name": "{topic}", "partition_indexes": [0, 1, 9, -1]}],
    }),
    Case("list, no topics", LIST, {"topics": []}),
    Case("list, no time", LIST, {
        "topics": [{"name": "{topic}", "partition_indexes": [0]}], "timeout_ms": 0,
    }),
)  # fmt: skip
