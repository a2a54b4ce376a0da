"""The endpoints of a broker in its registration.

Owns: their form in the request.  Never: opens a port (drivers/ do).
Kafka: BrokerRegistrationRequest.Listener.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.principals import BrokerEndpoint, SecurityProtocol
from kcluster.protocol import messages as m


def registered(endpoints: Sequence[BrokerEndpoint]) -> list[m.BrokerRegistrationRequest.Listener]:
    """The form of these addresses in a registration."""
    listener = m.BrokerRegistrationRequest.Listener
    return [listener(one.listener, one.host, one.port, one.protocol) for one in endpoints]


def endpoints_of(request: m.BrokerRegistrationRequest) -> tuple[BrokerEndpoint, ...]:
    """The addresses in a registration."""
    return tuple(
        BrokerEndpoint(one.host, one.port, one.name, SecurityProtocol(one.security_protocol))
        for one in request.listeners
    )
