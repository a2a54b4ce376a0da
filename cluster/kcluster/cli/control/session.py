"""A running cluster, as the handlers of control requests see it.

Owns: finding the handler of a request and checking the request's fields, changes and their answers.
Never: knows a verb by name (the verbs' own files do), talks over a socket (server.py does).
Kafka: none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any, Final, Protocol, get_type_hints

import msgspec

from kcluster.cli.control.changes import LiveChange, Say, no_line
from kcluster.cli.control.protocol import (
    ChangeResult,
    ControlError,
    ControlRequest,
    Handler,
    handler_of,
)
from kcluster.cli.control.server import ControlAnswer
from kcluster.contract import Note
from kcluster.events.render import note_line, note_values
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError

VERBS_PACKAGE: Final = "kcluster.cli.verbs"

OWN_RUN_LIMIT_S: Final = 10.0


class OwnRun(Protocol):
    """A run directory that is kept current while the cluster runs."""

    @property
    def path(self) -> Path:
        """Where it is."""

    def finish(self) -> Path:
        """Write the whole run so far, with its verdict and its page; keep it current no more."""


class _OwnRun:
    """The run directory of `up --out`, which is made once the cluster's name is its own: a moment
    after the first verb can arrive.  `is_known`: set from then on, also if there is none."""

    def __init__(self) -> None:
        self.is_known = Event()
        self.run: OwnRun | None = None


class ControlSession:
    """One running cluster.  `stop` asks it to stop, and returns at once."""

    def __init__(self, cluster: Cluster, name: str, stop: Callable[[], None]) -> None:
        self.cluster = cluster
        self.name = name
        self.stop = stop
        past = cluster.events()
        self.origin_ms = past[0].note.at_ms if past else self.now_ms()
        """Times in lines count from the cluster's first event."""
        self._show: Say = no_line
        self._is_streamed = False
        self._own_run = _OwnRun()

    def answer(self, request: Mapping[str, Any], show: Say = no_line) -> ControlAnswer:
        """Call the verb's handler; see server.Service."""
        handler = find_handler(str(request["verb"]))
        session = copy(self)
        session._show = show
        session._is_streamed = bool(request.get("stream"))
        try:
            result = handler.handle(session, read_request(request, handler.request))
        except ClusterError as error:
            raise ControlError(str(error)) from error
        if isinstance(result, ChangeResult):
            result = result.to_values()
        return ControlAnswer(result, handler.stays_open)

    def now_ms(self) -> int:
        """The time of the cluster's clock."""
        return self.cluster.call(self.cluster.driver.now_ms)

    def event_values(self, event: Note) -> dict[str, Any]:
        """An event for JSON, with the line that shows it."""
        return {**note_values(event), "line": note_line(event, self.origin_ms)}

    def change(
        self,
        operation: Callable[[Say], object],
        brokers: tuple[int, ...] = (),
        hints: Callable[[], Iterable[str]] = tuple,
        remark: str = "",
        left_alone: Iterable[str] = (),
    ) -> ChangeResult:
        """Change the cluster by `operation(say)`; what happens is shown at once.  The answer has
        the events until it returned, unless their lines were sent, the state of these brokers with
        the remark, and the hints.
        `left_alone`: shown first; if it names all brokers that were meant, there is nothing to do.
        """
        change = LiveChange(self.cluster, self.origin_ms, self._show)
        for line in left_alone:
            change.say(line)
        if change.lines and not brokers:
            return ChangeResult(self.name, changed=False, lines=change.lines, events=[])
        change.carry_out(operation)
        states = {status.id: status.state for status in self.cluster.brokers()}
        found = [{"id": broker, "state": states[broker]} for broker in brokers if broker in states]
        for broker in found:
            change.say(f"broker {broker['id']} is {broker['state']}{remark}")
        for line in hints():
            change.say(line)
        if self.cluster.driver.is_clock_paused:
            change.say("the clock is paused: the rest follows after kcluster clock resume")
        return ChangeResult(
            cluster=self.name,
            changed=True,
            lines=change.lines,
            events=[] if self._is_streamed else [note_values(note) for note in change.notes],
            broker=found[0] if len(found) == 1 else None,
            brokers=found if len(found) > 1 else None,
        )

    def unchanged(self, line: str) -> ChangeResult:
        """The answer where there is nothing to do."""
        return ChangeResult(cluster=self.name, changed=False, lines=[line], events=[])

    def set_own_run(self, own_run: OwnRun | None) -> None:
        """`own_run`: that of `up --out`, if there is one."""
        self._own_run.run = own_run
        self._own_run.is_known.set()

    @property
    def own_run(self) -> OwnRun | None:
        """The run directory of `up --out`, if there is one; waits until that is known."""
        self._own_run.is_known.wait(OWN_RUN_LIMIT_S)
        return self._own_run.run


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
