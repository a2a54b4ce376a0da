"""The parts of a topology, as checked values: brokers, topics, the network.

Owns: these types, the form of an address.  Never: checks anything else (broker_checks.py,
topic_checks.py, network_checks.py).
Kafka: server.properties of each broker, and the topics that an administrator would create.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import show

MAX_PORT: Final = 65_535
MAX_DIGITS: Final = 5
PORT_WANTED: Final = f"the port of an address for clients is from 1 to {MAX_PORT}"


class BrokerSpec(Struct, frozen=True):
    """One broker."""

    id: int
    port: int = 0
    """The port; 0: a free one, chosen when the broker starts."""
    rack: str | None = None
    advertised: str | None = None
    """The `host:port` or `host` for clients; None: the address at which the broker listens."""
    config: dict[str, str] = {}
    """The broker's own configs by Kafka's name; they override the cluster's."""
    kafka_version: str | None = None
    """The release as which the broker serves clients, such as `2.8`; None: the cluster's."""

    def advertised_address(self, host: str, bound_port: int) -> tuple[str, int]:
        """(host, port) for clients, of a broker that listens on `host` and `bound_port`."""
        if self.advertised is None:
            return host, bound_port
        named_host, named_port = split_address(self.advertised)
        return named_host, named_port or bound_port


class TopicSpec(Struct, frozen=True):
    """One topic to create when the cluster first comes up."""

    name: str
    partitions: int = 1
    replication_factor: int = -1
    """The number of replicas; -1: default.replication.factor decides, as in CreateTopics.  No topic
    of a checked topology has -1."""
    assignment: tuple[tuple[int, ...], ...] | None = None
    """The replicas by partition, the preferred leader first; None: placed as Kafka does."""
    config: dict[str, str] = {}
    """Topic configs by Kafka's name."""


class LinkSpec(Struct, frozen=True):
    """The link between two brokers, in both directions."""

    between: tuple[int, int]
    latency_ms: float
    """The latency in one direction."""


class NetworkSpec(Struct, frozen=True):
    """The times that messages between nodes take."""

    default_latency_ms: float = 0
    links: tuple[LinkSpec, ...] = ()


def split_address(address: str) -> tuple[str, int]:
    """(host, port or 0) of `host:port` or `host`; `[::1]:9092` for IPv6.  ValueError, with the
    reason, for any other text."""
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        is_address = bool(bracket) and colon in ("", ":")
    else:
        host, colon, port = address.partition(":")
        is_address = True
    is_number = port.isascii() and port.removeprefix("-").isdigit()
    if not is_address or not host or bool(colon) != is_number:
        raise ValueError(f'{show(address)} is not an address like "localhost:9092"')
    if colon and (len(port) > MAX_DIGITS or not 1 <= int(port) <= MAX_PORT):
        raise ValueError(f"{show(address)}: {PORT_WANTED}")
    return host, int(port or 0)
