"""Builds the nodes, disks and links of a cluster from a topology.

Owns: the values from which each node is built, its stream of chance among them.  Never: opens a
port, reads a clock.  Kafka: kafka-storage format, and the start scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field, structs

from kcluster.broker.node import BrokerNode
from kcluster.chance import Chance
from kcluster.config.eras import Era, era_of
from kcluster.config.kafka.broker import BrokerConfig, replication_defaults
from kcluster.config.kafka.tls import TlsTexts
from kcluster.config.topology.client_access import access_of
from kcluster.config.topology.config_checks import simulated
from kcluster.config.topology.model import Topology
from kcluster.config.topology.sasl import (
    enabled_mechanisms,
    sasl_settings,
    scram_users,
    token_settings,
)
from kcluster.config.topology.specs import BrokerSpec, UserSpec
from kcluster.contract import CONTROLLER_ID, Node
from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.node import ControllerNode
from kcluster.network.fabric import Fabric
from kcluster.partition.disk import Disk
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.features import METADATA_VERSION, metadata_version_of
from kcluster.protocol.releases import Release
from kcluster.protocol.uuids import uuid_text
from kcluster.runtime.process import Process
from kcluster.security.certificates import BrokerCertificate
from kcluster.security.changed_passwords import ChangedPasswords
from kcluster.security.client_access import OPEN, ClientAccess
from kcluster.security.sasl.bearer_tokens import BearerTokens
from kcluster.security.tokens import TokenSettings

if TYPE_CHECKING:
    from kcluster.security.sasl.settings import SaslSettings

TLS_1_3: Final = "TLSv1.3"


class Plan(Struct):
    """Everything a driver needs to run a cluster.  `processes`: the controller first, then brokers
    by id; none is up yet."""

    topology: Topology
    seed: int
    chance: Chance
    cluster_id: str
    fabric: Fabric
    processes: tuple[Process, ...]
    disks: dict[int, Disk]
    rngs: dict[int, Random]
    endpoints: dict[int, tuple[BrokerEndpoint, ...]]
    """The addresses that each broker advertises from its next start on, by broker id."""
    releases: dict[int, Release]
    """The Kafka release of each broker from its next start on, by broker id."""
    certificates: dict[int, BrokerCertificate] = {}
    """The certificates that have replaced those of brokers, by broker id."""
    shown_until_ms: dict[tuple[int, str], int] = {}
    """The end of each listener's certificate from a keystore, in ms since 1970, by broker id and
    listener; known once the keystore has been read."""
    passwords: ChangedPasswords = field(default_factory=ChangedPasswords)
    """The passwords that actions have given to users."""
    bearer_tokens: BearerTokens = field(default_factory=BearerTokens)
    """The tokens by which clients have logged in, of all brokers."""

    def listeners_of(self, broker_id: int) -> list[str]:
        """The names of a broker's listeners."""
        return [endpoint.listener for endpoint in self.endpoints[broker_id]]

    def brokers_with(self, listener: str) -> tuple[int, ...]:
        """The ids of the brokers that have a listener."""
        return tuple(each for each in self.endpoints if listener in self.listeners_of(each))

    @property
    def default_access(self) -> ClientAccess:
        """How one of the project's own clients comes in that names neither a user nor a listener;
        ValueError if it cannot."""
        topology = self.topology
        has_listeners = topology.listeners or any(spec.listeners for spec in topology.brokers)
        return access_of(topology) if has_listeners else OPEN

    @property
    def handshake_us(self) -> int:
        """In virtual time: the time for which a TLS handshake keeps a network thread busy."""
        return round(self.topology.security.handshake_cpu_ms * 1000)

    def tls_round_trips(self, access: ClientAccess) -> int:
        """The round trips of a TLS handshake: 1 by TLS 1.3, 2 by TLS 1.2."""
        static = self.topology.config_texts(self.brokers_with(access.listener)[0])
        texts = TlsTexts(access.listener, access.protocol, static, {})
        return 1 if TLS_1_3 in texts.items("ssl.enabled.protocols") else 2

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        """The host and port of each broker's first listener, by broker id."""
        return {
            broker_id: (first.host, first.port) for broker_id, (first, *_) in self.endpoints.items()
        }


def build(topology: Topology, seed: int, ports: Mapping[int, Sequence[int]]) -> Plan:
    """Build a cluster.  `ports`: those of each broker's listeners, by broker id."""
    chance = Chance(seed)
    cluster_id = _cluster_id(chance.stream("cluster id"))
    specs = sorted(topology.brokers, key=lambda spec: spec.id)
    node_ids = (CONTROLLER_ID, *(spec.id for spec in specs))
    rngs = {node_id: chance.stream(f"{node_id}") for node_id in node_ids}
    disks = {spec.id: Disk(topology.write_back_ms) for spec in specs}
    endpoints = {spec.id: spec.endpoints(topology.host, ports[spec.id]) for spec in specs}
    releases = {spec.id: topology.release_of(spec.id) for spec in specs}
    bearer_tokens = BearerTokens()
    processes = [Process(CONTROLLER_ID, _controller_builder(topology, rngs, cluster_id, releases))]
    for spec in specs:
        config = topology.broker_config(spec.id)
        unused = topology.texts_without_effect(spec.id)
        builder = _broker_builder(
            spec,
            config,
            unused,
            disks[spec.id],
            endpoints,
            rngs[spec.id],
            cluster_id,
            releases,
            _sasl_settings(topology, spec, bearer_tokens),
            token_settings(topology.config_texts(spec.id)),
            era_of(topology.era),
        )
        processes.append(Process(spec.id, builder, disks[spec.id]))
    fabric = _fabric(topology, node_ids, chance)
    return Plan(
        topology,
        seed,
        chance,
        cluster_id,
        fabric,
        tuple(processes),
        disks,
        rngs,
        endpoints,
        releases,
        bearer_tokens=bearer_tokens,
    )


