"""A marker that was confirmed is committed, or the next transaction may begin without its effects.

Owns: the requests for markers that brokers have not answered yet, and their answers that come too
early.  Never: looks into a coordinator, judges a marker in a log (producers.py does).
Kafka: KafkaApis.handleWriteTxnMarkersRequest, which answers a marker of a group coordinator when
that has committed and applied it (KAFKA-17507).

    marker-before-commit    an answer without an error, though no marker of that producer epoch and
                            result was committed at or after the log end that the leader had when
                            the request came

A leader appends a marker again when it is asked again, so each request has one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.facts import EarlyMarker
from kcluster.invariants.observed import NO_EPOCH, ObservedPartition
from kcluster.invariants.promises import forget_oldest
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.records.markers import read_marker

Leading = Callable[[str, int], tuple[Replica, ObservedPartition] | None]
"""(topic, partition) -> its replica on the broker that is asked; None if that does not lead it."""
EarlyAnswer = tuple[ObservedPartition, EarlyMarker]
_Place = tuple[int, str, int]
"""(producer id, topic, partition)."""
MARKER_ANSWER: Final = m.WriteTxnMarkersResponse


class _AskedMarker(NamedTuple):
    """A marker that a leader was asked for.  `log_end`: that of its log when the request came."""

    partition: ObservedPartition
    log_end: int
    producer_epoch: int
    is_commit: bool


class MarkerAnswers:
    """The markers that the brokers of one cluster were asked for."""

    def __init__(self) -> None:
        self._of_peers: dict[tuple[int, int], dict[_Place, list[_AskedMarker]]] = {}
        """By sender and request id."""
        self._of_clients: dict[Request, dict[_Place, list[_AskedMarker]]] = {}

    def on_peer_request(self, request: PeerRequest, leading: Leading) -> None:
        """Record the request of a coordinator when it arrives."""
        self._of_peers[request.source, request.request_id] = _asked(request.body, leading)
        forget_oldest(self._of_peers)

    def on_request(self, request: Request, leading: Leading) -> None:
        """Record the request of an administrator when it arrives."""
        self._of_clients[request] = _asked(request.body, leading)
        forget_oldest(self._of_clients)

    def on_peer_response(
        self, node: int, number: int, response: PeerResponse
    ) -> Iterator[EarlyAnswer]:
        """What was not committed of an answer that has arrived at a node.  `number`: the id that
        the request had when it arrived."""
        asked = self._of_peers.pop((node, number), None)
        return iter(()) if asked is None else _early(asked, response.body)

    def on_reply(self, reply: Reply) -> Iterator[EarlyAnswer]:
        """What was not committed of an answer to an administrator."""
        asked = self._of_clients.pop(reply.request, None)
        return iter(()) if asked is None or reply.body is None else _early(asked, reply.body)


def _asked(body: m.WriteTxnMarkersRequest, leading: Leading) -> dict[_Place, list[_AskedMarker]]:
    asked: dict[_Place, list[_AskedMarker]] = {}
    for marker in body.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                led = leading(topic.name, index)
                if led is not None:
                    replica, partition = led
                    end, epoch = replica.log.log_end_offset, marker.producer_epoch
                    one = _AskedMarker(partition, end, epoch, marker.transaction_result)
                    asked.setdefault((marker.producer_id, topic.name, index), []).append(one)
    return asked


def _early(
    asked: dict[_Place, list[_AskedMarker]], body: m.WriteTxnMarkersResponse
) -> Iterator[EarlyAnswer]:
    for result in body.markers:
        for topic in result.topics:
            for row in topic.partitions:
                place = (result.producer_id, topic.name, row.partition_index)
                wanted = () if row.error_code else asked.get(place, ())
                # After an unclean election, what was committed may be so no more.
                missing = [
                    one
                    for one in wanted
                    if one.partition.unclean_epoch == NO_EPOCH
                    and not _is_committed(one, result.producer_id)
                ]
                # Of several markers for one place, the answer is about any.
                if missing and len(missing) == len(wanted):
                    first = missing[0]
                    end, epoch = first.partition.committed.end, first.producer_epoch
                    fact = EarlyMarker(result.producer_id, epoch, first.is_commit, end)
                    yield first.partition, fact


def _is_committed(asked: _AskedMarker, producer_id: int) -> bool:
    for base_offset, batch in reversed(asked.partition.committed.batches.items()):
        if base_offset < asked.log_end:
            return False
        if (
            batch.producer_id == producer_id
            and batch.producer_epoch == asked.producer_epoch
            and batch.is_control
            and (marker := read_marker(batch)) is not None
            and marker.is_commit == asked.is_commit
        ):
            return True
    return False
