"""The parts of a cluster, as a checked value; and the checks of a topology as a whole.

Owns: Topology; its keys are in keys.py, its parts are checked by broker_checks.py,
topic_checks.py, network_checks.py, config_checks.py and release_checks.py.
Never: reads a file (loader.py does) or opens a socket (`check_ports` is given a probe).
Kafka: server.properties of each broker, KafkaConfig's validation of listeners and ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from kcluster.config.eras import configs_of, features_of
from kcluster.config.files.fields import read_fields
from kcluster.config.files.problems import Place, Problem, TopologyError
from kcluster.config.files.reading import TreeReader, is_null, kind
from kcluster.config.files.tree import Map, Node
from kcluster.config.kafka.broker import BROKER_CONFIGS, BrokerConfig, replication_defaults
from kcluster.config.kafka.tls import is_tls_config
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.config.kafka.values import ConfigDef
from kcluster.config.topology.broker_checks import (
    TWICE,
    BrokerDefaults,
    broker_count,
    check_advertised,
    check_brokers,
)
from kcluster.config.topology.config_checks import (
    has_effect,
    read_broker_configs,
    simulated,
    without_passwords,
)
from kcluster.config.topology.keys import DEFAULT_HOST, DEFAULT_NAME, DEFAULT_PROFILE, TopologyKeys
from kcluster.config.topology.listener_checks import check_listeners, take_kafka_listeners
from kcluster.config.topology.loader import SourceTree, tree_of_file, tree_of_text, tree_of_values
from kcluster.config.topology.network_checks import check_network
from kcluster.config.topology.release_checks import check_eras, check_features, check_releases
from kcluster.config.topology.security_checks import check_security, read_security
from kcluster.config.topology.specs import (
    BrokerSpec,
    ListenerSpec,
    NetworkSpec,
    SecuritySpec,
    TopicSpec,
)
from kcluster.config.topology.tls_checks import KEYSTORES
from kcluster.config.topology.topic_checks import check_topics
from kcluster.config.topology.values import EVERYWHERE
from kcluster.protocol.releases import Release, find_release, latest

if TYPE_CHECKING:
    from os import PathLike


class Topology(Struct, frozen=True):
    """A whole cluster.  Made by `load`, `parse` or `of`, which raise TopologyError."""

    brokers: tuple[BrokerSpec, ...]
    topics: dict[str, TopicSpec] = {}
    name: str = DEFAULT_NAME
    host: str = DEFAULT_HOST
    """The address to which all listeners bind."""
    profile: str = DEFAULT_PROFILE
    config: dict[str, str] = {}
    """Broker configs by Kafka's name, for all brokers."""
    features: dict[str, int] = {}
    """Levels of features by Kafka's name, if they differ from a new cluster's."""
    network: NetworkSpec = NetworkSpec()
    listeners: tuple[ListenerSpec, ...] = ()
    """The listeners that each broker has unless it names its own; a plaintext one if empty."""
    security: SecuritySpec = SecuritySpec()
    kafka_version: str | None = None
    """The release of Kafka that the brokers simulate, such as `2.8`; None: the newest known one."""
    era: tuple[str, ...] = ()
    """The eras of the brokers, such as `before KIP-101`; none: today."""
    controllers: int = 1
    """The number of controllers of a real Kafka; a simulated cluster has one."""
    write_back_ms: int = 0
    """The age at which the operating system writes the pages of the page cache to the disk; 0:
    never."""
    source: str = ""
    """The file that the topology came from, for messages."""
    places: dict[str, Place] = field(default_factory=dict)
    """The places of values in the file, by path, for problems that appear only later (a port in
    use)."""

    def __repr__(self) -> str:
        # Configs may have passwords.
        counts = f"{len(self.brokers)} brokers, {len(self.topics)} topics"
        return f"<topology {self.name}: {counts}, profile {self.profile}>"

    @classmethod
    def load(cls, path: str | PathLike[str], **overrides: object) -> Topology:
        """Read a YAML file.  `overrides` replace top-level keys: `profile="fast"`, `brokers=5`."""
        return _checked(tree_of_file(path, overrides))

    @classmethod
    def parse(
        cls, text: str | bytes, source: str = "topology.yaml", **overrides: object
    ) -> Topology:
        """Read YAML text; `source` stands for the file in messages."""
        return _checked(tree_of_text(text, source, overrides))

    @classmethod
    def of(
        cls,
        brokers: int | Sequence[Mapping[str, object] | BrokerSpec] = 3,
        topics: Mapping[str, Mapping[str, object] | TopicSpec] | None = None,
        **more: object,
    ) -> Topology:
        """Make a topology in Python, from the keys of a file: `Topology.of(brokers=3,
        topics={"orders": {"partitions": 6, "replication_factor": 3}}, profile="fast")`."""
        return _checked(tree_of_values({"brokers": brokers, "topics": topics, **more}))

    def broker_config(
        self, broker_id: int, *overrides: Mapping[str, str | bool | int | float]
    ) -> BrokerConfig:
        """The effective configs of one broker.  `overrides` are the weakest: defaults of the
        program, which the file overrides."""
        own = next(spec.config for spec in self.brokers if spec.id == broker_id)
        factors = replication_defaults(len(self.brokers))
        written = (simulated(self.config), simulated(own))
        return BrokerConfig.resolve(self.profile, factors, *overrides, *written)

    def config_texts(self, broker_id: int) -> dict[str, str]:
        """The configs of one broker that the topology sets, by Kafka's name."""
        own = next(spec.config for spec in self.brokers if spec.id == broker_id)
        return {**self.config, **own}

    def texts_without_effect(self, broker_id: int) -> dict[str, str]:
        """The configs of one broker, by Kafka's name, that a BrokerConfig does not have."""
        texts = self.config_texts(broker_id)
        return {name: text for name, text in texts.items() if name not in BROKER_CONFIGS}

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of the configs that the topology sets although they have no effect here, each
        once."""
        of_brokers = (self.config, *(spec.config for spec in self.brokers))
        of_topics = (spec.config for spec in self.topics.values())
        names = [
            name
            for configs, known in ((of_brokers, BROKER_CONFIGS), (of_topics, TOPIC_CONFIGS))
            for config in configs
            for name in config
            if not self._has_effect(name, known)
        ]
        return tuple(dict.fromkeys(names))

    def _has_effect(self, name: str, known: Mapping[str, ConfigDef]) -> bool:
        if name == "num.network.threads":
            return self.security.handshake_cpu_ms > 0
        return has_effect(name, known) or (self.has_tls and is_tls_config(name))

    def without_secrets(self) -> Topology:
        """The same topology without passwords, for everything that is written down or shown."""
        users = tuple(structs.replace(user, password="") for user in self.security.users)
        brokers = (
            structs.replace(one, config=without_passwords(one.config)) for one in self.brokers
        )
        return structs.replace(
            self,
            brokers=tuple(brokers),
            config=without_passwords(self.config),
            security=structs.replace(self.security, users=users),
        )

    @property
    def has_tls(self) -> bool:
        """Whether a listener of any broker encrypts."""
        listeners = (one for spec in self.brokers for one in spec.all_listeners)
        return any(listener.protocol.has_tls for listener in listeners)

    @property
    def has_sasl(self) -> bool:
        """Whether clients log in at a listener of any broker."""
        listeners = (one for spec in self.brokers for one in spec.all_listeners)
        return any(listener.protocol.has_sasl for listener in listeners)

    @property
    def makes_any_certificate(self) -> bool:
        """Whether certificates are made for any broker, so that clients need their CA."""
        return self.has_tls and any(self.makes_certificates(spec.id) for spec in self.brokers)

    def makes_certificates(self, broker_id: int) -> bool:
        """Whether a broker's certificates are made here, and not in a keystore of the user."""
        configs = self.texts_without_effect(broker_id)
        return self.security.makes_certificates and not any(
            name.endswith(KEYSTORES) for name in configs
        )

    def release_of(self, broker_id: int) -> Release:
        """The release that a broker simulates when it first starts."""
        own = next(spec.kafka_version for spec in self.brokers if spec.id == broker_id)
        name = own or self.kafka_version
        release = latest() if name is None else find_release(name)
        assert release is not None, "checked when the topology was read"
        return release

    def problem(self, path: str, text: str) -> Problem:
        """A problem with the value at `path`, with its place if it came from a file."""
        place = self.places.get(path, Place(0, 0))
        return Problem(self.source, place.line, place.column, path, text)


