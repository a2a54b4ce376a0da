"""DescribeLogDirs, AlterReplicaLogDirs: the directories of logs.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import produce
from kcluster.conform.case import Ask, Case
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

DESCRIBE, ALTER = ApiKey.DESCRIBE_LOG_DIRS, ApiKey.ALTER_REPLICA_LOG_DIRS

PLACE = {
    "log_dir": "each broker has its own",
    "total_bytes": "the volume's size",
    "usable_bytes": "the volume's size",
}


def described(*topics: tuple[str, list[int]]) -> JsonObject:
    return {"topics": [{"topic": name, "partitions": partitions} for name, partitions in topics]}


def moved(path: str, *topics: tuple[str, list[int]]) -> JsonObject:
    named = [{"name": name, "partitions": partitions} for name, partitions in topics]
    return {"dirs": [{"path": path, "topics": named}]}


FIVE = (Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}", count=5)),)
DIR = (Ask(DESCRIBE, described(), save={"dir": "results[0].log_dir"}),)
ALL = [0, 1, 9, -1]

CASES = (
    Case("describe an empty log", DESCRIBE, described(("{fresh}", [0])), mask=PLACE),
    Case("describe a log", DESCRIBE, described(("{fresh}", [0])), before=FIVE, mask=PLACE),
    Case("describe a follower's log", DESCRIBE, described(("{topic}", [1])), mask=PLACE),
    Case(
        "describe what is not there", DESCRIBE,
        described(("{missing}", [0]), ("{fresh}", [9, -1]), ("", [0])), mask=PLACE,
    ),
    Case("describe nothing", DESCRIBE, described(), mask=PLACE),
    Case("describe no partitions", DESCRIBE, described(("{fresh}", [])), mask=PLACE),
    Case(
        "describe twice", DESCRIBE, described(("{topic}", [1, 0, 0]), ("{topic}", [1])), mask=PLACE
    ),
    Case("move to an unknown directory", ALTER, moved("/nowhere", ("{fresh}", ALL))),
    Case("move what is unknown to an unknown one", ALTER, moved("/nowhere", ("{missing}", [0]))),
    Case("move to a relative path", ALTER, moved("logs", ("{fresh}", [0]))),
    Case("move to an empty path", ALTER, moved("", ("{fresh}", [0]))),
    Case("move to where it is", ALTER, moved("{dir}", ("{fresh}", ALL)), before=DIR),
    Case("move a slash further", ALTER, moved("{dir}/", ("{fresh}", [0])), before=DIR),
    Case("move an unknown topic", ALTER, moved("{dir}", ("{missing}", [0])), before=DIR),
    Case("move nothing", ALTER, {"dirs": []}),
    Case("move no topics", ALTER, moved("{dir}"), before=DIR),
    Case("move no partitions", ALTER, moved("{dir}", ("{fresh}", [])), before=DIR),
    Case("move twice", ALTER, moved("/nowhere", ("{fresh}", [0, 0]))),
    Case(
        "move to two directories", ALTER,
        {"dirs": [*moved("/nowhere", ("{fresh}", [0, 1]))["dirs"],
                  *moved("{dir}", ("{fresh}", [0]))["dirs"]]},
        before=DIR,
    ),
    Case(
        "two topics", ALTER, moved("{dir}", ("{missing}", [0]), ("{fresh}", [0])), before=DIR,
    ),
)  # fmt: skip
