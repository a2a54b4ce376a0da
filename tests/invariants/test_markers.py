"""Answers about markers, whatever a request repeats."""

from __future__ import annotations

from kcluster.contract import Reply, Request
from kcluster.invariants.markers import MarkerAnswers
from kcluster.invariants.observed import ObservedPartition
from kcluster.invariants.producer_facts import EarlyMarker
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.invariants.test_invariants import leader

REPEATED = 20_000
Wanted = m.WriteTxnMarkersRequest
Given = m.WriteTxnMarkersResponse


def test_markers__that_a_request_repeats_are_checked_once() -> None:
    """Marker by marker, this took more than a minute, in which no broker answers."""
    topics = [Wanted.WritableTxnMarkerTopic("orders", [0])]
    markers = [
        Wanted.WritableTxnMarker(
            producer_id=7, producer_epoch=at % 100, transaction_result=True, topics=topics
        )
        for at in range(REPEATED)
    ]
    row = Given.WritableTxnMarkerPartitionResult(0, 0)
    result = Given.WritableTxnMarkerResult(7, [Given.WritableTxnMarkerTopicResult("orders", [row])])
    request = Request(1, int(ApiKey.WRITE_TXN_MARKERS), 1, 1, "a", Wanted(markers=markers))
    observed, replica = ObservedPartition("orders", (bytes(16), 0)), leader(1)
    answers = MarkerAnswers()
    answers.on_request(request, lambda *_: (replica, observed))
    found = list(answers.on_reply(Reply(request, Given(markers=[result] * REPEATED))))
    assert found == [(observed, EarlyMarker(7, 0, True, 0))]
