"""Single values of a topology: hosts, the addresses that clients are given, releases.

Owns: the valid values of each, and the message for any other.  Never: knows a key (keys.py).
Kafka: KafkaConfig's validation of listeners and advertised listeners.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from kcluster.config.files.problems import show
from kcluster.config.topology.specs import split_address
from kcluster.protocol.releases import find_release, releases

EVERYWHERE: Final = ("0.0.0.0", "::")
"""The addresses to which a listener can bind, but clients cannot connect."""

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


def host_of(text: str) -> str:
    """A host; ValueError with the reason if the text is not one."""
    problem = host_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def advertised_of(text: str) -> str:
    """`host:port` or `host` to which clients can connect; ValueError with the reason if they
    cannot."""
    host, _ = split_address(text)
    problem = client_host_problem(host)
    if problem is not None:
        raise ValueError(problem)
    return text


def client_host_problem(host: str) -> str | None:
    """The reason why clients cannot connect to this host, or None."""
    if host in EVERYWHERE:
        return f"{show(host)}: clients cannot connect to it; name this machine as they see it"
    return host_problem(host)


def release_of(text: str) -> str:
    """A release of Kafka, by its name in the table; ValueError if there is none."""
    release = find_release(text)
    if release is None:
        raise ValueError(f"{show(text)}: {unknown_version(text)}")
    return release.name


def unknown_version(text: str) -> str:
    """Why a text is no known version, with the nearest one."""
    names = list(releases())
    parts = text.split(".")
    if 2 <= len(parts) <= 4 and all(part.isascii() and part.isdecimal() for part in parts):
        number = (int(parts[0][:9]), int(parts[1][:9]))
        near = min(
            releases().values(),
            key=lambda known: (abs(known.number[0] - number[0]), abs(known.number[1] - number[1])),
        )
        return f"no such version; the nearest is {near.name}"
    return f"not a version; it must be one from {names[0]} to {names[-1]}, like 2.8"


def host_problem(host: str) -> str | None:
    """The reason why this is not a host, or None."""
    if "//" in host:
        return f"{show(host)}: the name or address alone, without a protocol"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if ":" in host:
            return f"{show(host)}: the name or address alone; ports are the brokers'"
        if not _HOST_NAME.fullmatch(host) or len(host) > 253 or _all_digits(host):
            return f"{show(host)} is neither a host name nor an IP address"
    return None


def _all_digits(host: str) -> bool:
    return host.replace(".", "").isdigit()
