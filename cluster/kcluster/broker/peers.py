"""Requests to other nodes, and their responses or timeouts.

Owns: the requests in flight and their timeouts.  Never: interprets a request, or handles a response
(the sender's callback does).  Kafka: InterBrokerSendThread, NodeToControllerChannelManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.purgatory import DelayedOperation, Purgatory
from kcluster.contract import CONTROLLER_ID, PeerRequest, PeerResponse, Send

Answered = Callable[[Any, int], None]
"""Called with (body of the response, or None if no response came in time or the peer is gone;
now_ms)."""


class PeerCall(DelayedOperation):
    """One request in flight.  Subclasses handle the response."""

    __slots__ = ("calls", "peer", "request_id")

    def __init__(self, peer: int) -> None:
        super().__init__()
        self.calls: PeerCalls | None = None
        self.peer = peer
        self.request_id = -1

    def answered(self, body: Any, now_ms: int) -> None:
        """Called with the body of the response; None: no response came in time, or the peer is
        gone."""
        raise AssertionError("a subclass handles the answer")

    def expire(self, now_ms: int) -> None:
        assert self.calls is not None
        self.calls.finish(self, None, now_ms)


@final
class _Question(PeerCall):
    """A request whose response goes to a callback."""

    __slots__ = ("_on_answer",)

    def __init__(self, peer: int, on_answer: Answered) -> None:
        super().__init__(peer)
        self._on_answer = on_answer

    def answered(self, body: Any, now_ms: int) -> None:
        self._on_answer(body, now_ms)


@final
class PeerCalls:
    """All requests of one broker that are in flight."""

    __slots__ = ("_next_id", "_outbox", "_purgatory", "_under_way", "_view")

    def __init__(self, view: BrokerView, purgatory: Purgatory, outbox: Outbox) -> None:
        self._view = view
        self._purgatory = purgatory
        self._outbox = outbox
        self._next_id = 0
        self._under_way: dict[int, PeerCall] = {}

    def ask(
        self, peer: int, body: object, on_answer: Answered, timeout_ms: int, now_ms: int
    ) -> PeerCall:
        """Send `body` to node `peer`; `on_answer` is called exactly once, unless forgotten."""
        return self.put(_Question(peer, on_answer), body, timeout_ms, now_ms)

    def ask_controller(
        self, body: object, on_answer: Answered, timeout_ms: int, now_ms: int
    ) -> None:
        """Send a request to the controller; `on_answer(None, now_ms)` if no answer came in time,
        within controller.socket.timeout.ms at most."""
        timeout_ms = min(timeout_ms, self._view.config.controller_socket_timeout_ms)
        self.ask(CONTROLLER_ID, body, on_answer, timeout_ms, now_ms)

    def put(self, call: PeerCall, body: object, timeout_ms: int, now_ms: int) -> PeerCall:
        """Send `body` to the peer of the new `call`, whose `answered` is called exactly once."""
        request_id = self._next_id = self._next_id + 1
        call.calls = self
        call.request_id = request_id
        self._under_way[request_id] = call
        self._purgatory.park(call, timeout_ms, now_ms)
        self._outbox.emit(Send(call.peer, PeerRequest(self._view.node_id, request_id, body)))
        return call

    def on_response(self, response: PeerResponse, now_ms: int) -> None:
        """Finish the call to which `response` is the answer; an answer after the timeout is
        dropped."""
        call = self._under_way.pop(response.request_id, None)
        if call is not None:
            call.done = True
            call.answered(response.body, now_ms)

    def on_disconnected(self, peer: int, now_ms: int) -> None:
        """End the calls to a peer whose process is gone."""
        lost = [call for call in self._under_way.values() if call.peer == peer]
        for call in lost:
            self.finish(call, None, now_ms)

    def forget(self, call: PeerCall) -> None:
        """Drop a call whose answer is no longer wanted."""
        if not call.done:
            call.done = True
            del self._under_way[call.request_id]

    def finish(self, call: PeerCall, body: object, now_ms: int) -> None:
        """End `call` with `body`, or None for no answer."""
        if not call.done:
            self.forget(call)
            call.answered(body, now_ms)
