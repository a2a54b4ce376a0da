"""Topics and configs as written (tree.py) to checked ones.

Owns: what topics and configs in a topology may say.  Never: raises; says everything that is wrong.
Kafka: Topic.validate, ReplicationControlManager (CreateTopics), ConfigurationControlManager.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cluster.config.broker import BROKER_CONFIGS, BrokerConfig, check_broker_config
from cluster.config.problems import join, nearest, show
from cluster.config.reading import Reading, kind
from cluster.config.topic import TOPIC_CONFIGS, TopicConfig, check_topic_config
from cluster.config.topology import TopicSpec
from cluster.config.tree import Items, Map, Node, Scalar
from cluster.config.values import ConfigDef, ConfigError, parse_value

MAX_PARTITIONS: Final = 100_000
"""Of one topic, and of all topics of a topology together."""
MAX_TOPIC_NAME_CHARS: Final = 249
METADATA_TOPIC: Final = "__cluster_metadata"
TOPIC_KEYS: Final = ("partitions", "replication_factor", "assignment", "config")

_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")

_TOPOLOGY_SETS: Final = {
    "broker.id": "`id` of the broker",
    "node.id": "`id` of the broker",
    "broker.rack": "`rack` of the broker",
    "listeners": "`host` of the topology and `port` of the broker",
    "advertised.listeners": "`advertised` of the broker",
}
_NOT_SIMULATED: Final = (
    "ssl.", "sasl.", "security.", "listener.", "remote.", "controller.", "metadata.", "group.",
    "share.", "process.roles", "log.dir", "log.cleaner.", "metric", "kafka.metrics",
    "delegation.token.", "authorizer.", "principal.", "client.quota.", "telemetry.", "replica.",
    "num.", "background.threads", "broker.", "transaction.", "quota.", "alter.", "create.topic.",
    "config.providers", "socket.", "connection.", "inter.broker.", "early.start.",
    "offsets.commit.required.acks", "password.", "server.max.", "internal.",
)  # fmt: skip
"""How names begin that Kafka has and kcluster does not."""


# ---------------------------------------------------------------------------------- configs


def read_broker_configs(
    reading: Reading, node: Node | None, path: str, profile: str, beneath: Mapping[str, str]
) -> tuple[dict[str, str], BrokerConfig | None]:
    """The broker configs of a mapping as text; and what they come to over `beneath`, if that can
    be said.  Says also what does not go together."""
    before = len(reading.problems)
    own = _read_configs(reading, node, path, BROKER_CONFIGS, _unknown_broker_config)
    if len(reading.problems) > before or node is None:
        return own, None if node is not None else _resolved(profile, beneath)
    config = _resolved(profile, beneath, own)
    if config is not None:
        values = node.entries if isinstance(node, Map) else {}
        for name, why in check_broker_config(config):
            entry = values.get(name)
            reading.wrong(node if entry is None else entry.value, join(path, name), why)
    return own, config


def _resolved(profile: str, *overrides: Mapping[str, str]) -> BrokerConfig | None:
    try:
        return BrokerConfig.resolve(profile, *overrides)
    except ConfigError:
        return None  # said where it was written


def _read_configs(
    reading: Reading,
    node: Node | None,
    path: str,
    definitions: Mapping[str, ConfigDef],
    unknown_name: Callable[[str], str],
) -> dict[str, str]:
    configs: dict[str, str] = {}
    if node is None:
        return configs
    if not isinstance(node, Map):
        reading.entries(node, path, None, "config")
        return configs
    for name, entry in node.entries.items():
        at = join(path, name)
        definition = definitions.get(name)
        if definition is None:
            reading.wrong(entry, at, unknown_name(name))
            continue
        text = _config_text(entry.value, definition)
        if text is None:
            reading.wrong(entry.value, at, f"{kind(entry.value)}; it must be a {definition.type}")
            continue
        value = parse_value(definition, text)
        if isinstance(value, ConfigError):
            reading.wrong(entry.value, at, show_sentence(str(value)))
        else:
            configs[name] = text
    return configs


def _config_text(node: Node, definition: ConfigDef) -> str | None:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items) and definition.type == "LIST":
        words = [item.text for item in node.items if isinstance(item, Scalar)]
        return ",".join(word or "" for word in words) if len(words) == len(node.items) else None
    return None


def show_sentence(text: str) -> str:
    """A message with a value in it, on one line and bounded."""
    text = text if len(text) <= 300 else f"{text[:200]} ... {text[-97:]}"
    return text if text.isprintable() else repr(text)


def _unknown_broker_config(name: str) -> str:
    if name in _TOPOLOGY_SETS:
        return f"set with {_TOPOLOGY_SETS[name]}"
    topic_config = TOPIC_CONFIGS.get(name)
    if topic_config is not None and topic_config.synonyms:
        return f"a config of topics; for all topics it is {topic_config.synonyms[0]}"
    meant = nearest(name, BROKER_CONFIGS)
    if meant is not None:
        return f"no such broker config; did you mean {meant}?"
    if name.startswith(_NOT_SIMULATED):
        return "not a config that kcluster obeys, whether or not Kafka has it; leave it out"
    return "no such broker config"


def _unknown_topic_config(name: str) -> str:
    for definition in TOPIC_CONFIGS.values():
        if name in definition.synonyms:
            return f"a config of brokers; of a topic it is {definition.name}"
    meant = nearest(name, TOPIC_CONFIGS)
    return "no such topic config" + (f"; did you mean {meant}?" if meant else "")


# ----------------------------------------------------------------------------------- topics


def check_topics(
    reading: Reading, node: Node | None, broker_ids: Sequence[int], broker: BrokerConfig
) -> dict[str, TopicSpec]:
    """The topics by name."""
    reading.entries(node, "topics", None, "topic")
    entries = node.entries if isinstance(node, Map) else {}
    topics: dict[str, TopicSpec] = {}
    collisions: dict[str, str] = {}
    room = MAX_PARTITIONS
    for name, entry in entries.items():
        path = join("topics", name)
        problem = topic_name_problem(name)
        if problem is not None:
            reading.wrong(entry, path, problem)
            continue
        other = collisions.setdefault(name.replace(".", "_"), name)
        if other != name:
            reading.wrong(
                entry, path, f"collides with {other}: `.` and `_` are the same in metric names"
            )
        topic = _Topic(reading, path, entry.value, broker_ids, broker).read(name)
        topics[name] = topic
        if 0 <= room < topic.partitions:
            reading.wrong(entry, path, f"with it there are more than {MAX_PARTITIONS} partitions")
        room -= topic.partitions
    return topics


def topic_name_problem(name: str) -> str | None:
    """Why a topic cannot have this name, or None.  Kafka: Topic.validate."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"a topic's name cannot be {name}"
    if len(name) > MAX_TOPIC_NAME_CHARS:
        return f"the name has {len(name)} characters; at most {MAX_TOPIC_NAME_CHARS}"
    if not _TOPIC_NAME.fullmatch(name):
        return f"{show(name)} is no topic name: only letters, digits, `.`, `_` and `-` (ASCII)"
    if name == METADATA_TOPIC:
        return "the controller's own log, not a topic to create"
    return None


