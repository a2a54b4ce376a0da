"""Producer ids: a broker's share of them, in blocks that the controller hands out.

Owns: the block in use, the next one, and the requests that wait for one.  Never: chooses a block's
ids (the controller does, so that no two brokers share an id).  Kafka: RPCProducerIdManager,
KIP-730.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.broker.peers import PeerCalls
from kcluster.broker.ports import BrokerView
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

OnProducerId = Callable[[int | None], None]
"""Called with the producer id; None: there is none now, and the producer may try again."""


class ProducerIds:
    """The producer ids of one life of one broker."""

    __slots__ = ("_asking", "_block_size", "_ids", "_next_ids", "_peers", "_view", "_waiting")

    def __init__(self, view: BrokerView, peers: PeerCalls) -> None:
        self._view = view
        self._peers = peers
        self._ids = range(0)
        self._block_size = 0
        self._next_ids = range(0)
        self._asking = False
        self._waiting: list[OnProducerId] = []

    def generate(self, on_producer_id: OnProducerId, now_ms: int) -> None:
        """Call back with a new producer id: now if an id is available, else when a block
        arrives."""
        producer_id = self._take(now_ms)
        if producer_id is not None:
            on_producer_id(producer_id)
            return
        self._waiting.append(on_producer_id)
        self._ask(now_ms)

    def _take(self, now_ms: int) -> int | None:
        if not self._ids:
            self._ids, self._next_ids = self._next_ids, range(0)
            self._block_size = len(self._ids)
        if not self._ids:
            return None
        producer_id, self._ids = self._ids[0], self._ids[1:]
        # When nine tenths of a block are used up, the next one is fetched, before a producer must
        # wait.
        if len(self._ids) * 10 < self._block_size and not self._next_ids:
            self._ask(now_ms)
        return producer_id

    def _ask(self, now_ms: int) -> None:
        if self._asking:
            return
        self._asking = True
        view = self._view
        body = m.AllocateProducerIdsRequest(broker_id=view.node_id, broker_epoch=view.epoch)
        # A controller that is silent for a whole heartbeat interval will not answer soon;
        # producers are better off with an error that they can retry.
        timeout_ms = view.config.broker_heartbeat_interval_ms
        self._peers.ask_controller(body, self._on_block, timeout_ms, now_ms)

    def _on_block(self, body: m.AllocateProducerIdsResponse | None, now_ms: int) -> None:
        self._asking = False
        if body is not None and body.error_code == ErrorCode.NONE:
            start = body.producer_id_start
            self._next_ids = range(start, start + body.producer_id_len)
        waiting, self._waiting = self._waiting, []
        for on_producer_id in waiting:
            on_producer_id(self._take(now_ms))
