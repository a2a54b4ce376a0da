"""A marker must be committed before it is confirmed: the next transaction may begin right after.

Owns: the requests for markers that brokers have not answered yet, and their answers that come too
early.  Never: looks into a coordinator, judges a marker in a log (producers.py does).
Kafka: KafkaApis.handleWriteTxnMarkersRequest, which answers a marker of a group coordinator when
that has committed and applied it (KAFKA-17507).

    marker-before-commit    an answer without an error, though no marker of that producer epoch and
                            result was committed at or after the log end that the leader had when
                            the request came

A leader appends a marker again for a repeated request, so each request has its own marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.observed import NO_EPOCH, ObservedPartition
from kcluster.invariants.producer_facts import EarlyMarker
from kcluster.invariants.promises import forget_oldest
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.records.markers import read_marker

Leading = Callable[[str, int], tuple[Replica, ObservedPartition] | None]
"""(topic, partition) -> its replica on the broker that is asked; None if that does not lead it."""
EarlyAnswer = tuple[ObservedPartition, EarlyMarker]
_Result = tuple[int, int, bool]
"""(producer id, producer epoch, whether it commits)."""
MARKER_ANSWER: Final = m.WriteTxnMarkersResponse


class _AskedMarkers(NamedTuple):
    """The markers that a leader was asked for in one request, by producer id.  `log_end`: the end
    of its log when the request came."""

    partition: ObservedPartition
    log_end: int
    of_producers: dict[int, list[_Result]]


_Asked = dict[tuple[str, int], _AskedMarkers]
"""The markers of one request, by topic and partition."""


class MarkerAnswers:
    """The markers that the brokers of one cluster were asked for."""

    def __init__(self) -> None:
        self._of_peers: dict[tuple[int, int], _Asked] = {}
        """By sender and request id."""
        self._of_clients: dict[Request, _Asked] = {}

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
        """The markers that an answer between nodes has confirmed too early.  `number`: the id that
        was recorded when the request arrived."""
        asked = self._of_peers.pop((node, number), None)
        return iter(()) if asked is None else _early(asked, response.body)

    def on_reply(self, reply: Reply) -> Iterator[EarlyAnswer]:
        """The markers that an answer to an administrator has confirmed too early."""
        asked = self._of_clients.pop(reply.request, None)
        return iter(()) if asked is None or reply.body is None else _early(asked, reply.body)


def _asked(body: m.WriteTxnMarkersRequest, leading: Leading) -> _Asked:
    asked: _Asked = {}
    for marker in body.markers:
        producer_id = marker.producer_id
        wanted = (producer_id, marker.producer_epoch, marker.transaction_result)
        for topic in marker.topics:
            for index in topic.partition_indexes:
                place = (topic.name, index)
                if place not in asked and (led := leading(*place)) is not None:
                    replica, partition = led
                    asked[place] = _AskedMarkers(partition, replica.log.log_end_offset, {})
                if place in asked:
                    asked[place].of_producers.setdefault(producer_id, []).append(wanted)
    return asked


def _early(asked: _Asked, body: m.WriteTxnMarkersResponse) -> Iterator[EarlyAnswer]:
    """The markers that an answer confirms without a commit.  Each log is read only once, however
    often a request names it."""
    confirmed: dict[tuple[str, int], dict[int, None]] = {}
    for result in body.markers:
        for topic in result.topics:
            for row in topic.partitions:
                if not row.error_code:
                    place = (topic.name, row.partition_index)
                    confirmed.setdefault(place, {})[result.producer_id] = None
    for place, producers in confirmed.items():
        of_leader = asked.get(place)
        # After an unclean election, committed markers may be lost.
        if of_leader is None or of_leader.partition.unclean_epoch != NO_EPOCH:
            continue
        committed = _committed(of_leader)
        for producer_id in producers:
            wanted = of_leader.of_producers.get(producer_id, ())
            # A request may repeat a producer; the answer is then about any of its markers.
            if wanted and not any(one in committed for one in wanted):
                _, epoch, is_commit = wanted[0]
                end = of_leader.partition.committed.end
                yield of_leader.partition, EarlyMarker(producer_id, epoch, is_commit, end)


def _committed(asked: _AskedMarkers) -> dict[_Result, None]:
    """The markers that were committed since the request came."""
    found: dict[_Result, None] = {}
    for base_offset, batch in reversed(asked.partition.committed.batches.items()):
        if base_offset < asked.log_end:
            break
        if batch.is_control and (marker := read_marker(batch)) is not None:
            found[batch.producer_id, batch.producer_epoch, marker.is_commit] = None
    return found
