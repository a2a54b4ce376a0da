"""Invariants at work on a running cluster.

Owns: when a node is looked at: after each of its steps; and which of its replicas: those that the
event may have moved.  Never: judges (invariants.py does), changes anything in the cluster.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cluster.broker.node import BrokerNode
from cluster.broker.replicas import Replicas
from cluster.checkers.invariants import Invariants
from cluster.contract import (
    ConnectionClosed,
    Event,
    Node,
    Note,
    PeerRequest,
    PeerResponse,
    Reply,
    Request,
)
from cluster.controller.node import ControllerNode
from cluster.partition.replica import Replica
from cluster.protocol import messages as m
from cluster.protocol.apis import ApiKey
from cluster.runtime.dispatch import Dispatcher
from cluster.trace import kinds

_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_FetchRequest: Final = m.FetchRequest
_FetchResponse: Final = m.FetchResponse
_LOSING: Final = ("power", "wipe")
_NONE: Final[tuple[Replica, ...]] = ()


class Watch:
    """Invariants at work on a cluster: every step of every node is looked at, just before the next
    one runs.  Call `look` once more at the end."""

    def __init__(self, dispatcher: Dispatcher, invariants: Invariants | None = None) -> None:
        self.invariants = invariants or Invariants()
        self._dispatcher = dispatcher
        self._node: Node | None = None
        """Whose step was the last; it may have died since."""
        self._life = 0
        self._stepped_ms = 0
        self._event: Event | None = None
        """Which it was given."""
        self._metadata_offset = -1
        self._answered: list[Reply] = []
        self._tap = dispatcher.tap
        dispatcher.tap = self._before_step
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._on_note)
        dispatcher.reply_sinks = (*dispatcher.reply_sinks, self._on_reply)

    def look(self) -> None:
        """Judge the node whose step was the last."""
        node, event = self._node, self._event
        self._node = None
        if isinstance(node, BrokerNode):
            self._look_at_broker(node, event)
        elif isinstance(node, ControllerNode):
            self._look_at_controller(node)

    def _look_at_broker(self, node: BrokerNode, event: Event | None) -> None:
        now_ms, invariants = self._stepped_ms, self.invariants
        request = None
        kind = type(event)
        if kind is PeerRequest or kind is PeerResponse:
            body = event.body  # type: ignore[union-attr]  # its kind has a body
            concerned = _named_by_peer(node.replicas, body)
        elif kind is Request:
            assert isinstance(event, Request)
            if event.api_key == _PRODUCE:
                request = event
                concerned = _named(node.replicas, event.body.topic_data, "partition_data", "index")
            else:
                concerned = _NONE if event.api_key == _FETCH else node.replicas.all()
        else:
            concerned = node.replicas.all()
        invariants.look_at_offset(now_ms, node.node_id, self._life, node.image.offset)
        if concerned:
            invariants.look(now_ms, node.node_id, self._life, concerned, request)
        if self._answered:
            self._judge_answers(node)

    def _judge_answers(self, node: BrokerNode) -> None:
        answered, self._answered = self._answered, []
        now_ms, invariants = self._stepped_ms, self.invariants
        for reply in answered:
            request, body = reply.request, reply.body
            if body is None:
                continue
            if request.api_key == _FETCH:
                replicas = _named(node.replicas, body.responses, "partitions", "partition_index")
            else:
                replicas = _named(node.replicas, body.responses, "partition_responses", "index")
            invariants.look(now_ms, node.node_id, self._life, replicas)
            invariants.judge_answer(now_ms, node.node_id, request, body, replicas)

    def _look_at_controller(self, node: ControllerNode) -> None:
        image = node.image
        if image.offset == self._metadata_offset:
            return
        self._metadata_offset = image.offset
        now_ms, invariants = self._stepped_ms, self.invariants
        invariants.look_at_offset(now_ms, node.node_id, self._life, image.offset)
        for topic in image.topics.values():
            for partition in topic.partitions:
                invariants.look_at_metadata(now_ms, topic.name, partition, image.brokers)

    def _before_step(self, now_us: int, node_id: int, event: Event) -> None:
        if self._node is not None:
            self.look()
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        process = self._dispatcher.processes[node_id]
        self._life = process.life
        self._node = process.node
        self._event = event
        self._stepped_ms = now_us // 1000
        if isinstance(event, Request):
            self.invariants.on_request(node_id, event, now_us // 1000)
        elif isinstance(event, ConnectionClosed):
            self.invariants.on_connection_closed(event.connection_id)

    def _on_note(self, note: Note) -> None:
        self.invariants.on_note(note)
        if note.kind == kinds.BROKER_DOWN:
            self.look()  # while its logs are still as it left them
            loses_records = note.data["how"] in _LOSING
            self.invariants.on_death(note.data["broker"], loses_records)

    def _on_reply(self, node_id: int, reply: Reply, now_ms: int) -> None:
        request = reply.request
        self.invariants.on_reply(node_id, request, now_ms)
        if request.api_key == _FETCH or request.api_key == _PRODUCE:
            self._answered.append(reply)


def _named_by_peer(replicas: Replicas, body: Any) -> Iterable[Replica]:
    """The replicas that a message of another broker names; all, if it is not about a fetch."""
    kind = type(body)
    if kind is _FetchRequest:
        return _named(replicas, body.topics, "partitions", "partition")
    if kind is _FetchResponse:
        return _named(replicas, body.responses, "partitions", "partition_index")
    return replicas.all()


def _named(replicas: Replicas, topics: Any, partitions: str, index: str) -> list[Replica]:
    found = []
    for topic in topics:
        for partition in getattr(topic, partitions):
            at = getattr(partition, index)
            replica = replicas.get(topic.topic_id, at)
            if replica is None:
                name: str = getattr(topic, "name", "") or getattr(topic, "topic", "")
                named = replicas.find(name, at)
                if not isinstance(named, Replica):
                    continue
                replica = named
            found.append(replica)
    return found
