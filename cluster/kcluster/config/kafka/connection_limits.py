"""Parses max.connections.per.ip.overrides, and finds the address that a name stands for.

Owns: their syntax.  Never: counts connections (kcluster.broker.quotas.connection_quotas), asks a
name service.  Kafka: KafkaConfig.getMap, Csv.parseCsvMap, Utils.validHostPattern, InetAddress.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

OVERRIDES: Final = "max.connections.per.ip.overrides"

_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_MAX_INT: Final = 2**31 - 1
_LOOPBACK: Final = "127.0.0.1"


def address_of(name: str) -> str:
    """The address of a host, as sockets report it; a name that is no address stays as it is.

    DIFFERS: Kafka resolves other names by DNS; here they match no address.
    """
    if name.lower() == "localhost":
        return _LOOPBACK
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


@lru_cache(64)
def parse_overrides(text: str) -> Mapping[str, int] | str:
    """The limits in `host:number`, separated by commas, by address (for each, the last one counts);
    or the problem of the text.  A negative limit admits no connection, as in Kafka."""
    limits: dict[str, int] = {}
    items = text.rstrip(", \t").split(",") if text.strip() else []
    for item in items:
        host, colon, number = (part.strip() for part in item.rpartition(":"))
        if not colon:
            return f"{OVERRIDES}: {item} is not host:number"
        if not _NUMBER.fullmatch(number) or not -_MAX_INT - 1 <= int(number) <= _MAX_INT:
            return f"{OVERRIDES}: {number} is not a number of connections"
        if not _HOST.fullmatch(host):
            return f"{OVERRIDES}: {host} is not a host"
        limits[address_of(host)] = int(number)
    return limits
