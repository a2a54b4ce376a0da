"""Turns the description of a real cluster into a topology that runs here.

Owns: the choice of the parts that a topology takes over, and the reasons for the rest.  Never:
reads anything (tool_output.py, admin.py), writes YAML (topology_text.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.config.kafka.broker import BROKER_CONFIGS, BrokerConfig, replication_defaults
from kcluster.config.kafka.catalog import listener_config, not_simulated
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.config.kafka.values import ConfigDef, ConfigError, parse_value
from kcluster.config.topology.config_checks import SECURITY_CONFIGS, has_effect, read_configs
from kcluster.importing.described import (
    DEFAULT_SOURCE,
    NO_LEADER,
    TOPIC_SOURCE,
    DescribedBroker,
    DescribedCluster,
    DescribedConfig,
    DescribedPartition,
    DescribedTopic,
    LeftOut,
)

_SET_BY_THE_TOPOLOGY: Final = (
    "node.id", "broker.id", "broker.rack", "listeners", "advertised.listeners",
)  # fmt: skip
"""Configs that keys of the topology replace; ports and addresses are the simulator's."""

_SECURITY: Final = "security is not imported: write `listeners` and `security`"
_QUORUM: Final = "the simulator has one controller, and no quorum to configure"
_REASONS: Final = (
    (("sasl.", "ssl.", "security.", "authorizer.", "principal.", "super.users",
      "delegation.token.", "password.", "connections.max.reauth.", "allow.everyone."), _SECURITY),
    (("remote.", "local.retention.", "log.local.retention."), "tiered storage is not simulated"),
    (("process.roles", "controller.quorum.", "controller.listener.", "metadata.", "bootstrap.",
      "node."), _QUORUM),
    (("listener.security.", "inter.broker.", "early.start."), "listeners are the simulator's own"),
)  # fmt: skip
"""Reasons by the beginning of a config's name, for subjects that are not simulated."""
_DIRECTORIES: Final = ("log.dir", "log.dirs")

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
_UNSIMULATED_TOPICS: Final = {
    "__share_group_state": "share groups are not simulated",
    "__remote_log_metadata": "tiered storage is not simulated",
    "__cluster_metadata": "the controller's own log",
}
_INTERNAL_CONFIGS: Final = {
    OFFSETS_TOPIC: (
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        {"segment.bytes": "offsets.topic.segment.bytes"},
    ),
    TRANSACTIONS_TOPIC: (
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        {
            "segment.bytes": "transaction.state.log.segment.bytes",
            "min.insync.replicas": "transaction.state.log.min.isr",
        },
    ),
}
"""The broker configs with which Kafka creates each internal topic."""


class DraftTopic(Struct, frozen=True):
    """A topic of the topology."""

    name: str
    assignment: tuple[tuple[int, ...], ...]
    config: dict[str, str] = {}


class DraftBroker(Struct, frozen=True):
    """A broker of the topology."""

    id: int
    rack: str | None = None
    config: dict[str, str] = {}


class TopologyDraft(Struct, frozen=True):
    """The content of a topology file."""

    origin: str
    brokers: tuple[DraftBroker, ...]
    topics: tuple[DraftTopic, ...]
    config: dict[str, str]
    """Broker configs for all brokers."""
    left_out: tuple[LeftOut, ...] = ()


def draft_topology(cluster: DescribedCluster) -> TopologyDraft:
    """The topology of a described cluster, with the parts that it leaves out."""
    return _Drafting(cluster).draft()


