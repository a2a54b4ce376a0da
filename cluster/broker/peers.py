"""Questions to other nodes, and their answers or the lack of them.

Owns: which questions are under way and their time-outs.  Never: what is asked, or what follows
from the answer (the asker's callback does).  Kafka: InterBrokerSendThread,
NodeToControllerChannelManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.broker.purgatory import DelayedOperation, Purgatory
from cluster.contract import Effect, PeerRequest, PeerResponse, Send

Answered = Callable[[Any, int], None]
"""(body of the answer, or None for: none came, or the peer is gone; now_ms)."""


class PeerCall(DelayedOperation):
    """One question under way."""

    __slots__ = ("_calls", "on_answer", "peer", "request_id")

    def __init__(self, calls: PeerCalls, peer: int, request_id: int, on_answer: Answered) -> None:
        super().__init__()
        self._calls = calls
        self.peer = peer
        self.request_id = request_id
        self.on_answer = on_answer

    def expire(self, now_ms: int) -> None:
        self._calls.finish(self, None, now_ms)


class PeerCalls:
    """All questions of one node that are under way."""

    __slots__ = ("_next_id", "_node_id", "_purgatory", "_send", "_under_way")

    def __init__(self, node_id: int, purgatory: Purgatory, send: Callable[[Effect], None]) -> None:
        self._node_id = node_id
        self._purgatory = purgatory
        self._send = send
        self._next_id = 0
        self._under_way: dict[int, PeerCall] = {}

    def ask(
        self, peer: int, body: Any, on_answer: Answered, timeout_ms: int, now_ms: int
    ) -> PeerCall:
        """Send `body` to node `peer`; `on_answer` is called exactly once, unless forgotten."""
        self._next_id += 1
        call = PeerCall(self, peer, self._next_id, on_answer)
        self._under_way[call.request_id] = call
        self._purgatory.park(call, timeout_ms, now_ms)
        self._send(Send(peer, PeerRequest(self._node_id, call.request_id, body)))
        return call

    def on_response(self, response: PeerResponse, now_ms: int) -> None:
        """An answer that comes after its time-out finds nobody, and is dropped."""
        call = self._under_way.get(response.request_id)
        if call is not None:
            self.finish(call, response.body, now_ms)

    def on_disconnected(self, peer: int, now_ms: int) -> None:
        """The peer's process is gone: no answer will come."""
        lost = [call for call in self._under_way.values() if call.peer == peer]
        for call in lost:
            self.finish(call, None, now_ms)

    def forget(self, call: PeerCall) -> None:
        """Whatever comes, the asker no longer wants to hear it."""
        call.done = True
        self._under_way.pop(call.request_id, None)

    def finish(self, call: PeerCall, body: Any, now_ms: int) -> None:
        """End `call` with `body`, or None for no answer."""
        if not call.done:
            self.forget(call)
            call.on_answer(body, now_ms)
