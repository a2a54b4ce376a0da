"""Names and addresses of brokers and clients in memory, none of which exists on the user's machine.

Owns: these names and addresses, and the broker behind each address.  Never: resolves a name by the
network.  Kafka: DNS, /etc/hosts.

A client that slips past the connections in memory must not reach a real Kafka at 127.0.0.1, so
brokers are at 192.0.2.1 and above, addresses that RFC 5737 reserves for documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from msgspec import structs

from kcluster.config.topology.model import Topology
from kcluster.config.topology.values import EVERYWHERE
from kcluster.principals import BrokerEndpoint

BROKER_HOST: Final = "brokers.kcluster"
CLIENT_HOST: Final = "192.0.2.200"
_ADDRESS: Final = "192.0.2.{}"
_OF_THIS_MACHINE: Final = ("127.0.0.1", "::1", "localhost", *EVERYWHERE)


def in_memory(topology: Topology) -> Topology:
    """The topology with brokers at BROKER_HOST, unless its host is another machine."""
    if topology.host in _OF_THIS_MACHINE:
        return structs.replace(topology, host=BROKER_HOST)
    return topology


def hosts_of(host: str, endpoints: Mapping[int, tuple[BrokerEndpoint, ...]]) -> dict[str, str]:
    """The address of each name of a broker: of `host`, at which it listens, and of its advertised
    names."""
    names = dict.fromkeys((host, *(one.host for each in endpoints.values() for one in each)))
    return {
        name: _ADDRESS.format(number)
        for number, name in enumerate((name for name in names if not _is_address(name)), 1)
    }


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
