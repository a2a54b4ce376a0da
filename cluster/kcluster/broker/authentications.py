"""The authentications of a broker's clients: their counts, and events for failures.

Owns: Kafka's counts by listener, and the events of failures (equal ones within a second are one
event).  Never: decides whether a client may come in.
Kafka: the sensors of Selector (socket-server-metrics).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from msgspec import Struct, structs

from kcluster.broker.ports import Outbox
from kcluster.events.security import AuthenticationFailed, TlsHandshakeFailed
from kcluster.timers import Timers

FOLD_MS: Final = 1_000
"""The time for which equal failures are counted before the next event."""
MAX_FOLDED: Final = 1_000
"""The maximum number of different failures that are counted at a time; further ones are not
reported."""

_Failed = AuthenticationFailed | TlsHandshakeFailed


class AuthenticationCounts(Struct):
    """The authentications at one listener since the broker started, as Kafka counts them: a TLS
    handshake is one where the listener has no SASL."""

    successful: int = 0
    successful_no_reauth: int = 0
    """Successful ones of clients that cannot log in again on their connection (before KIP-368)."""
    failed: int = 0
    successful_reauthentication: int = 0
    failed_reauthentication: int = 0
    expired_connections_killed: int = 0


@final
class Authentications:
    """The authentications at the listeners of a broker since it started."""

    def __init__(self, timers: Timers, outbox: Outbox) -> None:
        self.by_listener: dict[str, AuthenticationCounts] = {}
        self._timers = timers
        self._outbox = outbox
        self._folded: dict[_Failed, int] = {}
        """How often each failure has happened since its last event."""

    def at(self, listener: str) -> AuthenticationCounts:
        """The counts of a listener."""
        return self.by_listener.setdefault(listener, AuthenticationCounts())

    def secured(self, listener: str) -> None:
        """Count the TLS handshake of a client that need not log in."""
        counts = self.at(listener)
        counts.successful += 1
        counts.successful_no_reauth += 1

    def report(self, failed: _Failed, now_ms: int) -> None:
        """Note a failure, unless an equal one was noted a moment ago."""
        if failed in self._folded:
            self._folded[failed] += 1
        elif len(self._folded) < MAX_FOLDED:
            self._outbox.note(failed)
            self._folded[failed] = 0
            self._timers.set(("failed", failed), now_ms + FOLD_MS, self._unfold(failed))

    def _unfold(self, failed: _Failed) -> Callable[[int], None]:
        """Note the failures of the past second; count on if there were any."""

        def unfold(now_ms: int) -> None:
            times = self._folded.pop(failed)
            if times:
                self._outbox.note(structs.replace(failed, times=times))
                self._folded[failed] = 0
                self._timers.set(("failed", failed), now_ms + FOLD_MS, unfold)

        return unfold