class _Topic:
    """Reads one topic."""

    def __init__(
        self,
        reading: Reading,
        path: str,
        node: Node,
        broker_ids: Sequence[int],
        broker: BrokerConfig,
    ) -> None:
        self.reading, self.path, self.node = reading, path, node
        self.broker_ids, self.broker = broker_ids, broker
        self.values = reading.entries(node, path, TOPIC_KEYS, "key of a topic")

    def read(self, name: str) -> TopicSpec:
        partitions, replication_factor = self._partitions(), self._replication_factor()
        assignment = self._assignment(partitions, replication_factor)
        config = self._config()
        if assignment is not None:
            return TopicSpec(name, len(assignment), len(assignment[0]), assignment, config)
        if replication_factor is None and "assignment" not in self.values:
            replication_factor = self.broker.default_replication_factor
            self._check_replication_factor(
                replication_factor, self.node, "default.replication.factor"
            )
        return TopicSpec(
            name, partitions or self.broker.num_partitions, replication_factor or 1, None, config
        )

    def _partitions(self) -> int | None:
        node, path = self.values.get("partitions"), join(self.path, "partitions")
        return self.reading.integer(node, path, 1, MAX_PARTITIONS)

    def _replication_factor(self) -> int | None:
        node, path = self.values.get("replication_factor"), join(self.path, "replication_factor")
        factor = self.reading.integer(node, path, 1, 2**15 - 1)
        if factor is not None and node is not None:
            self._check_replication_factor(factor, node, "")
        return factor

    def _check_replication_factor(self, factor: int, node: Node, origin: str) -> None:
        count = len(self.broker_ids)
        if count and factor > count:
            who = "the only broker" if count == 1 else f"the {count} brokers"
            value = f"{origin} {factor}".strip()
            path = join(self.path, "replication_factor")
            self.reading.wrong(node, path, f"{value} is more than {who}; set at most {count}")

    def _config(self) -> dict[str, str]:
        node, path = self.values.get("config"), join(self.path, "config")
        before = len(self.reading.problems)
        own = _read_configs(self.reading, node, path, TOPIC_CONFIGS, _unknown_topic_config)
        if node is not None and len(self.reading.problems) == before:
            problem = check_topic_config(TopicConfig.resolve(self.broker, own))
            if problem is not None:
                self.reading.wrong(node, path, problem)
        return own

    # ------------------------------------------------------------------------- assignment

    def _assignment(
        self, partitions: int | None, replication_factor: int | None
    ) -> tuple[tuple[int, ...], ...] | None:
        node, path = self.values.get("assignment"), join(self.path, "assignment")
        if node is None:
            return None
        before = len(self.reading.problems)
        rows = self.reading.items(node, path, "lists of broker ids, one for each partition")
        if isinstance(node, Items) and not 1 <= len(rows) <= MAX_PARTITIONS:
            self.reading.wrong(node, path, f"{len(rows)} partitions; at least 1 is needed")
        assignment = tuple(
            self._replicas(row, join(path, partition)) for partition, row in enumerate(rows)
        )
        for partition, (row, replicas) in enumerate(zip(rows, assignment, strict=True)):
            if len(replicas) != len(assignment[0]) and replicas and assignment[0]:
                self.reading.wrong(
                    row,
                    join(path, partition),
                    f"{len(replicas)} replicas, but partition 0 has {len(assignment[0])}",
                )
        if len(self.reading.problems) > before:
            return None
        self._agrees("partitions", partitions, len(assignment))
        self._agrees("replication_factor", replication_factor, len(assignment[0]))
        return assignment

    def _agrees(self, key: str, given: int | None, assigned: int) -> None:
        if given is not None and given != assigned:
            text = f"{given}, but the assignment has {assigned}; leave it out"
            self.reading.wrong(self.values[key], join(self.path, key), text)

    def _replicas(self, row: Node, path: str) -> tuple[int, ...]:
        items = self.reading.items(row, path, "broker ids, the preferred leader first")
        if isinstance(row, Items) and not items:
            self.reading.wrong(row, path, "a partition needs at least one replica")
        replicas = []
        for place, item in enumerate(items):
            number = self.reading.integer(item, join(path, place), 0, 2**31 - 1)
            if number is None:
                continue
            replicas.append(number)
            if self.broker_ids and number not in self.broker_ids:
                there = ", ".join(map(str, sorted(self.broker_ids)[:10]))
                text = f"there is no broker {number}; there are {there}"
                self.reading.wrong(item, join(path, place), text)
        for number, times in Counter(replicas).items():
            if times > 1:
                self.reading.wrong(row, path, f"broker {number} is named {times} times")
        return tuple(replicas)
