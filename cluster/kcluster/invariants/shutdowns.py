"""Controlled shutdowns that the controller holds back, although nothing is left to wait for.

Owns: what brokers have told the controller in their heartbeats, and the heartbeats whose answer
must say that the broker may shut down.  Never: changes anything, looks at the controller's
sessions.  Kafka: BrokerHeartbeatManager.nextState; KAFKA-14996.

A broker that shuts down waits until it leads nothing, and until every active broker has applied the
metadata that says so.  It does not wait for brokers that are fenced or shut down themselves.
"""

from __future__ import annotations

from kcluster.contract import PeerResponse
from kcluster.invariants.facts import HeldBack
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m


class Shutdowns:
    """The controlled shutdowns of one run."""

    __slots__ = ("_due", "_found", "_told")

    def __init__(self) -> None:
        self._told: dict[int, tuple[int, int]] = {}
        """(broker epoch, metadata offset) of the newest heartbeat, by broker."""
        self._due: dict[int, tuple[int, HeldBack]] = {}
        """The request id of the newest heartbeat that must end each broker's shutdown."""
        self._found: dict[int, int] = {}
        """The broker epoch in which a broker was held back, which is reported once."""

    def on_new_controller(self) -> None:
        """Forget what the last controller was told."""
        self._told.clear()
        self._due.clear()

    def on_heartbeat(
        self, request_id: int, heartbeat: m.BrokerHeartbeatRequest, image: MetadataImage
    ) -> None:
        """Record a heartbeat that arrives at the controller, which knows `image`."""
        broker, offset = heartbeat.broker_id, heartbeat.current_metadata_offset
        self._told[broker] = (heartbeat.broker_epoch, offset)
        known = image.brokers.get(broker)
        if (
            known is not None
            and known.epoch == heartbeat.broker_epoch
            and known.in_controlled_shutdown
            and not known.fenced
            and heartbeat.want_shut_down
            and self._found.get(broker) != known.epoch
            and self._all_know(image)
            and not _is_needed(broker, image)
        ):
            self._due[broker] = (request_id, HeldBack(image.offset))

    def on_answer(self, broker: int, answer: PeerResponse) -> HeldBack | None:
        """What an answer to a heartbeat breaks when it arrives at its broker; None if nothing."""
        request_id, held_back = self._due.get(broker, (-1, None))
        if request_id != answer.request_id:
            return None
        del self._due[broker]
        body: m.BrokerHeartbeatResponse = answer.body
        if body.error_code or body.should_shut_down:
            return None
        self._found[broker] = self._told[broker][0]
        return held_back

    def _all_know(self, image: MetadataImage) -> bool:
        """Whether every active broker has told the controller that it knows the newest metadata."""
        return all(
            self._told.get(one.broker_id, (-1, -1)) >= (one.epoch, image.offset)
            for one in image.brokers.values()
            if one.is_active
        )


def _is_needed(broker: int, image: MetadataImage) -> bool:
    """Whether a broker leads a partition, or is in an ISR that it leaves later."""
    return any(
        partition.leader == broker or broker in partition.isr
        for topic in image.topics.values()
        for partition in topic.partitions
    )