def add_broker(plan: Plan, spec: BrokerSpec, ports: Sequence[int]) -> Process:
    """Add a broker with an empty disk; its process is not up yet."""
    topology = plan.topology = structs.replace(
        plan.topology, brokers=(*plan.topology.brokers, spec)
    )
    plan.rngs[spec.id] = plan.chance.stream(f"{spec.id}")
    plan.disks[spec.id] = Disk(topology.write_back_ms)
    plan.endpoints[spec.id] = spec.endpoints(topology.host, ports)
    plan.releases[spec.id] = topology.release_of(spec.id)
    config = topology.broker_config(spec.id)
    builder = _broker_builder(
        spec,
        config,
        topology.texts_without_effect(spec.id),
        plan.disks[spec.id],
        plan.endpoints,
        plan.rngs[spec.id],
        plan.cluster_id,
        plan.releases,
        _sasl_settings(topology, spec, plan.bearer_tokens),
        token_settings(topology.config_texts(spec.id)),
        era_of(topology.era),
    )
    process = Process(spec.id, builder, plan.disks[spec.id])
    plan.processes = (*plan.processes, process)
    plan.fabric.node_ids = tuple(sorted((*plan.fabric.node_ids, spec.id)))
    return process


def _controller_builder(
    topology: Topology, rngs: Mapping[int, Random], cluster_id: str, releases: Mapping[int, Release]
) -> Callable[[], Node]:
    """Builds a controller of the newest release that a broker has when the controller starts."""
    config = BrokerConfig.resolve(
        topology.profile, replication_defaults(len(topology.brokers)), simulated(topology.config)
    )
    expected = tuple(sorted(spec.id for spec in topology.brokers))
    topics = list(topology.topics.values())
    log = MetadataLog()
    rng = rngs[CONTROLLER_ID]
    users = _scram_users(topology)
    features = {METADATA_VERSION: metadata_version_of(releases.values()), **topology.features}
    return lambda: ControllerNode(
        config,
        rng,
        cluster_id,
        topics,
        expected,
        log,
        features,
        max(releases.values(), key=lambda release: release.number),
        users,
        topology.security.authorization.acls,
        token_settings(topology.config),
    )


def _broker_builder(
    spec: BrokerSpec,
    config: BrokerConfig,
    unused_configs: Mapping[str, str],
    disk: Disk,
    endpoints: Mapping[int, tuple[BrokerEndpoint, ...]],
    rng: Random,
    cluster_id: str,
    releases: Mapping[int, Release],
    sasl: Mapping[str, SaslSettings],
    tokens: TokenSettings | None,
    era: Era,
) -> Callable[[], Node]:
    return lambda: BrokerNode(
        spec.id,
        config,
        disk,
        endpoints[spec.id],
        spec.rack,
        rng,
        cluster_id,
        releases[spec.id],
        unused_configs,
        sasl,
        tokens,
        era,
    )


def _sasl_settings(
    topology: Topology, spec: BrokerSpec, tokens: BearerTokens
) -> Mapping[str, SaslSettings]:
    """The settings of a broker's SASL listeners, by name."""
    texts = topology.config_texts(spec.id)
    found = sasl_settings(spec.all_listeners, texts, topology.security.users)
    return {
        name: structs.replace(each, validate_token=tokens.checked(each.validate_token))
        for name, each in found.items()
    }


def _scram_users(topology: Topology) -> list[tuple[UserSpec, str]]:
    """The users for whom a new cluster has SCRAM credentials, with their mechanisms."""
    enabled = {
        mechanism
        for spec in topology.brokers
        for mechanism in enabled_mechanisms(spec.all_listeners, topology.config_texts(spec.id))
    }
    return scram_users(topology.security.users, enabled)


def _fabric(topology: Topology, node_ids: tuple[int, ...], chance: Chance) -> Fabric:
    latency_ms = topology.network.default_latency_ms
    fabric = Fabric(node_ids, latency_ms, lambda link: chance.stream(f"link {link}"))
    for link in topology.network.links:
        fabric.set_latency(*link.between, link.latency_ms)
    return fabric


def _cluster_id(rng: Random) -> str:
    """A cluster id: 22 characters, Kafka's form of a random UUID."""
    return uuid_text(rng.randbytes(16))