def check_ports(topology: Topology, probe: Callable[[str, int], str | None]) -> list[Problem]:
    """A problem for each port that is not available.  `probe(host, port)` tries to bind the port
    and returns the reason if that fails, else None.  It is passed in because the core opens no
    sockets."""
    problems = []
    for index, broker in enumerate(topology.brokers):
        for listener in broker.all_listeners:
            reason = probe(topology.host, listener.port) if listener.port else None
            if reason is None:
                continue
            if not topology.source:
                path, advice = f"port {listener.port}", "--base-port 0 takes free ones"
                problems.append(topology.problem(path, f"{reason}; {advice}"))
                continue
            own = f"listeners.{listener.name}.port" if broker.listeners else "port"
            path, advice = f"brokers[{index}].{own}", "set another or leave it out for a free one"
            for common in ("base_port", own):
                if path not in topology.places and common in topology.places:
                    path, advice = common, "set another, or leave it out for free ones"
            problems.append(topology.problem(path, f"{listener.port}: {reason}; {advice}"))
    return problems


def _checked(tree: SourceTree) -> Topology:
    topology, more = check_topology(tree.root, tree.source)
    reported = {problem.path for problem in tree.problems}
    problems = tree.problems + [problem for problem in more if problem.path not in reported]
    if problems or topology is None:
        raise TopologyError(problems)
    return topology