class _Drafting:
    """Drafts one topology."""

    def __init__(self, cluster: DescribedCluster) -> None:
        self.cluster = cluster
        self.left_out = dict.fromkeys(cluster.left_out)

    def leave(self, subject: str, reason: str) -> None:
        self.left_out[LeftOut(subject, reason)] = None

    def draft(self) -> TopologyDraft:
        brokers = self._brokers()
        config, own = self._broker_configs([broker.id for broker in brokers])
        topics: list[DescribedTopic] = []
        for topic in self.cluster.topics:
            if not topic.partitions:
                self.leave(f"topic {topic.name}", "without partitions")
            elif is_internal(topic.name):
                config |= self._internal(topic, config, len(brokers))
            else:
                topics.append(topic)
        return TopologyDraft(
            origin=self.cluster.origin,
            brokers=tuple(
                DraftBroker(broker.id, broker.rack, own.get(broker.id, {})) for broker in brokers
            ),
            topics=tuple(self._topic(topic, config) for topic in sorted(topics, key=_name)),
            config=dict(sorted(config.items())),
            left_out=tuple(sorted(self.left_out, key=str)),
        )

    # ------------------------------------------------------------------------------- brokers

    def _brokers(self) -> list[DescribedBroker]:
        brokers = {broker.id: broker for broker in self.cluster.brokers}
        for broker_id, configs in self.cluster.broker_configs.items():
            racks = [config.value for config in configs if config.name == "broker.rack"]
            known = brokers.get(broker_id)
            if known is None or known.rack is None:
                brokers[broker_id] = DescribedBroker(broker_id, racks[0] if racks else None)
        is_complete = bool(brokers)
        rows = [row for topic in self.cluster.topics for row in topic.partitions]
        for broker_id in sorted({replica for row in rows for replica in row.replicas}):
            if broker_id in brokers:
                continue
            brokers[broker_id] = DescribedBroker(broker_id)
            if is_complete:
                self.leave(f"broker {broker_id}", "has replicas, but was not described: no rack")
        if not is_complete and brokers:
            self.leave("racks", "unknown; with --brokers FILE they are taken over")
        return [brokers[broker_id] for broker_id in sorted(brokers)]

    def _broker_configs(
        self, ids: Sequence[int]
    ) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
        """The configs of all brokers, and the differing configs of each broker."""
        shared = self._accepted_broker_configs(self.cluster.default_configs, "")
        seen = {
            broker_id: self._accepted_broker_configs(configs, f" of broker {broker_id}")
            for broker_id, configs in self.cluster.broker_configs.items()
        }
        described = [seen[broker_id] for broker_id in ids if broker_id in seen]
        for name in dict.fromkeys(name for configs in described for name in configs):
            values = [configs.get(name) for configs in described]
            value = values[0]
            if value is not None and all(other == value for other in values):
                shared[name] = value
        own = {
            broker_id: {
                name: value for name, value in sorted(configs.items()) if shared.get(name) != value
            }
            for broker_id, configs in seen.items()
        }
        return shared | self._replication_factors(ids, shared, own), own

    def _replication_factors(
        self, ids: Sequence[int], shared: Mapping[str, str], own: Mapping[int, Mapping[str, str]]
    ) -> dict[str, str]:
        """The replication factors that are Kafka's defaults, if the default here differs."""
        described = [configs for configs in self.cluster.broker_configs.values() if configs]
        factors: dict[str, str] = {}
        for name, here in replication_defaults(len(ids)).items():
            if name in shared or any(name in configs for configs in own.values()):
                continue
            values = {c.value for configs in described for c in configs if c.name == name}
            if len(values) == 1 and (value := values.pop()) is not None and value != str(here):
                factors[name] = value
        return factors

    def _accepted_broker_configs(
        self, configs: Iterable[DescribedConfig], of: str
    ) -> dict[str, str]:
        return {
            config.name: config.value
            for config in configs
            if config.source != DEFAULT_SOURCE
            and config.name not in _SET_BY_THE_TOPOLOGY
            and self._is_accepted(config, BROKER_CONFIGS, of)
            and config.value is not None
        }

    def _is_accepted(
        self, config: DescribedConfig, known: Mapping[str, ConfigDef], of: str
    ) -> bool:
        reason = refusal(config, known)
        if reason is not None:
            who = of if reason.startswith("value ") else ""
            self.leave(f"config {config.name}{who}", reason)
        return reason is None

    # -------------------------------------------------------------------------------- topics

    def _topic(self, topic: DescribedTopic, broker_config: Mapping[str, str]) -> DraftTopic:
        seen = self.cluster.topic_configs.get(topic.name)
        configs = topic.configs if seen is None else seen
        own = {
            config.name: config.value
            for config in configs
            if config.value is not None
            and _is_own(config, broker_config)
            and self._is_accepted(config, TOPIC_CONFIGS, f" of topic {topic.name}")
        }
        self._report_leaders(topic)
        return DraftTopic(topic.name, self._assignment(topic), dict(sorted(own.items())))

    def _assignment(self, topic: DescribedTopic) -> tuple[tuple[int, ...], ...]:
        factors = Counter(len(row.replicas) for row in topic.partitions)
        least = min(factors)
        if len(factors) > 1:
            counts = ", ".join(map(str, sorted(factors)))
            reason = f"its partitions have {counts} replicas; here all have {least}"
            self.leave(f"topic {topic.name}", reason)
        return tuple(row.replicas[:least] for row in topic.partitions)

    def _report_leaders(self, topic: DescribedTopic) -> None:
        subject = f"topic {topic.name}"
        self._report(
            subject, topic.partitions, lambda row: row.leader == NO_LEADER, "no leader there"
        )
        self._report(
            subject,
            topic.partitions,
            lambda row: row.leader not in (NO_LEADER, row.replicas[0]),
            "led by another than the preferred replica, which leads here from the start",
        )
        self._report(
            subject,
            topic.partitions,
            lambda row: row.leader != NO_LEADER and len(row.isr) < len(row.replicas),
            "not all replicas were in sync; here they all start in sync",
        )

    def _report(
        self,
        subject: str,
        rows: Sequence[DescribedPartition],
        is_meant: Callable[[DescribedPartition], bool],
        words: str,
    ) -> None:
        numbers = [row.number for row in rows if is_meant(row)]
        if numbers:
            shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
            noun = "partition" if len(numbers) == 1 else "partitions"
            self.leave(subject, f"{noun} {shown}: {words}")

    def _internal(
        self, topic: DescribedTopic, config: Mapping[str, str], brokers: int
    ) -> dict[str, str]:
        """The broker configs with which an internal topic is created as in the described cluster,
        except for configs that already have these values."""
        if topic.name in _UNSIMULATED_TOPICS:
            self.leave(f"topic {topic.name}", _UNSIMULATED_TOPICS[topic.name])
            return {}
        count, factor, others = _INTERNAL_CONFIGS[topic.name]
        configs = {count: str(len(topic.partitions)), factor: str(len(self._assignment(topic)[0]))}
        seen = self.cluster.topic_configs.get(topic.name, topic.configs)
        for one in seen:
            name = others.get(one.name)
            if name is not None and one.value is not None and one.source != DEFAULT_SOURCE:
                configs[name] = one.value
        self.leave(
            f"topic {topic.name}",
            "created when it is first needed; how many partitions and replicas is a broker config",
        )
        factors = replication_defaults(brokers)
        here = {name: str(factors.get(name, _default(name))) for name in configs} | dict(config)
        return {name: value for name, value in configs.items() if value != here[name]}


