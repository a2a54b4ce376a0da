"""The passage of clients' messages over the links of the network, by one set of rules on both
clocks.

Owns: order, delay and loss on one connection between a client and a broker; which of its two ends
is open; the time at which each end learns that the other has closed or that the connection is
broken.  Never: reads a clock, touches a socket, encodes a message; decides a message's fate on a
link (fabric.py); carries messages between brokers (runtime/dispatch.py).  Kafka: TCP between a
client's machine and a broker's.

A connection has two directions, to the broker and to the client.  Each is a TCP stream, to which
these rules apply separately:

1. Order.  Messages arrive in the order sent; the end of the connection comes last (RFC 9293, 3.4:
  sequence numbers; a FIN has one, too).  A late message delays the messages behind it.
2. Delay.  A message arrives when the fabric says, or when the one before it does if that is later.
  A message that is under way when its link is cut is lost, unless the link heals first.
3. Loss.  Nothing that is sent behind a lost message arrives: a stream has no holes.  The connection
  is broken from then on.
4. Reset.  A message that is lost for good resets its connection when its sender gives up (RFC 9293,
  3.8.3), unless the link is cut then.  Other connections over the link are not affected.
5. Cut.  A message that is sent into a cut is lost.  That is silence: neither end is notified.
6. Heal.  When a link heals, the connections over it that are broken are reset: the broker's end
  closes at once, and the end of the connection is sent to the client.
  # DIFFERS: TCP would retransmit after a short cut, and both ends would only see a delay.
7. Close.  The end that closes first takes no more messages.  Everything that it has sent arrives at
  the other end, and then the end of the connection, to which rules 1 to 6 apply: a FIN is
  acknowledged and retransmitted as data is.  So rule 6 delivers an end that was lost in a cut.
8. A message for a broker's end that is closed, or that no process ever opened, is answered with the
  end of the connection (RFC 9293, 3.5.2: a segment for a closed connection is answered with a
  reset).  Until then the client's end is open: it cannot know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar, final

from mypy_extensions import mypyc_attr

from kcluster.network.fabric import CUT, Arrives, Fabric, Link, Outcome, Resets

MAX_BROKEN: Final = 10_000
"""The number of broken connections that are remembered; beyond it, the oldest are never reset."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CarriedConnection:
    """One connection, as far as the network is concerned.  Drivers add what their ends need.

    `client_ids`: the client's nodes in the fabric, usually one; a client from outside may match
    several patterns, and then its messages pass over the links of all of them.
    """

    __slots__ = (
        "arrival_at_broker_us", "arrival_at_client_us", "broker_end_is_open", "broker_id",
        "is_open", "is_reset", "links_to_broker", "links_to_client", "lost_to_broker",
        "lost_to_client",
    )  # fmt: skip

    def __init__(self, client_ids: tuple[int, ...], broker_id: int) -> None:
        self.broker_id = broker_id
        self.set_clients(client_ids)
        self.is_open = True
        """Whether the client's end is open: the client has neither closed it nor learned that the
        broker has."""
        self.broker_end_is_open = True
        """Whether the broker's end is open; true even before the first message has arrived
        there."""
        self.lost_to_broker = False
        """Whether a message to the broker was lost, so that no more arrives there (rule 3)."""
        self.lost_to_client = False
        self.is_reset = False
        """Whether a reset is under way: only the end of the connection still reaches the client."""
        self.arrival_at_broker_us = self.arrival_at_client_us = 0
        """The arrival time at the broker of the last message sent."""

    def set_clients(self, client_ids: tuple[int, ...]) -> None:
        """Send later messages of this connection over the links of these nodes."""
        broker_id = self.broker_id
        self.links_to_broker = tuple([(client_id, broker_id) for client_id in client_ids])
        self.links_to_client = tuple([(broker_id, client_id) for client_id in client_ids])


C = TypeVar("C", bound=CarriedConnection)
C_contra = TypeVar("C_contra", bound=CarriedConnection, contravariant=True)


class Clock(Protocol):
    """The time of a driver."""

    @property
    def now_us(self) -> int:
        """The current time."""

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time; callbacks for the same time run in the order in which they were
        scheduled."""


class Ends(Protocol[C_contra]):
    """The two ends of each connection, as a driver implements them."""

    def at_broker(self, connection: C_contra, message: Any) -> bool:
        """A message has arrived at the broker; False if no process is there to take it."""

    def at_client(self, connection: C_contra, message: Any) -> None:
        """A message has arrived at the client."""

    def close_at_broker(self, connection: C_contra) -> None:
        """The client has closed the connection, or it is broken: close the broker's end."""

    def close_at_client(self, connection: C_contra) -> None:
        """The end of the connection has arrived at the client."""


@final
class _End:
    """The end of a connection, as a message."""


_END: Final = _End()


