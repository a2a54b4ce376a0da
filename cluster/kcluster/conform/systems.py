"""What the cases are asked of: brokers that take and return frames.

Owns: the port, the numbers of its brokers, the outcomes without a response.  Never: opens a
connection.

The brokers of a case are 1, 2 and 3, whatever ids the cluster gives them.
"""

from __future__ import annotations

from typing import Final, Protocol

from kcluster.conform.broker_ids import BrokerIds
from kcluster.protocol.apis import ApiKey

CLOSED: Final = "closed"
SILENT: Final = "silent"
"""Outcomes without a response."""

PLAINTEXT: Final = "PLAINTEXT"
"""The listener that every cluster has."""
SASL: Final = "SASL"
"""The listener with logins, of secured clusters."""

BROKERS: Final = (1, 2, 3)
ANY_VERSION: Final = 1 << 15
"""As the newest version of a system that serves what its release does."""


class System(Protocol):
    """The brokers."""

    @property
    def settle_ms(self) -> int:
        """How long a change may take to be visible everywhere after its response."""

    def now_ms(self) -> int: ...
    def sleep_ms(self, duration_ms: int) -> None: ...
    def send(self, on: str, broker: int, frame: bytes) -> None: ...
    def receive(self, on: str, broker: int, limit_ms: int) -> bytes | str:
        """The next frame without its length, CLOSED or SILENT."""

    def connect(self, on: str, broker: int, listener: str) -> None:
        """Open a connection, in place of one of the same name.  `send` opens one to PLAINTEXT."""

    def close(self, on: str, broker: int) -> None: ...
    def close_all(self, broker: int) -> None:
        """All connections to one broker."""

    def operate(self, verb: str, broker: int) -> None:
        """Kill, stop or start a broker; returns when its process is gone or has been started."""

    @property
    def ids(self) -> BrokerIds:
        """The ids of brokers 1, 2 and 3."""

    def newest(self, api: ApiKey) -> int:
        """The newest version that the brokers list; negative if they do not list the API."""

    @property
    def addresses(self) -> dict[int, tuple[str, int]]: ...
    @property
    def endpoints(self) -> dict[int, dict[str, tuple[str, int]]]:
        """Addresses by broker and listener."""

    @property
    def controller_ports(self) -> dict[int, int]:
        """Of the controllers' listeners, where they are known."""