def refusal(config: DescribedConfig, known: Mapping[str, ConfigDef]) -> str | None:
    """The reason why a topology cannot set this config; None if it can."""
    if config.sensitive:
        return "sensitive: Kafka does not show its value"
    if config.name in _DIRECTORIES:
        return "a path on that machine; here logs are kept in memory"
    plain = listener_config(config.name) or config.name
    if plain in SECURITY_CONFIGS or not has_effect(config.name, known):
        for beginnings, reason in _REASONS:
            if plain.startswith(beginnings):
                return reason
        if listener_config(config.name) is not None:
            return "configs of single listeners are not simulated"
        known = {**not_simulated(), **known}
        if config.name not in known:
            return "no config of Apache Kafka 4.3"
    reading = TreeReader("")
    read_configs(reading, from_python({config.name: config.value}), "", known, str)
    problems = reading.problems
    return f"value {config.value} refused: {problems[0].text}" if problems else None


def is_internal(name: str) -> bool:
    """Whether a topic is one that brokers create for their own use."""
    return name in _INTERNAL_CONFIGS or name in _UNSIMULATED_TOPICS


def _is_own(config: DescribedConfig, broker_config: Mapping[str, str]) -> bool:
    """Whether a topic sets a config itself.  kafka-topics does not show the source of a value, so a
    value counts as the topic's if it differs from the brokers' configs."""
    if config.source:
        return config.source == TOPIC_SOURCE
    definition = TOPIC_CONFIGS.get(config.name)
    if definition is None or config.value is None:
        return True
    for synonym in definition.synonyms:
        if synonym in broker_config:
            return broker_config[synonym] != config.value
    value = parse_value(definition, config.value)
    return isinstance(value, ConfigError) or value != definition.default


def _default(name: str) -> object:
    return getattr(BrokerConfig(), BROKER_CONFIGS[name].field)


def _name(topic: DescribedTopic) -> str:
    return topic.name