class Transit(Generic[C]):
    """Carries the messages of one driver's clients.

    `on_lost`: called with the link and the time of the reset when a message is lost for good.
    """

    __slots__ = ("_broken", "_clock", "_ends", "_fabric", "_on_lost")

    def __init__(
        self, fabric: Fabric, clock: Clock, ends: Ends[C], on_lost: Callable[[Link, int], None]
    ) -> None:
        self._fabric = fabric
        self._clock = clock
        self._ends = ends
        self._on_lost = on_lost
        self._broken: dict[C, None] = {}

    # ----------------------------------------------------------------------------- sending

    def to_broker(self, connection: C, message: object) -> None:
        """Send a client's message to its broker."""
        if connection.lost_to_broker:
            return
        at_us = self._clock.now_us
        if not self._fabric.is_unimpaired:
            outcome = self._transmit(connection, connection.links_to_broker, at_us, message)
            if not isinstance(outcome, Arrives):
                connection.lost_to_broker = True
                return
            at_us = outcome.at_us
        if at_us < connection.arrival_at_broker_us:
            at_us = connection.arrival_at_broker_us
        connection.arrival_at_broker_us = at_us
        self._clock.at(at_us, lambda: self._arrive_at_broker(connection, message))

    def to_client(self, connection: C, message: object) -> None:
        """Send a broker's message to its client."""
        if connection.lost_to_client:
            return
        at_us = self._clock.now_us
        if not self._fabric.is_unimpaired:
            outcome = self._transmit(connection, connection.links_to_client, at_us, message)
            if not isinstance(outcome, Arrives):
                connection.lost_to_client = True
                return
            at_us = outcome.at_us
        if at_us < connection.arrival_at_client_us:
            at_us = connection.arrival_at_client_us
        connection.arrival_at_client_us = at_us
        self._clock.at(at_us, lambda: self._arrive_at_client(connection, message))

    def _transmit(
        self, connection: C, links: tuple[Link, ...], now_us: int, message: object
    ) -> Outcome:
        """Decide the fate of a message that passes over these links, one after the other."""
        outcome: Outcome = CUT
        for link in links:
            outcome = self._fabric.transmit(link, now_us, message)
            if not isinstance(outcome, Arrives):
                self._remember_broken(connection)
                if isinstance(outcome, Resets):
                    self._on_lost(link, outcome.at_us)
                    self._clock.at(outcome.at_us, partial(self._reset, connection, link))
                return outcome
            now_us = outcome.at_us
        return outcome

    def _is_cut(self, links: tuple[Link, ...]) -> bool:
        return any(self._fabric.is_cut(link[0], link[1]) for link in links)

    def _remember_broken(self, connection: C) -> None:
        self._broken[connection] = None
        if len(self._broken) > MAX_BROKEN:
            del self._broken[next(iter(self._broken))]

    # ---------------------------------------------------------------------------- arriving

    def _arrive_at_broker(self, connection: C, message: object) -> None:
        if self._fabric.has_cuts and self._is_cut(connection.links_to_broker):
            connection.lost_to_broker = True
            self._remember_broken(connection)
        elif message is _END:
            self._close_broker_end(connection)
        elif not connection.broker_end_is_open:
            self.to_client(connection, _END)
        elif not self._ends.at_broker(connection, message):
            connection.broker_end_is_open = False
            self.to_client(connection, _END)

    def _arrive_at_client(self, connection: C, message: object) -> None:
        if self._fabric.has_cuts and self._is_cut(connection.links_to_client):
            connection.lost_to_client = True
            self._remember_broken(connection)
        elif not connection.is_open:
            pass
        elif message is _END:
            connection.is_open = False
            self._ends.close_at_client(connection)
        elif not connection.is_reset:
            self._ends.at_client(connection, message)

    # ----------------------------------------------------------------------------- closing

    def close_from_client(self, connection: C) -> None:
        """Close the client's end."""
        if connection.is_open:
            connection.is_open = False
            self.to_broker(connection, _END)

    def close_from_broker(self, connection: C) -> None:
        """Close the broker's end, because the broker closed it or its process died."""
        if connection.broker_end_is_open:
            connection.broker_end_is_open = False
            self.to_client(connection, _END)

    def _close_broker_end(self, connection: C) -> None:
        if connection.broker_end_is_open:
            connection.broker_end_is_open = False
            self._ends.close_at_broker(connection)

    # ------------------------------------------------------------------ broken connections

    def link_healed(self, link: Link) -> None:
        """Break the connections that lost a message while this link was cut.  `link`: from the
        client."""
        for connection in tuple(self._broken):
            if link in connection.links_to_broker:
                self._break(connection)

    def _reset(self, connection: C, link: Link) -> None:
        """Reset a connection after the sender of a lost message has given up."""
        if connection in self._broken and not self._fabric.is_cut(link[0], link[1]):
            self._break(connection)

    def _break(self, connection: C) -> None:
        """Mark the connection as broken at both ends."""
        del self._broken[connection]
        self._close_broker_end(connection)
        # The reset is not part of the stream, so a lost message does not hold it up.
        connection.is_reset = True
        connection.lost_to_client = False
        if connection.is_open:
            self.to_client(connection, _END)
