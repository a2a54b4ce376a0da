"""Checks the topics of a topology: from a tree (tree.py) to TopicSpecs.

Owns: the rules for several keys of a topic together.  Never: raises; records every problem.
Kafka: Topic.validate, ReplicationControlManager (CreateTopics).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kcluster.config.files.fields import read_fields
from kcluster.config.files.problems import join, nearest, show, unknown
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Items, Map, Node
from kcluster.config.kafka.broker import BrokerConfig
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS, TopicConfig, check_topic_config
from kcluster.config.topology.broker_checks import Brokers
from kcluster.config.topology.config_checks import read_configs, unknown_topic_config
from kcluster.config.topology.keys import ID, MAX_PARTITIONS, TOPIC_KEYS, TopicKeys
from kcluster.config.topology.specs import TopicSpec
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC, MAX_NAME_LENGTH, NameFault, name_fault


def check_topics(
    reading: TreeReader, node: Node | None, brokers: Brokers, broker: BrokerConfig
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
        topic = _Topic(reading, path, entry.value, brokers, broker).read(name)
        topics[name] = topic
        if 0 <= room < topic.partitions:
            reading.wrong(entry, path, f"with it there are more than {MAX_PARTITIONS} partitions")
        room -= topic.partitions
    return topics


def topic_name_problem(name: str) -> str | None:
    """The reason why a topic cannot have this name, or None.  Kafka: Topic.validate."""
    match name_fault(name):
        case NameFault.EMPTY:
            return "a topic's name must not be empty"
        case NameFault.DOTS:
            return f"a topic's name cannot be {name}"
        case NameFault.LENGTH:
            return f"the name has {len(name)} characters; at most {MAX_NAME_LENGTH}"
        case NameFault.CHARACTERS:
            allowed = "letters, digits, `.`, `_` and `-` (ASCII)"
            return f"{show(name)} is not a topic name: only {allowed}"
    if name == CLUSTER_METADATA_TOPIC:
        return "the controller's own log; it cannot be created"
    return None


class _Topic:
    """Reads one topic."""

    def __init__(
        self, reading: TreeReader, path: str, node: Node, brokers: Brokers, broker: BrokerConfig
    ) -> None:
        self.reading, self.path, self.node = reading, path, node
        self.brokers, self.broker = brokers, broker
        self.beside: Node | None = None
        """The configs among the topic's keys, as a mapping; None if there are none."""
        if isinstance(node, Map):
            keys, configs = _parted(node)
            node, self.beside = keys, configs if configs.entries else None
        self.values = read_fields(reading, node, path, TopicKeys, "key of a topic", _unknown_key)
        self.written = node.entries if isinstance(node, Map) else {}

    def read(self, name: str) -> TopicSpec:
        partitions, replication_factor = self.values.get("partitions"), self._replication_factor()
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

    def _replication_factor(self) -> int | None:
        factor: int | None = self.values.get("replication_factor")
        if factor is not None:
            self._check_replication_factor(factor, self.written["replication_factor"].value, "")
        return factor

    def _check_replication_factor(self, factor: int, node: Node, origin: str) -> None:
        count = self.brokers.count
        if count and factor > count:
            who = "the only broker" if count == 1 else f"the {count} brokers"
            value = f"{origin} {factor}".strip()
            path = join(self.path, "replication_factor")
            self.reading.wrong(node, path, f"{value} is more than {who}; set at most {count}")

    def _config(self) -> dict[str, str]:
        node, path = self.values.get("config"), join(self.path, "config")
        before = len(self.reading.problems)
        own = read_configs(self.reading, node, path, TOPIC_CONFIGS, unknown_topic_config)
        more = read_configs(
            self.reading, self.beside, self.path, TOPIC_CONFIGS, unknown_topic_config
        )
        for name in more.keys() & own.keys():
            self.reading.wrong(self.node, join(self.path, name), f"{name} is given twice")
        own |= more
        if own and len(self.reading.problems) == before:
            problem = check_topic_config(TopicConfig.resolve(self.broker, own))
            if problem is not None:
                self.reading.wrong(node or self.node, path if node else self.path, problem)
        return own

    # ------------------------------------------------------------------------------- assignment

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

    def _agrees(self, key: str, written: int | None, assigned: int) -> None:
        if written is not None and written != assigned:
            text = f"{written}, but the assignment has {assigned}; leave it out"
            self.reading.wrong(self.written[key].value, join(self.path, key), text)

    def _replicas(self, row: Node, path: str) -> tuple[int, ...]:
        items = self.reading.items(row, path, "broker ids, the preferred leader first")
        if isinstance(row, Items) and not items:
            self.reading.wrong(row, path, "a partition needs at least one replica")
        replicas = []
        for place, item in enumerate(items):
            number = ID.read(self.reading, item, join(path, place))
            if number is None:
                continue
            replicas.append(number)
            known_ids = self.brokers.known_ids
            if known_ids and number not in known_ids:
                self.reading.wrong(item, join(path, place), no_broker(number, known_ids))
        for number, times in Counter(replicas).items():
            if times > 1:
                self.reading.wrong(row, path, f"broker {number} is named {times} times")
        return tuple(replicas)


def _parted(node: Map) -> tuple[Map, Map]:
    """Split a topic's mapping into the keys of a topic, and the configs among them."""
    configs = {
        key: entry
        for key, entry in node.entries.items()
        if key not in TOPIC_KEYS and config_name(key, TOPIC_CONFIGS) in TOPIC_CONFIGS
    }
    keys = {key: entry for key, entry in node.entries.items() if key not in configs}
    return Map(keys, node.line, node.column), Map(configs, node.line, node.column)


def _unknown_key(key: str) -> str:
    """The message for a name that is neither a key of a topic nor a config."""
    looks_like_config = "." in key or "_" in key
    if looks_like_config and nearest(key, TOPIC_KEYS) is None:
        return unknown_topic_config(key)
    return unknown("key of a topic", key, TOPIC_KEYS)


def no_broker(number: int, ids: Sequence[int]) -> str:
    """The message for an id that no broker has."""
    there = ", ".join(map(str, sorted(ids)[:10])) + (", ..." if len(ids) > 10 else "")
    return f"there is no broker {number}; there are {there}"
