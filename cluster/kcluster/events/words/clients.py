"""Words for events of clients.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcluster.events.clients import (
    ClientDown,
    ClientPaused,
    ClientResumed,
    ClientStarted,
    ClientThrottled,
    TelemetryPushed,
)
from kcluster.events.words.base import text_of


@text_of.register
def _(event: ClientThrottled) -> str:
    return (
        f"{entity_text(event.entity)}: {event.quota} {event.rate:.6g} exceeds {event.limit:.6g};"
        f" throttled for {event.throttle_ms} ms"
    )


def entity_text(entity: Iterable[tuple[str, str | None]]) -> str:
    """The entity that a quota limits: `user alice, client-id (default)`."""
    pairs = list(entity)
    shown = (f"{kind} {'(default)' if name is None else name}" for kind, name in reversed(pairs))
    return ", ".join(shown) or "nobody"


@text_of.register
def _(event: TelemetryPushed) -> str:
    return (
        f"client {event.subject} pushed {event.size_bytes} bytes of metrics"
        f" (push {event.pushes}, {event.total_bytes} bytes in total)"
    )


@text_of.register
def _(event: ClientDown) -> str:
    return "killed: its connections are closed" if event.is_killed else "is being closed"


@text_of.register
def _(event: ClientStarted) -> str:
    return f"started again, life {event.life}"


@text_of.register
def _(_event: ClientPaused) -> str:
    return "paused"


@text_of.register
def _(_event: ClientResumed) -> str:
    return "resumed"
