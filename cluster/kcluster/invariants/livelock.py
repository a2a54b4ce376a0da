"""The guard of virtual time: the number of nodes' steps within one millisecond.

Owns: the count, its limit, the description of the last steps.  Never: ends a run (the error does).
Kafka: no counterpart.

Over links without latency a client may send a request, be refused, and send it again, all at one
moment.  Real clients cannot: every request takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.contract import Input, Request
from kcluster.events.render import api_name
from kcluster.runtime.livelock import LivelockError

LEAST_STEPS: Final = 50_000
STEPS_EACH: Final = 1_000
"""The number of steps that each client and node may take; joining a group, the busiest known
moment, takes about ten."""
LOOKED_AT: Final = 1_000
"""The number of last steps that the error describes."""
SHOWN: Final = 4


class StepsAtOnce:
    """The steps of the present millisecond.  `limit`: their allowed number; `client_name`: the name
    of a client by the client id in its requests."""

    def __init__(self, limit: int, client_name: Callable[[str | None], str]) -> None:
        self.limit = limit
        self._client_name = client_name
        self._now_ms = -1
        self._steps = 0
        self._last: dict[tuple[int, str, str], int] = {}

    def count(self, now_ms: int, node_id: int, event: Input) -> None:
        """Count a node's step.  Raises LivelockError if there are too many."""
        if now_ms != self._now_ms:
            self._now_ms, self._steps = now_ms, 0
            self._last.clear()
        self._steps += 1
        if self._steps > self.limit - LOOKED_AT + 1:
            key = (node_id, *self._kind_of(event))
            self._last[key] = self._last.get(key, 0) + 1
            if self._steps > self.limit:
                raise LivelockError(now_ms, self._text())

    def _kind_of(self, event: Input) -> tuple[str, str]:
        """A step's input, for counting: (its kind, the client that it comes from)."""
        if isinstance(event, Request):
            return api_name(event.api_key), self._client_name(event.client_id)
        body = getattr(event, "body", None)
        return type(event if body is None else body).__name__, ""

    def _text(self) -> str:
        by_count = sorted(self._last.items(), key=lambda entry: -entry[1])
        # Clients' requests cause all other steps, if there are any.
        busiest = [entry for entry in by_count if entry[0][2]] or by_count
        shown = ", ".join(
            f"node {node} got {what}{client and f' of {client}'} {count} times"
            for (node, what, client), count in busiest[:SHOWN]
        )
        return f"{self._steps:,} steps in one millisecond; of the last {LOOKED_AT:,}: {shown}"
