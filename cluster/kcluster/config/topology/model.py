"""What a cluster is made of, as checked values.

Owns: Topology and its parts.  Never: checks anything (checks.py) or reads a file: `load`, `parse`
and `of` are loader.py's, offered here for users.
Kafka: server.properties of each broker, and the topics that an administrator would create.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kcluster.config.files.problems import Place, Problem, TopologyError
from kcluster.config.kafka.broker import BrokerConfig, replication_defaults
from kcluster.protocol.releases import Release, find_release, latest

if TYPE_CHECKING:
    from os import PathLike

__all__ = [
    "BrokerSpec",
    "LinkSpec",
    "NetworkSpec",
    "Place",
    "Problem",
    "TopicSpec",
    "Topology",
    "TopologyError",
]


class BrokerSpec(Struct, frozen=True):
    """One broker."""

    id: int
    port: int = 0
    """0: a free one, chosen when it starts."""
    rack: str | None = None
    advertised: str | None = None
    """`host:port` or `host` that clients are given; None: where the broker listens."""
    config: dict[str, str] = {}
    """Broker configs by Kafka's name, over the cluster's."""
    kafka_version: str | None = None
    """The release as which it serves clients, `2.8`; None: the cluster's."""

    def advertised_address(self, host: str, bound_port: int) -> tuple[str, int]:
        """(host, port) for clients, when the broker listens on `host` and `bound_port`."""
        if self.advertised is None:
            return host, bound_port
        named_host, named_port = split_address(self.advertised)
        return named_host, named_port or bound_port


class TopicSpec(Struct, frozen=True):
    """One topic to create when the cluster first comes up."""

    name: str
    partitions: int = 1
    replication_factor: int = -1
    """-1: default.replication.factor says it, as in CreateTopics.  A checked topology has none."""
    assignment: tuple[tuple[int, ...], ...] | None = None
    """Replicas by partition, the preferred leader first; None: placed as Kafka does it."""
    config: dict[str, str] = {}
    """Topic configs by Kafka's name."""


class LinkSpec(Struct, frozen=True):
    """The link of two brokers, both ways."""

    between: tuple[int, int]
    latency_ms: float
    """One way."""


class NetworkSpec(Struct, frozen=True):
    """How long messages between nodes take."""

    default_latency_ms: float = 0
    links: tuple[LinkSpec, ...] = ()


class Topology(Struct, frozen=True):
    """A whole cluster.  Made by `load`, `parse` or `of`, which raise TopologyError."""

    brokers: tuple[BrokerSpec, ...]
    topics: dict[str, TopicSpec] = {}
    name: str = "kcluster"
    host: str = "127.0.0.1"
    """Where all listeners bind."""
    profile: str = "kafka"
    config: dict[str, str] = {}
    """Broker configs by Kafka's name, for all brokers."""
    network: NetworkSpec = NetworkSpec()
    kafka_version: str | None = None
    """The release as which brokers serve clients, `2.8`; None: the newest that is known."""
    source: str = ""
    """The file that it came from, for messages."""
    places: dict[str, Place] = field(default_factory=dict)
    """Of values by path, for problems that show only later (a port in use)."""

    @classmethod
    def load(cls, path: str | PathLike[str], **overrides: Any) -> Topology:
        """Read a YAML file.  `overrides` replace top-level keys: `profile="fast"`, `brokers=5`."""
        from kcluster.config.topology.loader import load

        return load(path, overrides)

    @classmethod
    def parse(cls, text: str | bytes, source: str = "topology.yaml", **overrides: Any) -> Topology:
        """Read YAML text; `source` stands in messages for the file."""
        from kcluster.config.topology.loader import parse

        return parse(text, source, overrides)

    @classmethod
    def of(
        cls,
        brokers: int | Sequence[Mapping[str, Any] | BrokerSpec] = 3,
        topics: Mapping[str, Mapping[str, Any] | TopicSpec] | None = None,
        **more: Any,
    ) -> Topology:
        """Make one in Python, from the same keys that a file has: `Topology.of(brokers=3,
        topics={"orders": {"partitions": 6, "replication_factor": 3}}, profile="fast")`."""
        from kcluster.config.topology.loader import from_values

        return from_values({"brokers": brokers, "topics": topics, **more})

    def broker_config(
        self, broker_id: int, *overrides: Mapping[str, str | bool | int | float]
    ) -> BrokerConfig:
        """What the configs of one broker come to.  `overrides` are the weakest: defaults of the
        program, which the file overrides."""
        own = next(spec.config for spec in self.brokers if spec.id == broker_id)
        factors = replication_defaults(len(self.brokers))
        return BrokerConfig.resolve(self.profile, factors, *overrides, self.config, own)

    def release_of(self, broker_id: int) -> Release:
        """The release as which a broker first starts."""
        own = next(spec.kafka_version for spec in self.brokers if spec.id == broker_id)
        name = own or self.kafka_version
        release = latest() if name is None else find_release(name)
        assert release is not None, "checked when the topology was read"
        return release

    def problem(self, path: str, text: str) -> Problem:
        """A problem with the value at `path`, with its place if it came from a file."""
        place = self.places.get(path, Place(0, 0))
        return Problem(self.source, place.line, place.column, path, text)


def split_address(address: str) -> tuple[str, int]:
    """`host:port` or `host` -> (host, port or 0); `[::1]:9092` for IPv6.  ValueError if neither."""
    host, port = address, ""
    if address.startswith("["):
        host, bracket, port = address[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError(f"not an address: {address}")
        port = port[1:]
    elif ":" in address:
        host, _, port = address.partition(":")
        if not port:
            raise ValueError(f"not an address: {address}")
    if not host:
        raise ValueError(f"not an address: {address}")
    if not port:
        return host, 0
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65_535):
        raise ValueError(f"not an address: {address}")
    return host, int(port)
