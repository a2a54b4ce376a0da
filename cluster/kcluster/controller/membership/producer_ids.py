"""AllocateProducerIds (API 67, v0): blocks of producer ids for brokers.

Owns: the next ids.  Never: gives an id to a producer (brokers do, from their block). Kafka:
ProducerIdControlManager; KIP-730.
"""

from __future__ import annotations

from typing import Final

from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.metadata.records import ProducerIdsRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

PRODUCER_ID_BLOCK_SIZE: Final = 1000
"""Kafka: ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE."""


class ProducerIdBlocks:
    """Hands out producer ids in blocks."""

    def __init__(self, metadata: MetadataPort) -> None:
        self._metadata = metadata

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"AllocateProducerIdsRequest": self.allocate_producer_ids}

    def allocate_producer_ids(
        self, request: m.AllocateProducerIdsRequest, _now_ms: int
    ) -> m.AllocateProducerIdsResponse:
        """Allocate the next thousand producer ids to this broker alone."""
        image = self._metadata.image
        registration = image.brokers.get(request.broker_id)
        if registration is None or registration.epoch != request.broker_epoch:
            return m.AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        start = image.next_producer_id
        end = start + PRODUCER_ID_BLOCK_SIZE
        self._metadata.commit([ProducerIdsRecord(request.broker_id, request.broker_epoch, end)])
        return m.AllocateProducerIdsResponse(
            producer_id_start=start, producer_id_len=PRODUCER_ID_BLOCK_SIZE
        )
