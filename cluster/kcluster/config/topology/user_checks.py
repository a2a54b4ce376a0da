"""Checks the users of a topology: from a tree (tree.py) to UserSpecs.

Owns: the valid names of users, and the check that they can log in.  Never: raises; shows a
password.
Kafka: kafka-storage format --add-scram, PlainLoginModule.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kcluster.config.files.fields import read_struct
from kcluster.config.files.problems import join
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, MapEntry, Node
from kcluster.config.topology.security_keys import UserKeys
from kcluster.config.topology.specs import UserSpec

_NO_LISTENER: Final = (
    "no listener lets users log in; add one such as"
    " `listeners: {CLIENT: {protocol: SASL_PLAINTEXT}}`"
)


def check_users(
    reading: TreeReader, node: Node | None, path: str, enabled: Collection[str]
) -> tuple[UserSpec, ...]:
    """The users of a mapping by name.  `enabled`: the mechanisms of all SASL listeners."""
    if node is None:
        return ()
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; users are a mapping like {{alice: alice-secret}}")
        return ()
    if node.entries and not enabled:
        reading.wrong(node, path, _NO_LISTENER)
    read = [
        _user(reading, name, entry, join(path, name), enabled)
        for name, entry in node.entries.items()
    ]
    return tuple(user for user in read if user is not None)


def _user(
    reading: TreeReader, name: str, entry: MapEntry, path: str, enabled: Collection[str]
) -> UserSpec | None:
    if not name or not name.isprintable():
        reading.wrong(entry, path, "a user's name is printable text")
        return None
    keys = read_struct(reading, entry.value, path, UserKeys, "key of a user", short="password")
    if keys is None:
        return None
    for mechanism in keys.mechanisms or ():
        if enabled and mechanism not in enabled:
            text = f"{mechanism} is not enabled: sasl.enabled.mechanisms has {', '.join(enabled)}"
            reading.wrong(entry, join(path, "mechanisms"), text)
    return UserSpec(name, keys.password, keys.mechanisms)
