"""The parts of a topology, as checked values: brokers, topics, the network.

Owns: these types, the form of an address.  Never: checks anything else (broker_checks.py,
topic_checks.py, network_checks.py).
Kafka: server.properties of each broker, and the topics that an administrator would create.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import show
from kcluster.principals import DEFAULT_LISTENER, BrokerEndpoint, SecurityProtocol
from kcluster.security.acls import Acl
from kcluster.security.authorizer import STANDARD_AUTHORIZER

MAX_PORT: Final = 65_535
MAX_DIGITS: Final = 5
PORT_WANTED: Final = f"the port of an address for clients is from 1 to {MAX_PORT}"


class ListenerSpec(Struct, frozen=True):
    """One listener of a broker."""

    name: str = DEFAULT_LISTENER
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    port: int = 0
    """The port; 0: a free one, chosen when the broker starts."""
    advertised: str | None = None
    """The `host:port` or `host` for clients; None: the address at which the broker listens."""

    def endpoint(self, host: str, bound_port: int) -> BrokerEndpoint:
        """The address for clients of a broker that listens on `host` and `bound_port`."""
        if self.advertised is not None:
            host, port = split_address(self.advertised)
            bound_port = port or bound_port
        return BrokerEndpoint(host, bound_port, self.name, self.protocol)


class BrokerSpec(Struct, frozen=True):
    """One broker."""

    id: int
    port: int = 0
    """The port of its only listener; 0: a free one, chosen when the broker starts."""
    rack: str | None = None
    advertised: str | None = None
    """The `host:port` or `host` for clients of its only listener; None: the address at which it
    listens."""
    config: dict[str, str] = {}
    """The broker's own configs by Kafka's name; they override the cluster's."""
    kafka_version: str | None = None
    """The release of Kafka that the broker simulates, such as `2.8`; None: the cluster's."""

    listeners: tuple[ListenerSpec, ...] = ()
    """Its listeners, if the topology names them; otherwise it has one, a plaintext one."""

    def __repr__(self) -> str:
        return f"<broker {self.id} of a topology>"  # configs may have passwords

    @property
    def all_listeners(self) -> tuple[ListenerSpec, ...]:
        """Its listeners, at least one; clients are given the first one to start with."""
        return self.listeners or (ListenerSpec(port=self.port, advertised=self.advertised),)

    def endpoints(self, host: str, bound_ports: Sequence[int]) -> tuple[BrokerEndpoint, ...]:
        """The addresses for clients of a broker that listens on these ports of `host`, in the order
        of its listeners."""
        listeners = zip(self.all_listeners, bound_ports, strict=True)
        return tuple(listener.endpoint(host, port) for listener, port in listeners)


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


class UserSpec(Struct, frozen=True):
    """A user with a password, which is in no repr."""

    name: str
    password: str
    mechanisms: tuple[str, ...] | None = None
    """The SASL mechanisms by which it logs in; None: every enabled one that takes a password."""

    def __repr__(self) -> str:
        return f"<user {self.name}>"

    def logs_in_by(self, mechanism: str) -> bool:
        """Whether the user logs in by this mechanism, if it is enabled."""
        return self.mechanisms is None or mechanism in self.mechanisms


class AuthorizationSpec(Struct, frozen=True):
    """Who may do what in a topology.  `acls`: those of a new cluster."""

    is_enabled: bool = False
    super_users: tuple[str, ...] = ()
    acls: tuple[Acl, ...] = ()

    @property
    def configs(self) -> dict[str, str]:
        """The configs by Kafka's names."""
        configs = {"authorizer.class.name": STANDARD_AUTHORIZER} if self.is_enabled else {}
        if self.super_users:
            configs["super.users"] = ";".join(self.super_users)
        return configs


class SecuritySpec(Struct, frozen=True):
    """Who may come in, and who may do what, as far as Kafka has no config for it."""

    users: tuple[UserSpec, ...] = ()
    authorization: AuthorizationSpec = AuthorizationSpec()
    makes_certificates: bool = False
    """Whether certificates are made for brokers without a keystore, and for clients."""
    certificate_folder: str | None = None
    """The directory with the certificates for clients; None: a temporary one."""
    handshake_cpu_ms: float = 0
    """In virtual time: the time for which a TLS handshake keeps a broker's network thread busy."""


class NetworkSpec(Struct, frozen=True):
    """The times that messages between nodes take."""

    default_latency_ms: float = 0
    links: tuple[LinkSpec, ...] = ()

    @property
    def slowest_ms(self) -> float:
        """The latency of the slowest link."""
        return max([self.default_latency_ms, *(link.latency_ms for link in self.links)])


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
