"""CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import configured
from kcluster.conform.case import Ask, Case
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

CREATE, DELETE = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS
GROW, ELECT = ApiKey.CREATE_PARTITIONS, ApiKey.ELECT_LEADERS


def topic(
    name: str = "{new}", partitions: int = 2, replicas: int = 3, **more: object
) -> JsonObject:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def create(*topics: object, timeout_ms: int = 30_000, **more: object) -> JsonObject:
    return {"topics": list(topics or (topic(),)), "timeout_ms": timeout_ms, **more}


def assigned(*replicas: list[int], partitions: int = -1, replication: int = -1) -> JsonObject:
    assignments = [{"partition_index": at, "broker_ids": ids} for at, ids in enumerate(replicas)]
    return create(topic(partitions=partitions, replicas=replication, assignments=assignments))


def indexed(*indexes: int) -> JsonObject:
    assignments = [{"partition_index": at, "broker_ids": [1, 2]} for at in indexes]
    return create(topic(partitions=-1, replicas=-1, assignments=assignments))


def with_configs(*configs: tuple[str, str | None]) -> JsonObject:
    entries = [{"name": name, "value": value} for name, value in configs]
    return create(topic(configs=entries))


def delete(*names: str, timeout_ms: int = 30_000) -> JsonObject:
    return {
        "topics": [{"name": name} for name in names],
        "topic_names": list(names),
        "timeout_ms": timeout_ms,
    }


def delete_states(*states: JsonObject) -> JsonObject:
    return {"topics": list(states), "timeout_ms": 30_000}


def grow(
    count: int, placed: list[list[int]] | None = None, *, name: str = "{fresh}", **more: object
) -> JsonObject:
    assignments = None if placed is None else [{"broker_ids": ids} for ids in placed]
    one = {"name": name, "count": count, "assignments": assignments}
    return {"topics": [one], "timeout_ms": 30_000, **more}


def elect(kind: int, *partitions: int, name: str = "{fresh}", **more: object) -> JsonObject:
    wanted = [{"topic": name, "partitions": list(partitions)}]
    return {"election_type": kind, "topic_partitions": wanted, "timeout_ms": 10_000, **more}


MADE = (Ask(CREATE, create()),)
TWICE = {**grow(3), "topics": [*grow(3)["topics"], *grow(4)["topics"]]}

CASES = (
    Case("create", CREATE, create(), mask={"topic_id": "drawn"}),
    Case("create with the defaults", CREATE, create(topic(partitions=-1, replicas=-1)), "4+"),
    Case("create with the defaults, too early", CREATE,
         create(topic(partitions=-1, replicas=-1)), "2-3"),
    Case("create: only validate", CREATE, create(validate_only=True)),
    Case("create: exists", CREATE, create(topic("{topic}"))),
    Case("create: exists, only validate", CREATE, create(topic("{topic}"), validate_only=True)),
    Case("create: 0 partitions", CREATE, create(topic(partitions=0))),
    Case("create: -2 partitions", CREATE, create(topic(partitions=-2)), "2,7"),
    Case("create: 4 replicas", CREATE, create(topic(replicas=4))),
    Case("create: 0 replicas", CREATE, create(topic(replicas=0))),
    Case("create: -2 replicas", CREATE, create(topic(replicas=-2)), "2,7"),
    Case("create: twice in a request", CREATE, create(topic(), topic(partitions=3))),
    Case("create: nothing", CREATE, {"topics": [], "timeout_ms": 100}),
    *(Case(f"create: name {name[:12]!r}", CREATE, create(topic(name)), "2,7")
      for name in ("", ".", "..", "a b", "ä", "x" * 250, "a/b", "__cluster_metadata")),
    Case("create: names that collide", CREATE, create(topic("{new}_a"), topic("{new}.a")),
         "7"),
    Case("create: timeout 0", CREATE, create(timeout_ms=0)),
    Case("create: timeout -1", CREATE, create(timeout_ms=-1)),
    Case("create: one good, one bad", CREATE, create(topic(), topic("a b"))),
    Case("create: assigned", CREATE, assigned([1, 2], [2, 3])),
    Case("create: assigned, with a count", CREATE, assigned([1, 2], partitions=1), "2,7"),
    Case("create: assigned, with a factor", CREATE, assigned([1, 2], replication=2), "2,7"),
    Case("create: assigned to nobody", CREATE, assigned([]), "2,7"),
    Case("create: assigned twice", CREATE, assigned([1, 1]), "2,7"),
    Case("create: assigned to an unknown broker", CREATE, assigned([1, 9]), "2,7"),
    Case("create: assigned to broker -1", CREATE, assigned([-1]), "2,7"),
    Case("create: assigned unevenly", CREATE, assigned([1, 2], [3]), "2,7"),
    Case("create: assigned with a gap", CREATE, indexed(0, 2), "2,7"),
    Case("create: assigned from 1 on", CREATE, indexed(1), "2,7"),
    Case("create: assigned partition twice", CREATE, indexed(0, 0), "2,7"),
    Case("create: assigned partition -1", CREATE, indexed(-1), "2,7"),
    Case("create: configs", CREATE, with_configs(
        ("retention.ms", "1000"), ("cleanup.policy", "compact,delete"),
        ("min.insync.replicas", "2"),
    ), "2-5,7", mask={"configs": "compared as state"}),
    *(Case(f"create: config {name}={value}", CREATE, with_configs((name, value)), "2,7")
      for name, value in (
          ("nobody.knows", "1"), ("", "1"), ("retention.ms", "x"), ("retention.ms", None),
          ("retention.ms", ""), ("retention.ms", "-2"), ("retention.ms", "-1"),
          ("cleanup.policy", "shred"), ("cleanup.policy", ""), ("min.insync.replicas", "0"),
          ("compression.type", "rar"), ("segment.bytes", "13"), ("max.message.bytes", "-1"),
          ("unclean.leader.election.enable", "maybe"), ("message.timestamp.type", "now"),
          ("retention.ms", " 1000 "), ("flush.ms", "1e3"), ("min.cleanable.dirty.ratio", "2"),
          ("delete.retention.ms", "9223372036854775808"), ("remote.storage.enable", "true"),
          ("max.decompressed.message.bytes", "100000"), ("max.decompressed.message.bytes", "0"),
          ("errors.deadletterqueue.group.enable", "true"), ("remote.copy.lag.bytes", "-2"),
      )),
    Case("create: a config twice", CREATE,
         with_configs(("retention.ms", "1"), ("retention.ms", "2")), "2,7"),

    Case("delete", DELETE, delete("{new}"), before=MADE),
    Case("delete: unknown", DELETE, delete("{missing}")),
    Case("delete: twice in a request", DELETE, delete("{new}", "{new}"), before=MADE),
    Case("delete: unknown twice", DELETE, delete("{missing}", "{missing}")),
    Case("delete: nothing", DELETE, delete()),
    Case("delete: timeout 0", DELETE, delete("{new}", timeout_ms=0), before=MADE),
    Case("delete: unknown with timeout 0", DELETE, delete("{missing}", timeout_ms=0)),
    Case("delete: empty name", DELETE, delete("")),
    Case("delete: invalid name", DELETE, delete("a b")),
    Case("delete: one good, one unknown", DELETE, delete("{new}", "{missing}"), before=MADE),
    Case("delete: by id", DELETE, delete_states({"topic_id": "{fresh_id}"}), "6+"),
    Case("delete: by unknown id", DELETE, delete_states({"topic_id": "{missing_id}"}), "6+"),
    Case("delete: by id and name", DELETE,
         delete_states({"topic_id": "{fresh_id}", "name": "{fresh}"}), "6+"),
    Case("delete: by neither", DELETE, delete_states({}), "6+"),
    Case("delete: by id twice", DELETE,
         delete_states({"topic_id": "{fresh_id}"}, {"topic_id": "{fresh_id}"}), "6+"),
    Case("delete: by id, and twice by name", DELETE,
         delete_states({"topic_id": "{fresh_id}"}, {"name": "{fresh}"}, {"name": "{fresh}"}), "6+"),
    Case("delete: by id, and by name", DELETE,
         delete_states({"topic_id": "{fresh_id}"}, {"name": "{fresh}"}), "6+"),

    Case("grow", GROW, grow(4), mask={"placement": "drawn"}),
    Case("grow: only validate", GROW, grow(4, validate_only=True)),
    Case("grow: as many as there are", GROW, grow(2)),
    Case("grow: fewer", GROW, grow(1)),
    Case("grow: to 0", GROW, grow(0)),
    Case("grow: to -1", GROW, grow(-1)),
    Case("grow: unknown topic", GROW, grow(4, name="{missing}")),
    Case("grow: empty name", GROW, grow(4, name="")),
    Case("grow: invalid name", GROW, grow(4, name="a b")),
    Case("grow: timeout 0", GROW, grow(4, timeout_ms=0)),
    Case("grow: twice in a request", GROW, TWICE),
    Case("grow: nothing", GROW, {"topics": [], "timeout_ms": 100}),
    Case("grow: assigned", GROW, grow(3, [[3, 1, 2]])),
    Case("grow: assigned, too few", GROW, grow(4, [[3, 1, 2]])),
    Case("grow: assigned, too many", GROW, grow(3, [[3, 1, 2], [1, 2, 3]])),
    Case("grow: assigned, none", GROW, grow(3, [])),
    Case("grow: assigned to nobody", GROW, grow(3, [[]])),
    Case("grow: assigned to an unknown broker", GROW, grow(3, [[1, 2, 9]])),
    Case("grow: assigned twice", GROW, grow(3, [[1, 1, 2]])),
    Case("grow: assigned to fewer replicas", GROW, grow(3, [[1, 2]])),
    Case("grow: internal topic", GROW, grow(50, name="__consumer_offsets")),

    Case("elect: preferred leads", ELECT, elect(0, 0)),
    Case("elect: unclean, there is a leader", ELECT, elect(1, 0), "1+"),
    Case("elect: unknown kind", ELECT, elect(9, 0), "1+"),
    Case("elect: unknown topic", ELECT, elect(0, 0, name="{missing}")),
    Case("elect: unknown partition", ELECT, elect(0, 9)),
    Case("elect: partition -1", ELECT, elect(0, -1)),
    Case("elect: a partition twice", ELECT, elect(0, 0, 0)),
    Case("elect: good and unknown", ELECT, elect(0, 0, 9)),
    Case("elect: nothing", ELECT, {"topic_partitions": [], "timeout_ms": 1_000}),
    Case("elect: no partitions", ELECT, elect(0)),
    Case("elect: timeout 0", ELECT, elect(0, 0, timeout_ms=0)),
    Case("elect: timeout -1", ELECT, elect(0, 0, timeout_ms=-1)),
    Case("delete: with configs", DELETE, delete("{fresh}"), "6",
         before=configured(retention_ms="1000")),
)  # fmt: skip
