"""Producer ids: a broker's share of them, in blocks that the controller hands out.

Owns: the block in use, the next one, and who waits for one.  Never: which ids are in a block (the
controller does, so that no two brokers have one in common).
Kafka: RPCProducerIdManager, KIP-730.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

Then = Callable[[int | None], None]
"""Takes the producer id; None: there is none now, the producer may try again."""


class ProducerIds:
    """The producer ids of one life of one broker."""

    __slots__ = ("_asking", "_block_size", "_broker", "_ids", "_next_ids", "_waiting")

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._ids = range(0)
        self._block_size = 0
        self._next_ids = range(0)
        self._asking = False
        self._waiting: list[Then] = []

    def generate(self, then: Then, now_ms: int) -> None:
        """Call `then` with a new producer id: now if there is one, else when a block has come."""
        producer_id = self._take(now_ms)
        if producer_id is not None:
            then(producer_id)
            return
        self._waiting.append(then)
        self._ask(now_ms)

    def _take(self, now_ms: int) -> int | None:
        if not self._ids:
            self._ids, self._next_ids = self._next_ids, range(0)
            self._block_size = len(self._ids)
        if not self._ids:
            return None
        producer_id, self._ids = self._ids[0], self._ids[1:]
        # With nine tenths of a block used up, the next one is fetched before anyone must wait.
        if len(self._ids) * 10 < self._block_size and not self._next_ids:
            self._ask(now_ms)
        return producer_id

    def _ask(self, now_ms: int) -> None:
        if self._asking:
            return
        self._asking = True
        broker = self._broker
        body = m.AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=broker.epoch)
        # A controller that is silent for as long as between two heartbeats will not answer soon;
        # producers are better off with an error that they can retry.
        timeout_ms = broker.config.broker_heartbeat_interval_ms
        broker.ask_controller(body, self._on_block, timeout_ms, now_ms)

    def _on_block(self, body: m.AllocateProducerIdsResponse | None, now_ms: int) -> None:
        self._asking = False
        if body is not None and body.error_code == ErrorCode.NONE:
            start = body.producer_id_start
            self._next_ids = range(start, start + body.producer_id_len)
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then(self._take(now_ms))
