"""IncrementalAlterConfigs and AlterConfigs: of topics, brokers, loggers, groups, client metrics.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Ask, Case, Sleep, Step, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

ALTER, REPLACE = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
DESCRIBE = ApiKey.DESCRIBE_CONFIGS
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Change = tuple[str, str | None] | tuple[str, str | None, int]


def resource(kind: int, name: str, *changes: Change) -> JsonObject:
    """`changes`: (name, value) or (name, value, operation)."""
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [
            {"name": change[0], "value": change[1]}
            | ({"config_operation": change[2]} if len(change) > 2 else {})
            for change in changes
        ],
    }


def body(*resources: JsonObject, dry: bool = False) -> JsonObject:
    return {"resources": list(resources), "validate_only": dry}


def described(kind: int, name: str, *keys: str) -> Ask:
    requested = {
        "resource_type": kind,
        "resource_name": name,
        "configuration_keys": list(keys) or None,
    }
    return Ask(DESCRIBE, {"resources": [requested], "include_synonyms": True})


def alter(
    name: str, kind: int, of: str, *changes: Change, dry: bool = False, **more: object
) -> Case:
    return Case(name, ALTER, body(resource(kind, of, *changes), dry=dry), **passed_on(more))


def dry(name: str, *changes: Change, kind: int = BROKER, of: str = "1") -> Case:
    """Nothing is changed: other cases share this cluster."""
    return alter(name, kind, of, *changes, dry=True)


def replace(name: str, kind: int, of: str, *changes: Change, **more: object) -> Case:
    return Case(name, REPLACE, body(resource(kind, of, *changes)), **passed_on(more))


def kept(kind: int, name: str, *changes: Change) -> tuple[Step, ...]:
    """Describe the change, undo it, describe it again; each once the broker knows of it."""
    back: list[Change] = [(change[0], None, DELETE) for change in changes]
    look = described(kind, name, *(change[0] for change in changes))
    received = Sleep(150)
    return received, look, Ask(ALTER, body(resource(kind, name, *back))), received, look


def made(name: str, kind: int, of: str, *changes: Change) -> Case:
    """A change that is accepted, described and undone."""
    return alter(name, kind, of, *changes, after=kept(kind, of, *changes))


def fresh(name: str, *changes: Change, dry: bool = False) -> Case:
    """Of the topic of this run."""
    return alter(name, TOPIC, "{fresh}", *changes, dry=dry)


def of_logger(name: str, *changes: Change) -> Case:
    return dry(name, *changes, kind=LOGGER)


def of_group(name: str, *changes: Change) -> Case:
    return dry(name, *changes, kind=GROUP, of="g")


def of_metrics(name: str, *changes: Change) -> Case:
    return dry(name, *changes, kind=METRICS, of="m")


OF_TOPICS = (
    fresh("topic: set", ("retention.ms", "1000")),
    fresh("topic: set two", ("retention.ms", "1000"), ("segment.ms", "7")),
    fresh("topic: delete what is not set", ("retention.ms", None, DELETE)),
    fresh("topic: delete with a value", ("retention.ms", "5", DELETE)),
    fresh("topic: append", ("cleanup.policy", "compact", APPEND)),
    fresh("topic: append what is there", ("cleanup.policy", "delete", APPEND)),
    fresh("topic: subtract", ("cleanup.policy", "delete", SUBTRACT)),
    fresh("topic: subtract what is not there", ("cleanup.policy", "x", SUBTRACT)),
    fresh("topic: append to no list", ("retention.ms", "1", APPEND)),
    fresh("topic: subtract from no list", ("retention.ms", "1", SUBTRACT)),
    fresh("topic: append to unknown", ("no.such", "1", APPEND)),
    fresh("topic: operation 9", ("retention.ms", "1", 9)),
    fresh("topic: operation -1", ("retention.ms", "1", -1)),
    fresh("topic: unknown name", ("no.such", "1")),
    fresh("topic: empty name", ("", "1")),
    fresh("topic: no number", ("retention.ms", "soon")),
    fresh("topic: too small", ("retention.ms", "-2")),
    fresh("topic: too big", ("segment.bytes", "2147483648")),
    fresh("topic: empty value", ("retention.ms", "")),
    fresh("topic: spaces around", ("retention.ms", " 77 ")),
    fresh("topic: null value", ("retention.ms", None)),
    fresh("topic: null appended", ("cleanup.policy", None, APPEND)),
    fresh("topic: no such word", ("cleanup.policy", "shred")),
    fresh("topic: empty list", ("cleanup.policy", "")),
    fresh("topic: list with an empty word", ("cleanup.policy", "compact,,delete")),
    fresh("topic: list with a word twice", ("cleanup.policy", "compact,compact")),
    fresh("topic: words of the wrong case", ("compression.type", "GZIP")),
    fresh("topic: flag in capitals", ("preallocate", "TRUE")),
    fresh("topic: no flag", ("preallocate", "yes")),
    fresh("topic: throttled replicas",
          ("leader.replication.throttled.replicas", "0:1,1:2")),
    fresh("topic: all replicas throttled",
          ("follower.replication.throttled.replicas", "*")),
    fresh("topic: replicas that are none",
          ("follower.replication.throttled.replicas", "0-1")),
    fresh("topic: two that do not agree",
          ("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")),
    fresh("topic: one good, one bad", ("segment.ms", "5"), ("no.such", "1")),
    fresh("topic: a config twice", ("segment.ms", "5"), ("segment.ms", "6")),
    fresh("topic: nothing"),
    fresh("topic: min.insync.replicas", ("min.insync.replicas", "2")),
    fresh("topic: min.insync.replicas 0", ("min.insync.replicas", "0")),
    fresh("topic: tiered", ("remote.storage.enable", "true")),
    fresh("topic: copying disabled, not tiered",
          ("remote.log.copy.disable", "true")),
    fresh("topic: local retention above",
          ("retention.ms", "10"), ("local.retention.ms", "20")),
    fresh("topic: segments too small", ("segment.bytes", "1000")),
    fresh("topic: internal.segment.bytes", ("internal.segment.bytes", "1000")),
    fresh("topic: a config gone in 4.0", ("message.format.version", "2.8")),
    fresh("topic: a broker's config", ("log.retention.ms", "1")),
    fresh("topic: decompressed size", ("max.decompressed.message.bytes", "1000")),
    fresh("topic: decompressed size 0", ("max.decompressed.message.bytes", "0")),
    fresh("topic: decompressed size, greatest", ("max.decompressed.message.bytes", "2147483639")),
    fresh("topic: decompressed size, too big", ("max.decompressed.message.bytes", "2147483640")),
    fresh("topic: dead letters", ("errors.deadletterqueue.group.enable", "TRUE")),
    fresh("topic: dead letters, no flag", ("errors.deadletterqueue.group.enable", "yes")),
    fresh("topic: a group's dead letters", ("errors.deadletterqueue.topic.name", "dlq.a")),
    fresh("topic: copied late", ("remote.copy.lag.ms", "700000000")),
    fresh("topic: copied after what is kept locally",
          ("remote.copy.lag.ms", "20"), ("retention.ms", "10")),
    fresh("topic: copied at -2", ("remote.copy.lag.ms", "-2")),
    fresh("topic: copied by size", ("remote.copy.lag.bytes", "-1")),
    fresh("topic: only asked", ("retention.ms", "1000"), dry=True),
    fresh("topic: only asked, bad", ("retention.ms", "x"), dry=True),
    alter("topic: missing", TOPIC, "{missing}", ("retention.ms", "1")),
    alter("topic: missing, bad value", TOPIC, "{missing}", ("retention.ms", "x")),
    alter("topic: missing, nothing", TOPIC, "{missing}"),
    alter("topic: no name", TOPIC, "", ("retention.ms", "1")),
    alter("topic: bad name", TOPIC, "a/b", ("retention.ms", "1")),
    alter("topic: internal", TOPIC, "__consumer_offsets", ("retention.ms", "x")),
)  # fmt: skip

OF_BROKERS = (
    dry("broker: a cluster-wide config", ("log.retention.ms", "1000")),
    dry("all brokers: a cluster-wide config", ("log.retention.ms", "1000"), of=""),
    dry("broker: read-only", ("log.dirs", "/x")),
    dry("all brokers: read-only", ("num.partitions", "3"), of=""),
    dry("broker: read-only deleted", ("num.partitions", None, DELETE)),
    dry("broker: unknown name", ("no.such", "1")),
    dry("all brokers: unknown name", ("no.such", "1"), of=""),
    dry("broker: a topic's name", ("retention.ms", "1")),
    dry("broker: no number", ("message.max.bytes", "x")),
    dry("broker: too small", ("message.max.bytes", "-1")),
    dry("broker: bad word", ("compression.type", "zip")),
    dry("broker: listeners", ("listeners", "PLAINTEXT://:1")),
    dry("broker: protocols of listeners", ("listener.security.protocol.map", "A:PLAINTEXT")),
    dry("all brokers: a broker's own config", ("principal.builder.class", "x"), of=""),
    dry("all brokers: listeners", ("listeners", "PLAINTEXT://:1"), of=""),
    dry("broker: security without its listener", ("ssl.keystore.type", "JKS")),
    dry("broker: security of a listener", ("listener.name.x.ssl.keystore.type", "JKS")),
    dry("all brokers: security of a listener", ("listener.name.x.ssl.keystore.type", "JKS"), of=""),
    dry("broker: a listener's max.connections", ("listener.name.x.max.connections", "7")),
    dry("all brokers: max.connections of one", ("listener.name.x.max.connections", "7"), of=""),
    dry("broker: a listener's unknown", ("listener.name.x.no.such", "7")),
    dry("broker: threads doubled", ("num.io.threads", "16")),
    dry("broker: threads more than doubled", ("num.io.threads", "17")),
    dry("broker: threads halved", ("num.io.threads", "4")),
    dry("broker: threads less than halved", ("num.io.threads", "3")),
    dry("broker: background threads", ("background.threads", "11")),
    dry("broker: no threads", ("background.threads", "0")),
    dry("broker: network threads", ("num.network.threads", "4")),
    dry("broker: network threads tripled", ("num.network.threads", "9")),
    dry("broker: replica fetchers", ("num.replica.fetchers", "2")),
    dry("broker: recovery threads", ("num.recovery.threads.per.data.dir", "4")),
    dry("broker: recovery threads, many", ("num.recovery.threads.per.data.dir", "9")),
    dry("broker: cleaner threads", ("log.cleaner.threads", "2")),
    dry("broker: cleaner threads, many", ("log.cleaner.threads", "3")),
    dry("broker: cleaner threads, none", ("log.cleaner.threads", "0")),
    dry("broker: dedupe buffer", ("log.cleaner.dedupe.buffer.size", "200000000")),
    dry("broker: dedupe buffer, too small", ("log.cleaner.dedupe.buffer.size", "1000000")),
    dry("broker: max.connections", ("max.connections", "5")),
    dry("broker: max.connections.per.ip 0", ("max.connections.per.ip", "0")),
    dry("broker: overrides", ("max.connections.per.ip.overrides", "127.0.0.1:10")),
    dry("broker: bad overrides", ("max.connections.per.ip.overrides", "x")),
    dry("broker: max.connection.creation.rate", ("max.connection.creation.rate", "100")),
    dry("broker: replication throttle", ("leader.replication.throttled.rate", "1000")),
    dry("broker: replication throttle, bad", ("follower.replication.throttled.rate", "-1")),
    dry("broker: log dirs throttle", ("replica.alter.log.dirs.io.max.bytes.per.second", "9")),
    dry("broker: producer.id.expiration.ms", ("producer.id.expiration.ms", "5000")),
    dry("broker: no reporter", ("metric.reporters", "no.Such")),
    dry("broker: reporters appended", ("metric.reporters", "no.Such", APPEND)),
    dry("broker: config.providers", ("config.providers", "file")),
    dry("broker: cordoned.log.dirs", ("cordoned.log.dirs", "/nowhere")),
    dry("broker: all dirs cordoned", ("cordoned.log.dirs", "*")),
    dry("broker: tiered fetch wait", ("remote.fetch.max.wait.ms", "50")),
    dry("broker: remote cache size", ("remote.log.index.file.cache.total.size.bytes", "5000000")),
    dry("broker: remote readers", ("remote.log.reader.threads", "11")),
    dry("broker: retention 0", ("log.retention.ms", "0")),
    dry("broker: retention -5", ("log.retention.ms", "-5")),
    dry("broker: local retention above", ("log.local.retention.ms", "999999999999")),
    dry("broker: local retention -1", ("log.local.retention.ms", "-1")),
    dry("broker: copied late", ("log.remote.copy.lag.ms", "604800001")),
    dry("broker: copied in time", ("log.remote.copy.lag.ms", "604800000")),
    dry("broker: copied as local retention", ("log.remote.copy.lag.ms", "-1")),
    dry("broker: copied at -2", ("log.remote.copy.lag.ms", "-2")),
    dry("broker: copied by size", ("log.remote.copy.lag.bytes", "5")),
    dry("broker: copied by size, too late",
        ("log.remote.copy.lag.bytes", "6"), ("log.local.retention.bytes", "5"),
        ("log.retention.bytes", "7")),
    dry("broker: decompressed size", ("max.decompressed.message.bytes", "77")),
    dry("broker: decompressed size 0", ("max.decompressed.message.bytes", "0")),
    dry("all brokers: decompressed size", ("max.decompressed.message.bytes", "77"), of=""),
    dry("broker: dead letters created", ("errors.deadletterqueue.auto.create.topics.enable", "1")),
    dry("broker: dead letters, no prefix", ("errors.deadletterqueue.topic.name.prefix", "")),
    dry("broker: streams assignors", ("group.streams.assignors", "sticky")),
    dry("broker: tags", ("group.streams.rack.aware.assignment.tags", "a")),
    dry("broker: description plugin", ("group.streams.topology.description.plugin.class", "x")),
    dry("broker: warm-ups", ("group.streams.num.warmup.replicas", "3")),
    dry("broker: offload", ("group.share.assignor.offload.enable", "false")),
    dry("broker: any audience", ("sasl.oauthbearer.allow.unverified.audience", "true")),
    dry("broker: roll 0", ("log.roll.ms", "0")),
    dry("broker: append", ("log.cleanup.policy", "compact", APPEND)),
    dry("broker: subtract", ("log.cleanup.policy", "delete", SUBTRACT)),
    dry("broker: append to no list", ("message.max.bytes", "1", APPEND)),
    dry("broker: append to unknown", ("no.such", "1", APPEND)),
    dry("broker: operation 9", ("message.max.bytes", "1", 9)),
    dry("broker: null value", ("message.max.bytes", None)),
    dry("broker: twice", ("message.max.bytes", "1"), ("message.max.bytes", "2")),
    dry("broker: nothing"),
    dry("broker 2 asked of 1", ("message.max.bytes", "1"), of="2"),
    dry("broker 9 asked of 1", ("message.max.bytes", "1"), of="9"),
    dry("broker -1", ("message.max.bytes", "1"), of="-1"),
    dry("broker x", ("message.max.bytes", "1"), of="x"),
    dry("broker 01", ("message.max.bytes", "1000"), of="01"),
    dry("broker +1", ("message.max.bytes", "1000"), of="+1"),
    dry("broker: min.insync.replicas", ("min.insync.replicas", "2")),
    dry("all brokers: min.insync.replicas", ("min.insync.replicas", "2"), of=""),
    dry("all brokers: min.insync.replicas removed", ("min.insync.replicas", None, DELETE), of=""),
    dry("all brokers: cleaner threads", ("log.cleaner.threads", "2"), of=""),
    dry("all brokers: unclean elections", ("unclean.leader.election.enable", "true"), of=""),
    dry("broker: unclean elections", ("unclean.leader.election.enable", "true")),
    dry("broker: consumer assignment interval", ("group.consumer.assignment.interval.ms", "2000")),
    dry("broker: that interval too long", ("group.consumer.assignment.interval.ms", "20000")),
    dry("broker: cached buffer", ("group.coordinator.cached.buffer.max.bytes", "600000")),
    dry("broker: cached buffer, too small", ("group.coordinator.cached.buffer.max.bytes", "1")),
    made("broker: made", BROKER, "1", ("log.cleaner.min.cleanable.ratio", "0.7")),
    made("broker: as it was written", BROKER, "1", ("log.cleaner.min.cleanable.ratio", " 0.70")),
    made("broker: unknown name made", BROKER, "1", ("no.such.{user}", "1")),
    made("all brokers: unknown name made", BROKER, "", ("no.such.{user}", "1")),
    made("all brokers: made", BROKER, "", ("log.cleaner.min.cleanable.ratio", "0.6")),
    made("broker: log.roll.jitter.ms", BROKER, "1", ("log.roll.jitter.ms", "5")),
    made("broker: throttle made", BROKER, "1", ("leader.replication.throttled.rate", "1000000000")),
    made("all brokers: throttle made", BROKER, "",
         ("replica.alter.log.dirs.io.max.bytes.per.second", "1000000000")),
    made("broker: a listener's own", BROKER, "1", ("listener.name.x.max.connections", "70000")),
    made("broker: two that stand for each other", BROKER, "1",
         ("log.roll.ms", "700000000"), ("log.roll.jitter.ms", "1")),
    made("broker: threads made", BROKER, "1", ("background.threads", "12")),
    made("broker: decompressed size made", BROKER, "1",
         ("max.decompressed.message.bytes", "1000000")),
    made("broker: copied late made", BROKER, "1", ("log.remote.copy.lag.ms", "5")),
    made("broker: dead letters made", BROKER, "1",
         ("errors.deadletterqueue.topic.name.prefix", "dead."),
         ("errors.deadletterqueue.auto.create.topics.enable", "true")),
    made("broker: offload made", BROKER, "1", ("group.consumer.assignor.offload.enable", "true")),
)  # fmt: skip

REQUEST = "kafka.request.logger"

OF_LOGGERS = (
    of_logger("logger: only asked", (REQUEST, "INFO")),
    of_logger("logger: no such level", (REQUEST, "LOUD")),
    of_logger("logger: level in small letters", (REQUEST, "info")),
    of_logger("logger: no such logger", ("no.such", "INFO")),
    of_logger("logger: no name", ("", "INFO")),
    of_logger("logger: OFF", (REQUEST, "OFF")),
    of_logger("logger: ALL", (REQUEST, "ALL")),
    of_logger("logger: append", (REQUEST, "INFO", APPEND)),
    of_logger("logger: subtract", (REQUEST, "INFO", SUBTRACT)),
    of_logger("logger: operation 9", (REQUEST, "INFO", 9)),
    of_logger("logger: null", (REQUEST, None)),
    of_logger("logger: delete", (REQUEST, None, DELETE)),
    of_logger("logger: delete the root's", ("root", None, DELETE)),
    of_logger("logger: delete unknown", ("no.such", None, DELETE)),
    of_logger("logger: root", ("root", "INFO")),
    dry("logger: of broker 2", (REQUEST, "INFO"), kind=LOGGER, of="2"),
    dry("logger: of no broker", (REQUEST, "INFO"), kind=LOGGER, of=""),
    dry("logger: of broker x", (REQUEST, "INFO"), kind=LOGGER, of="x"),
    of_logger("logger: nothing"),
    made("logger: made", LOGGER, "1", (REQUEST, "ERROR")),
    replace("logger replaced", LOGGER, "1", (REQUEST, "INFO")),
)

OF_GROUPS = (
    made("group: made", GROUP, "{group}", ("consumer.session.timeout.ms", "50000")),
    made("group: two", GROUP, "{group}", ("consumer.session.timeout.ms", "50000"),
         ("consumer.heartbeat.interval.ms", "6000")),
    made("group: share.auto.offset.reset", GROUP, "{group}",
         ("share.auto.offset.reset", "by_duration:PT1H")),
    made("group: streams", GROUP, "{group}", ("streams.num.standby.replicas", "1")),
    of_group("group: bad duration", ("share.auto.offset.reset", "by_duration:x")),
    of_group("group: empty duration", ("share.auto.offset.reset", "by_duration:")),
    of_group("group: reset in capitals", ("share.auto.offset.reset", "EARLIEST")),
    of_group("group: no such reset", ("share.auto.offset.reset", "none")),
    of_group("group: isolation", ("share.isolation.level", "read_committed")),
    of_group("group: bad isolation", ("share.isolation.level", "x")),
    of_group("group: unknown name", ("no.such", "1")),
    of_group("group: no number", ("consumer.session.timeout.ms", "x")),
    of_group("group: below Kafka's own range", ("consumer.session.timeout.ms", "0")),
    of_group("group: below the broker's min", ("consumer.session.timeout.ms", "44999")),
    of_group("group: above the broker's max", ("consumer.session.timeout.ms", "60001")),
    of_group("group: heartbeats too often", ("consumer.heartbeat.interval.ms", "4999")),
    of_group("group: heartbeats too rare", ("consumer.heartbeat.interval.ms", "15001")),
    of_group("group: assignment interval", ("consumer.assignment.interval.ms", "15000")),
    of_group("group: assignment interval, long", ("consumer.assignment.interval.ms", "15001")),
    of_group("share: session too short", ("share.session.timeout.ms", "44999")),
    of_group("share: session too long", ("share.session.timeout.ms", "60001")),
    of_group("share: heartbeats too often", ("share.heartbeat.interval.ms", "4999")),
    of_group("share: heartbeats too rare", ("share.heartbeat.interval.ms", "15001")),
    of_group("share: lock too short", ("share.record.lock.duration.ms", "14999")),
    of_group("share: lock far too short", ("share.record.lock.duration.ms", "999")),
    of_group("share: lock too long", ("share.record.lock.duration.ms", "60001")),
    of_group("share: deliveries too few", ("share.delivery.count.limit", "1")),
    of_group("share: deliveries too many", ("share.delivery.count.limit", "11")),
    of_group("share: locks too few", ("share.partition.max.record.locks", "99")),
    of_group("share: locks too many", ("share.partition.max.record.locks", "4001")),
    of_group("share: assignment interval, long", ("share.assignment.interval.ms", "15001")),
    of_group("share: renewing", ("share.renew.acknowledge.enable", "false")),
    of_group("streams: session too long", ("streams.session.timeout.ms", "60001")),
    of_group("streams: session too short", ("streams.session.timeout.ms", "44999")),
    of_group("streams: heartbeats too often", ("streams.heartbeat.interval.ms", "4999")),
    of_group("streams: heartbeats too rare", ("streams.heartbeat.interval.ms", "15001")),
    of_group("streams: standbys too many", ("streams.num.standby.replicas", "3")),
    of_group("streams: delay", ("streams.initial.rebalance.delay.ms", "-1")),
    of_group("streams: assignment interval, long", ("streams.assignment.interval.ms", "15001")),
    made("streams: 4.4 made", GROUP, "{group}", ("streams.assignor.name", "sticky"),
         ("streams.num.warmup.replicas", "3"), ("streams.acceptable.recovery.lag", "5"),
         ("streams.task.offset.interval.ms", "20000"), ("streams.assignor.offload.enable", "false"),
         ("streams.rack.aware.assignment.tags", "zone, rack")),
    made("share: dead letters made", GROUP, "{group}",
         ("errors.deadletterqueue.topic.name", "dlq.x"),
         ("errors.deadletterqueue.copy.record.enable", "true")),
    of_group("streams: no such assignor", ("streams.assignor.name", "x")),
    of_group("streams: no assignor", ("streams.assignor.name", "")),
    of_group("streams: warm-ups too many", ("streams.num.warmup.replicas", "21")),
    of_group("streams: warm-ups, most", ("streams.num.warmup.replicas", "20")),
    of_group("streams: warm-ups below 0", ("streams.num.warmup.replicas", "-1")),
    of_group("streams: offsets too often", ("streams.task.offset.interval.ms", "14999")),
    of_group("streams: offsets rarely", ("streams.task.offset.interval.ms", "2147483647")),
    of_group("streams: lag below 0", ("streams.acceptable.recovery.lag", "-1")),
    of_group("streams: a long lag", ("streams.acceptable.recovery.lag", "9223372036854775807")),
    of_group("streams: a tag twice", ("streams.rack.aware.assignment.tags", "a, a")),
    of_group("streams: an empty tag", ("streams.rack.aware.assignment.tags", "a,,b")),
    of_group("streams: two empty tags", ("streams.rack.aware.assignment.tags", ",")),
    of_group("streams: no tags", ("streams.rack.aware.assignment.tags", "")),
    of_group("share: internal dead letters", ("errors.deadletterqueue.topic.name", "__x")),
    of_group("share: dead letters without the prefix",
             ("errors.deadletterqueue.topic.name", "x")),
    of_group("share: dead letters of a bad name",
             ("errors.deadletterqueue.topic.name", "dlq.a/b")),
    of_group("share: no dead letters", ("errors.deadletterqueue.topic.name", "")),
    of_group("share: dead letters with spaces", ("errors.deadletterqueue.topic.name", " __x")),
    of_group("share: copies, no flag", ("errors.deadletterqueue.copy.record.enable", "1")),
    of_group("group: append to no list", ("consumer.session.timeout.ms", "1", APPEND)),
    of_group("group: operation 9", ("consumer.session.timeout.ms", "1", 9)),
    of_group("group: null", ("consumer.session.timeout.ms", None)),
    of_group("group: delete", ("consumer.session.timeout.ms", None, DELETE)),
    dry("group: without a name", ("consumer.session.timeout.ms", "50000"), kind=GROUP, of=""),
    dry("group: without a name, bad", ("no.such", "50000"), kind=GROUP, of=""),
    of_group("group: nothing"),
    replace("group replaced", GROUP, "{group}", ("consumer.session.timeout.ms", "50000"),
            after=kept(GROUP, "{group}", ("consumer.session.timeout.ms", "50000"))),
)  # fmt: skip

OF_METRICS = (
    made("metrics: made", METRICS, "{user}", ("interval.ms", "1000"), ("metrics", "a.b,c")),
    made("metrics: matching", METRICS, "{user}", ("match", "client_id=x.*,client_software_name=y")),
    made("metrics: all", METRICS, "{user}", ("metrics", "*")),
    made("metrics: none", METRICS, "{user}", ("metrics", "")),
    made("metrics: appended", METRICS, "{user}", ("metrics", "x", APPEND)),
    of_metrics("metrics: subtracted", ("metrics", "x", SUBTRACT)),
    of_metrics("metrics: append to a number", ("interval.ms", "1", APPEND)),
    of_metrics("metrics: 100 ms", ("interval.ms", "100")),
    of_metrics("metrics: 99 ms", ("interval.ms", "99")),
    of_metrics("metrics: an hour", ("interval.ms", "3600000")),
    of_metrics("metrics: more than an hour", ("interval.ms", "3600001")),
    of_metrics("metrics: no number", ("interval.ms", "x")),
    of_metrics("metrics: unknown name", ("no.such", "x")),
    of_metrics("metrics: match without =", ("match", "client_id")),
    of_metrics("metrics: match with two =", ("match", "client_id=a=b")),
    of_metrics("metrics: match without a value", ("match", "client_id=")),
    of_metrics("metrics: match of unknown", ("match", "client_color=a")),
    of_metrics("metrics: no pattern", ("match", "client_id=[")),
    of_metrics("metrics: empty match", ("match", "")),
    of_metrics("metrics: match with spaces", ("match", " client_id = a , client_software_name=b")),
    of_metrics("metrics: match twice", ("match", "client_id=a,client_id=b")),
    of_metrics("metrics: empty words", ("metrics", "a,,b")),
    of_metrics("metrics: operation 9", ("interval.ms", "1000", 9)),
    of_metrics("metrics: null", ("metrics", None)),
    of_metrics("metrics: delete", ("metrics", None, DELETE)),
    dry("metrics: without a name", ("metrics", "a"), kind=METRICS, of=""),
    of_metrics("metrics: nothing"),
    replace("metrics replaced", METRICS, "{user}", ("metrics", "a"),
            after=kept(METRICS, "{user}", ("metrics", "a"))),
)  # fmt: skip

OTHERS = (
    Case("no resources", ALTER, body()),
    Case("no resources replaced", REPLACE, body()),
    *(
        Case(f"resource type {kind}", ALTER, body(resource(kind, "x", ("a", "b"))))
        for kind in (-1, 0, 1, 3, 64, 127)
    ),
    Case("resource type 0 replaced", REPLACE, body(resource(0, "x", ("a", "b")))),
    Case("a topic twice", ALTER, body(
        resource(TOPIC, "{fresh}", ("segment.ms", "5")),
        resource(TOPIC, "{fresh}", ("retention.ms", "5")),
        resource(TOPIC, "{missing}", ("retention.ms", "5")),
    )),
    Case("a topic three times", ALTER, body(
        *[resource(TOPIC, "{fresh}", ("segment.ms", "5"))] * 3,
    )),
    Case("good and bad ones", ALTER, body(
        resource(TOPIC, "{missing}", ("segment.ms", "5")),
        resource(TOPIC, "{fresh}", ("segment.ms", "5")),
        resource(BROKER, "2", ("message.max.bytes", "5")),
        resource(0, "", ("message.max.bytes", "5")),
    )),
    replace("topic replaced", TOPIC, "{fresh}", ("segment.ms", "5"), before=(
        Ask(ALTER, body(resource(TOPIC, "{fresh}", ("retention.ms", "5")))),
    )),
    replace("topic replaced by nothing", TOPIC, "{fresh}", before=(
        Ask(ALTER, body(resource(TOPIC, "{fresh}", ("retention.ms", "5")))),
    )),
    replace("topic replaced, bad", TOPIC, "{fresh}", ("no.such", "5")),
    replace("topic replaced, null", TOPIC, "{fresh}", ("segment.ms", None)),
    replace("topic replaced, a config twice", TOPIC, "{fresh}",
            ("segment.ms", "5"), ("segment.ms", "6")),
    replace("missing topic replaced", TOPIC, "{missing}", ("segment.ms", "5")),
    replace("nameless topic replaced", TOPIC, "", ("segment.ms", "5")),
    replace("broker 2 replaced at 1", BROKER, "2", ("message.max.bytes", "5")),
    replace("broker replaced, read-only", BROKER, "1", ("log.dirs", "5")),
    replace("all brokers replaced, bad", BROKER, "", ("message.max.bytes", "x")),
    Case("topic replaced, only asked", REPLACE, body(
        resource(TOPIC, "{fresh}", ("segment.ms", "5")), dry=True,
    )),
    Case("a topic replaced twice", REPLACE, body(
        resource(TOPIC, "{fresh}", ("segment.ms", "5")),
        resource(TOPIC, "{fresh}", ("retention.ms", "5")),
    )),
)  # fmt: skip

CASES = (*OF_TOPICS, *OF_BROKERS, *OF_LOGGERS, *OF_GROUPS, *OF_METRICS, *OTHERS)
