"""The addresses of brokers in responses: where they are, and their replacement.

Owns: the places of addresses, found in the schema table, so that no API can be forgotten.  Never:
opens a port (listeners.py), touches bytes.  Kafka: Metadata, FindCoordinator, DescribeCluster, and
the node endpoints of KIP-951 and KIP-932.

An address is a struct with a node's id, a host and a port.  DescribeQuorum lists the listeners of
controllers below the node's id; they stay as they are, because the proxy has none for controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, Protocol, cast

from kcluster.protocol.apis import APIS
from kcluster.protocol.codec.schema import StructSchema, message_schema
from kcluster.protocol.messages import Message

NODE_ID_FIELDS: Final = ("node_id", "broker_id")

Address = tuple[str, int]
"""(host, port)."""
AddressOf = Callable[[int, str, int], Address]
"""Returns the address for clients: (node id, host, port of the cluster) -> address."""
_PLAIN_END: Final = bytes(5)
Path = tuple[str, ...]
"""The fields that lead from a response to a struct; lists on the way count as one field."""


class _Addressed(Protocol):
    """A struct with an address."""

    host: str
    port: int


@cache
def address_paths(api_key: int, version: int) -> tuple[tuple[Path, str], ...]:
    """The structs with an address in a response of this version: their paths, and the name of the
    field with the node's id."""
    schema = message_schema(f"{APIS[api_key].name}Response")
    return tuple(_found(schema.top, version, ()))


def _found(struct: StructSchema, version: int, path: Path) -> Iterable[tuple[Path, str]]:
    present = [field for field in struct.fields if field.is_in(version)]
    names = {field.name for field in present}
    if "host" in names and "port" in names:
        for name in NODE_ID_FIELDS:
            if name in names:
                yield path, name
    for field in present:
        if field.struct is not None:
            yield from _found(field.struct, version, (*path, field.name))


def names_none(api_key: int, version: int, frame: memoryview) -> bool:
    """Whether the end of a response's frame shows, without decoding it, that it has no address, as
    that of an ack does."""
    return _ends_with_addresses(api_key, version) and frame[-len(_PLAIN_END) :] == _PLAIN_END


@cache
def _ends_with_addresses(api_key: int, version: int) -> bool:
    """Whether addresses are only in the tagged fields at the end, after an int32.

    Without tagged fields and with 0 in the int32, as in a throttle time, the last five bytes are
    zeros.  After an address they are not: its port is not 0, and only a null rack and an empty
    list of tags, one byte each, may follow the port.
    """
    top = message_schema(f"{APIS[api_key].name}Response").top
    tagged = {field.name for field in top.tagged(version)}
    paths = address_paths(api_key, version)
    last = top.untagged(version)[-1]
    return (
        bool(paths)
        and all(path[:1] and path[0] in tagged for path, _ in paths)
        and last.type == "int32"
        and not last.is_array
    )


def rewrite(api_key: int, version: int, body: Message, address_of: AddressOf) -> bool:
    """Replace the addresses in a response, in place; returns whether it has any.  An entry without
    a node, such as a FindCoordinator response with an error, stays as it is."""
    has_any = False
    for path, id_field in address_paths(api_key, version):
        for entry in _at(body, path):
            node_id = getattr(entry, id_field)
            if node_id >= 0 and entry.host:
                entry.host, entry.port = address_of(node_id, entry.host, entry.port)
                has_any = True
    return has_any


def _at(body: Message, path: Path) -> list[_Addressed]:
    """The structs at the end of a path."""
    found: list[object] = [body]
    for name in path:
        below = [getattr(each, name) for each in found]
        found = []
        for value in below:
            if isinstance(value, list):
                found += value
            elif value is not None:
                found.append(value)
    return cast(list[_Addressed], found)