def check_topology(root: Node, source: str) -> tuple[Topology | None, list[Problem]]:
    """The topology, None if there is any problem; and the problems."""
    reading = TreeReader(source)
    if is_null(root):
        reading.wrong(root, "", "empty; the least that works is `brokers: 3`")
        return None, reading.problems
    if not isinstance(root, Map):
        reading.wrong(root, "", f"{kind(root)}; a topology is a mapping with the key `brokers`")
        return None, reading.problems
    values = read_fields(reading, root, "", TopologyKeys, "key of a topology")
    profile = values.get("profile") or DEFAULT_PROFILE
    host = values.get("host") or DEFAULT_HOST
    of_kafka = take_kafka_listeners(reading, values.get("config"), "config")
    config, cluster_config = read_broker_configs(reading, of_kafka.rest, "config", profile, {})
    of_security = read_security(reading, values.get("security"))
    eras = check_eras(reading, values.get("era"))
    config = {
        **configs_of(eras),
        **of_security.tls.configs,
        **of_security.authorization.configs,
        **config,
    }
    count = broker_count(values.get("brokers"))
    listeners = check_listeners(reading, values.get("listeners"), "listeners", count)
    if listeners and of_kafka.node is not None:
        reading.wrong(of_kafka.node, "config.listeners", TWICE)
    listeners = listeners or of_kafka.listeners
    features = check_features(reading, values.get("features"), config)
    features = {**features_of(eras), **features}
    brokers = check_brokers(reading, values, BrokerDefaults(profile, config, listeners))
    if host in EVERYWHERE:
        check_advertised(reading, root.entries["host"].value, host, brokers.specs)
    by_default = BrokerConfig.resolve(
        profile,
        replication_defaults(brokers.count),
        {} if cluster_config is None else simulated(config),
    )
    topics = check_topics(reading, values.get("topics"), brokers, by_default)
    network = check_network(reading, values.get("network"), brokers.known_ids)
    version = values.get("kafka_version")
    listening = values.get("listeners") or values.get("brokers")
    security = check_security(reading, of_security, listening, brokers.specs, config)
    if reading.problems:
        return None, reading.problems
    topology = Topology(
        brokers=brokers.specs,
        topics=topics,
        name=values.get("name") or DEFAULT_NAME,
        host=host,
        profile=profile,
        config=config,
        features=features,
        network=network,
        listeners=listeners,
        security=security,
        kafka_version=version,
        era=eras,
        controllers=values.get("controllers") or 1,
        write_back_ms=values.get("write_back_ms") or 0,
        source=source,
        places=reading.places,
    )
    if version is not None or any(spec.kafka_version is not None for spec in brokers.specs):
        releases = [topology.release_of(spec.id) for spec in brokers.specs]
        check_releases(reading, values, features, releases)
    return (None if reading.problems else topology), reading.problems
