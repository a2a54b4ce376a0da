"""DescribeConfigs and ListConfigResources: every kind of resource, valid and invalid.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.config.kafka.catalog import broker_catalog, internal_configs
from kcluster.conform.case import Ask, Case, Sleep
from kcluster.conform.cases.alter_configs import (
    ALTER,
    BROKER,
    GROUP,
    LOGGER,
    METRICS,
    TOPIC,
    resource,
)
from kcluster.conform.cases.alter_configs import body as changed
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

DESCRIBE, LIST = ApiKey.DESCRIBE_CONFIGS, ApiKey.LIST_CONFIG_RESOURCES


def one(kind: int, name: str, keys: list[str] | None = None) -> JsonObject:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


def body(*resources: JsonObject, full: bool = True) -> JsonObject:
    return {"resources": list(resources), "include_synonyms": full, "include_documentation": full}


def listed(*kinds: int) -> JsonObject:
    return {"resource_types": list(kinds)}


RETENTION = ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
PLACES = (
    "advertised.listeners", "listeners", "log.dirs", "log.dir", "controller.quorum.voters",
    "process.roles", "broker.id", "node.id",
)  # fmt: skip
"""What says where a broker is."""
SET_BY_THE_SCRIPT = (
    "share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr",
    "transaction.state.log.replication.factor", "offsets.topic.replication.factor",
)  # fmt: skip
"""The script that starts Apache Kafka sets them, as it must or to their defaults."""
COMPARABLE = sorted({*broker_catalog()} - {*PLACES, *SET_BY_THE_SCRIPT, *internal_configs()})
OTHERS_SET = {"config_resources": "what others made in this cluster too"}

CASES = (
    Case("topic", DESCRIBE, body(one(TOPIC, "{fresh}"))),
    Case("topic, no more than values", DESCRIBE, body(one(TOPIC, "{fresh}"), full=False)),
    Case("topic, some keys", DESCRIBE, body(one(TOPIC, "{fresh}", ["segment.ms", "retention.ms"]))),
    Case("topic, no keys", DESCRIBE, body(one(TOPIC, "{fresh}", []))),
    Case("topic, unknown keys", DESCRIBE, body(one(TOPIC, "{fresh}", ["no", "", "segment.ms"]))),
    Case("topic, a key twice", DESCRIBE, body(one(TOPIC, "{fresh}", ["segment.ms", "segment.ms"]))),
    Case("topic, internal key", DESCRIBE, body(one(TOPIC, "{fresh}", ["internal.segment.bytes"]))),
    Case("topic with configs", DESCRIBE, body(one(TOPIC, "{fresh}")), before=(
        Ask(ALTER, changed(resource(
            TOPIC, "{fresh}", ("retention.ms", " 9 "), ("cleanup.policy", "compact, delete"),
            ("min.insync.replicas", "2"), ("segment.ms", "8"), ("preallocate", "TRUE"),
            ("min.cleanable.dirty.ratio", "1"), ("flush.ms", "7"),
        ))),
        Sleep(150),
    )),
    Case("topic with an internal config", DESCRIBE, body(one(TOPIC, "{fresh}")), before=(
        Ask(ALTER, changed(resource(TOPIC, "{fresh}", ("internal.segment.bytes", "1000")))),
        Sleep(150),
    )),
    Case("internal topic", DESCRIBE, body(one(TOPIC, "__consumer_offsets"))),
    Case("missing topic", DESCRIBE, body(one(TOPIC, "{missing}"))),
    Case("missing topic, some keys", DESCRIBE, body(one(TOPIC, "{missing}", ["segment.ms"]))),
    Case("nameless topic", DESCRIBE, body(one(TOPIC, ""))),
    Case("topic of a bad name", DESCRIBE, body(one(TOPIC, "a/b"))),
    Case("topic of a long name", DESCRIBE, body(one(TOPIC, "a" * 250))),
    Case("topic ..", DESCRIBE, body(one(TOPIC, ".."))),
    Case("a topic twice", DESCRIBE, body(one(TOPIC, "{fresh}", ["segment.ms"]),
                                         one(TOPIC, "{fresh}", ["retention.ms"]))),
    Case("one there, one missing", DESCRIBE, body(one(TOPIC, "{missing}"),
                                                  one(TOPIC, "{fresh}", ["segment.ms"]))),
    Case("nothing", DESCRIBE, body()),
    *(
        Case(f"resource type {kind}", DESCRIBE, body(one(kind, "x"), one(TOPIC, "{fresh}")))
        for kind in (-1, 0, 1, 3, 64)
    ),

    Case("broker", DESCRIBE, body(one(BROKER, "1", COMPARABLE)), versions="4"),
    Case("broker, internal configs", DESCRIBE, body(one(BROKER, "1", sorted(internal_configs())))),
    Case("broker, by its addresses", DESCRIBE, body(one(BROKER, "1", [
        "advertised.listeners", "listeners", "node.id", "process.roles",
    ])), mask={"value": "addresses", "synonyms": "as their values"}),
    Case("broker, retention", DESCRIBE, body(one(BROKER, "1", RETENTION))),
    Case("broker, retention set", DESCRIBE, body(one(BROKER, "3", RETENTION)), to=3, before=(
        Ask(ALTER, changed(resource(BROKER, "3", ("log.retention.ms", "600000000"))), to=3),
        Sleep(150),
    ), after=(
        Ask(ALTER, changed(resource(BROKER, "3", ("log.retention.ms", None, 1))), to=3),
    )),
    Case("broker, roll and flush", DESCRIBE, body(one(BROKER, "1", [
        "log.roll.ms", "log.roll.hours", "log.roll.jitter.ms", "log.roll.jitter.hours",
        "log.flush.interval.ms", "log.flush.scheduler.interval.ms",
    ]))),
    Case("broker, some keys", DESCRIBE, body(one(BROKER, "1", ["num.partitions", "no.such"]))),
    Case("broker, what the topology sets", DESCRIBE, body(one(BROKER, "1", [
        "num.partitions", "default.replication.factor", "broker.id", "node.id", "broker.rack",
        "transaction.state.log.min.isr", "group.initial.rebalance.delay.ms",
    ]))),
    Case("broker, a secret", DESCRIBE, body(one(BROKER, "1", [
        "ssl.key.password", "delegation.token.secret.key", "sasl.jaas.config",
    ]))),
    Case("broker, nothing but values", DESCRIBE, body(one(BROKER, "1", COMPARABLE), full=False),
         versions="1"),
    Case("broker 2 at 1", DESCRIBE, body(one(BROKER, "2"))),
    Case("broker 2 at 2", DESCRIBE, body(one(BROKER, "2", ["broker.id", "min.insync.replicas"])),
         to=2),
    Case("broker 9", DESCRIBE, body(one(BROKER, "9"))),
    Case("broker x", DESCRIBE, body(one(BROKER, "x"))),
    Case("broker 01", DESCRIBE, body(one(BROKER, "01", ["num.partitions"]))),
    Case("all brokers", DESCRIBE, body(one(BROKER, ""))),
    Case("all brokers, unset key", DESCRIBE, body(one(BROKER, "", ["num.partitions"]))),
    Case("broker and topic", DESCRIBE, body(one(BROKER, "1", ["num.partitions"]),
                                            one(TOPIC, "{fresh}", ["segment.ms"]),
                                            one(BROKER, "2"))),

    Case("loggers, one", DESCRIBE, body(one(LOGGER, "1", ["kafka.request.logger"])),
         mask={"value": "the levels are those of its log4j2.yaml"}),
    Case("loggers, root", DESCRIBE, body(one(LOGGER, "1", ["root", "no.such"])),
         mask={"value": "the levels are those of its log4j2.yaml"}),
    Case("loggers of broker 2 at 1", DESCRIBE, body(one(LOGGER, "2"))),
    Case("loggers of no broker", DESCRIBE, body(one(LOGGER, ""))),
    Case("loggers of broker x", DESCRIBE, body(one(LOGGER, "x"))),

    Case("group", DESCRIBE, body(one(GROUP, "{group}"))),
    Case("group, some keys", DESCRIBE, body(one(GROUP, "{group}", ["share.isolation.level", "x"]))),
    Case("group, internal keys", DESCRIBE, body(one(GROUP, "{group}", [
        "streams.num.warmup.replicas", "consumer.assignor.offload.enable", "streams.assignor.name",
    ]))),
    Case("group, no more than values", DESCRIBE, body(one(GROUP, "{group}"), full=False)),
    Case("group without a name", DESCRIBE, body(one(GROUP, ""))),
    Case("client metrics", DESCRIBE, body(one(METRICS, "{user}"))),
    Case("client metrics, some keys", DESCRIBE, body(one(METRICS, "{user}", ["metrics", "x"]))),
    Case("client metrics without a name", DESCRIBE, body(one(METRICS, ""))),

    Case("list nothing named", LIST, listed(), mask=OTHERS_SET),
    Case("list topics", LIST, listed(TOPIC), mask=OTHERS_SET, versions="1"),
    Case("list brokers", LIST, listed(BROKER), versions="1"),
    Case("list loggers", LIST, listed(LOGGER), versions="1"),
    Case("list groups", LIST, listed(GROUP), mask=OTHERS_SET, versions="1"),
    Case("list client metrics", LIST, listed(METRICS), mask=OTHERS_SET, versions="1"),
    Case("list brokers twice", LIST, listed(BROKER, BROKER), versions="1"),
    Case("list brokers and loggers", LIST, listed(LOGGER, BROKER), versions="1"),
    *(
        Case(f"list resources of type {kind}", LIST, listed(BROKER, kind), versions="1")
        for kind in (-1, 0, 1, 3)
    ),
)  # fmt: skip
