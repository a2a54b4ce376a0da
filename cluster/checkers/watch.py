"""Invariants at work on a running cluster.

Owns: when a node is looked at: after each of its steps.  Never: judges (invariants.py does),
changes anything in the cluster.  Kafka: no counterpart.
"""

from __future__ import annotations

from cluster.broker.node import BrokerNode
from cluster.checkers.invariants import Invariants
from cluster.contract import ConnectionClosed, Event, Node, Note, Reply, Request
from cluster.controller.node import ControllerNode
from cluster.runtime.dispatch import Dispatcher
from cluster.trace import kinds


class Watch:
    """Invariants at work on a cluster: every step of every node is looked at, just before the next
    one runs.  Call `look` once more at the end."""

    def __init__(self, dispatcher: Dispatcher, invariants: Invariants | None = None) -> None:
        self.invariants = invariants or Invariants()
        self._dispatcher = dispatcher
        self._stepped: tuple[int, Node | None] = (0, None)
        """(its life, the node) of the last step; it may have died since."""
        self._metadata_offset = -1
        self._tap = dispatcher.tap
        dispatcher.tap = self._before_step
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._on_note)
        dispatcher.reply_sinks = (*dispatcher.reply_sinks, self._on_reply)

    def look(self) -> None:
        """Judge the node whose step was the last."""
        (life, node), now_ms = self._stepped, self._dispatcher.now_ms
        self._stepped = (0, None)
        match node:
            case BrokerNode() as broker:
                self.invariants.look(
                    now_ms, broker.node_id, life, broker.image.offset, broker.replicas.all()
                )
            case ControllerNode(image=image) if image.offset != self._metadata_offset:
                self._metadata_offset = image.offset
                for topic in image.topics.values():
                    for partition in topic.partitions:
                        subject = f"{topic.name}-{partition.partition}"
                        self.invariants.look_at_metadata(now_ms, subject, partition)

    def _before_step(self, now_us: int, node_id: int, event: Event) -> None:
        self.look()
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        process = self._dispatcher.processes[node_id]
        self._stepped = (process.life, process.node)
        if isinstance(event, Request):
            self.invariants.on_request(node_id, event, now_us // 1000)
        elif isinstance(event, ConnectionClosed):
            self.invariants.on_connection_closed(event.connection_id)

    def _on_note(self, note: Note) -> None:
        self.invariants.on_note(note)
        if note.kind == kinds.BROKER_DOWN:
            self.look()  # while its logs are still as it left them
            self.invariants.on_death(note.data["broker"])

    def _on_reply(self, node_id: int, reply: Reply, now_ms: int) -> None:
        self.invariants.on_reply(node_id, reply.request, reply.body, now_ms)
