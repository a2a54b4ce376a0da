"""A running cluster, as the handlers of control requests see it.

Owns: finding the handler of a request and checking the request's fields, changes and their answers.
Never: knows a verb by name (the verbs' own files do), talks over a socket (server.py does).
Kafka: none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from threading import Event
from typing import Any, Final, get_type_hints

import msgspec

from kcluster.cli.control.protocol import (
    ChangeResult,
    ControlError,
    ControlRequest,
    Handler,
    handler_of,
)
from kcluster.cli.control.server import ControlAnswer
from kcluster.contract import Note
from kcluster.events.brokers import BrokerRegistered
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.events.partitions import BecameFollower, BecameLeader
from kcluster.events.render import fold, folded_line, note_line, note_values
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry

VERBS_PACKAGE: Final = "kcluster.cli.verbs"

RECORDER_LIMIT_S: Final = 10.0

ECHOES: Final = (BecameLeader, BecameFollower, BrokerRegistered, LinkCut, LinkHealed)
"""Events that repeat, for each broker, what another event has said.  Only `events` shows them."""


class ControlSession:
    """One running cluster.  `stop` asks it to stop, and returns at once."""

    def __init__(self, cluster: Cluster, name: str, stop: Callable[[], None]) -> None:
        self.cluster = cluster
        self.name = name
        self.stop = stop
        past = cluster.events()
        self.origin_ms = past[0].note.at_ms if past else cluster.status().at_ms
        """Times in lines count from the cluster's first event."""
        self._last_sequence = past[-1].sequence if past else 0
        cluster.subscribe(self._on_event)
        self.is_recorded = Event()
        """Set once the cluster is recorded, or will not be."""

    def answer(self, request: Mapping[str, Any]) -> ControlAnswer:
        """Call the verb's handler; see server.Service."""
        handler = find_handler(str(request["verb"]))
        try:
            result = handler.handle(self, read_request(request, handler.request))
        except ClusterError as error:
            raise ControlError(str(error)) from error
        if isinstance(result, ChangeResult):
            result = result.to_values()
        return ControlAnswer(result, handler.stays_open)

    def event_values(self, event: Note) -> dict[str, Any]:
        """An event for JSON, with the line that shows it."""
        return {**note_values(event), "line": note_line(event, self.origin_ms)}

    def change(self, operation: Callable[[], object], broker_id: int | None = None) -> ChangeResult:
        """Change the cluster.  The answer has the events until it has settled and, if a broker is
        named, that broker's state."""
        since = self._last_sequence
        operation()
        notes = [entry.note for entry in self.cluster.events(since)]
        shown = [note for note in notes if not isinstance(note.event, ECHOES)]
        lines = [folded_line(entry, self.origin_ms) for entry in fold(shown)]
        broker = None
        if broker_id is not None:
            states = {status.id: status.state for status in self.cluster.status().brokers}
            broker = {"id": broker_id, "state": states[broker_id]}
            lines.append(f"broker {broker_id} is {states[broker_id]}")
        events = [note_values(note) for note in notes]
        return ChangeResult(changed=True, lines=lines, events=events, broker=broker)

    def wait_until_recorded(self) -> None:
        """The recorder is attached when the cluster serves clients already, a moment later."""
        self.is_recorded.wait(RECORDER_LIMIT_S)

    def _on_event(self, entry: NoteEntry) -> None:
        self._last_sequence = entry.sequence


def read_request(fields: Mapping[str, Any], kind: type[ControlRequest]) -> ControlRequest:
    """A request from the object on the wire; ControlError for missing and wrong values."""
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for name in kind.__annotations__:
        if name in fields:
            try:
                values[name] = msgspec.convert(fields[name], hints[name])
            except msgspec.ValidationError as error:
                raise ControlError(f"{kind.VERB}: {name}: {error}", 2) from error
        elif not hasattr(kind, name):
            raise ControlError(f"{kind.VERB}: {name} is missing", 2)
    return kind(**values)


def find_handler(verb: str) -> Handler:
    """The handler of a verb, whose module is imported with its first request."""
    handler = handler_of(verb)
    if handler is None and verb.isidentifier() and find_spec(f"{VERBS_PACKAGE}.{verb}") is not None:
        import_module(f"{VERBS_PACKAGE}.{verb}")
        handler = handler_of(verb)
    if handler is None:
        raise ControlError(f"{verb!r} is not a verb of this cluster", 2)
    return handler
