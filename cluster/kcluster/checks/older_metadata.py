"""The brokers that refused a client by older metadata, before a change of rights or passwords had
reached them.

Owns: the order of changes, and which broker had applied which.  Never: judges a refusal.
Kafka: no counterpart; each broker decides by its own image (AclPublisher, ScramPublisher).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.contract import Note, NoteId
from kcluster.events.security import (
    AclsApplied,
    AclsChanged,
    AuthenticationFailed,
    AuthorizationDenied,
    CredentialsApplied,
)
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.evidence.client_names import client_name

_ACLS: Final = "acls"
_USERS: Final = "users"

LateBrokers = Mapping[tuple[str, bool], tuple[int, ...]]
"""(client, whether a login was refused, otherwise a right) -> the brokers that did not know a
change yet."""

NONE_LATE: Final[LateBrokers] = {}


def late_brokers(notes: Iterable[Note], simulated: Mapping[int, str]) -> LateBrokers:
    """The brokers that refused clients while they did not know a change.  `notes`: in order of
    time; `simulated`: the names of simulated clients."""
    changes: dict[str, dict[NoteId, int]] = {_ACLS: {}, _USERS: {}}
    applied: dict[tuple[str, int], int] = {}
    found: dict[tuple[str, bool], dict[int, None]] = {}
    for note in notes:
        match note.event:
            case AclsChanged():
                changes[_ACLS][note.note_id] = len(changes[_ACLS])
            case ConfigChanged(resource_type=ResourceType.USER):
                changes[_USERS][note.note_id] = len(changes[_USERS])
            case AclsApplied(broker=broker) | CredentialsApplied(broker=broker) as event:
                kind = _ACLS if isinstance(event, AclsApplied) else _USERS
                if note.cause in changes[kind]:
                    # Metadata is applied in order, so this covers all changes before it.
                    applied[kind, broker] = changes[kind][note.cause]
            case AuthenticationFailed(broker=broker, client_id=client_id):
                if applied.get((_USERS, broker), -1) < len(changes[_USERS]) - 1:
                    found.setdefault((client_name(client_id, simulated), True), {})[broker] = None
            case AuthorizationDenied(node=node, client_id=client_id):
                if applied.get((_ACLS, node), -1) < len(changes[_ACLS]) - 1:
                    found.setdefault((client_name(client_id, simulated), False), {})[node] = None
            case _:
                pass
    return {key: tuple(sorted(brokers)) for key, brokers in found.items()}
