"""Requests from outside, as an admin tool sends them: to the controller, to coordinators of groups.

Owns: their ids, the callbacks for their answers.  Never: decides anything.
Kafka: kafka-leader-election, kafka-topics, without the broker that forwards the request.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.contract import PeerRequest, PeerResponse
from kcluster.metadata.records import TokenChange
from kcluster.operations.controller import controller_id
from kcluster.protocol import messages as m
from kcluster.protocol.messages import Message
from kcluster.runtime.dispatch import RUNTIME_ID, Dispatcher

PREFERRED, UNCLEAN = 0, 1
"""Codes of ElectLeadersRequest.ElectionType."""


class Asking:
    """The runtime's own requests.  Answers arrive as PeerResponses to RUNTIME_ID."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._waiting: dict[int, Callable[[object], None]] = {}
        self._next_id = 0
        dispatcher.on_answer = self._on_answer

    def ask(
        self,
        body: Message | TokenChange,
        on_answer: Callable[[object], None],
        broker: int | None = None,
    ) -> None:
        """Send a request to the controller, or to a broker; `on_answer(body)` is called once,
        during a dispatch or between two."""
        self._next_id += 1
        self._waiting[self._next_id] = on_answer
        request = PeerRequest(RUNTIME_ID, self._next_id, body)
        node = controller_id(self._dispatcher) if broker is None else broker
        self._dispatcher.dispatch(node, request)

    def _on_answer(self, answer: PeerResponse) -> None:
        self._waiting.pop(answer.request_id)(answer.body)


def elect_request(topic: str, partition: int, unclean: bool) -> m.ElectLeadersRequest:
    """An ElectLeaders request for one partition."""
    chosen = m.ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])
    kind = UNCLEAN if unclean else PREFERRED
    return m.ElectLeadersRequest(election_type=kind, topic_partitions=[chosen], timeout_ms=10_000)
