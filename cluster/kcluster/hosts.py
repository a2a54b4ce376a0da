"""Hosts: whether one is this machine.

Owns: this question.  Never: resolves a name.  Kafka: no counterpart.
"""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, which no other machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
