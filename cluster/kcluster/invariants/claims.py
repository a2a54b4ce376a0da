"""Claims about transactions, by producers or leaders for them, that coordinators must refuse.

Owns: the newest producer that has begun anew with each transactional id, the requests that must be
refused because of it, and the partitions that must not be verified.  Never: looks into a
coordinator, replays its log (replayed.py does).  Kafka:
TransactionCoordinator.{prepareInitProducerIdTransit, handleVerifyPartitionsInTransaction}; KIP-98,
KIP-360, KIP-890.

    zombie-served        a producer is served in an old epoch although a producer with its
                         transactional id, perhaps itself, has begun anew since
    verified-otherwise   a partition is verified that is not in the open transaction of a producer
                         with that epoch

A producer begins anew when it asks for an id without naming its previous id: from then on all older
epochs are fenced, whatever they ask for.  Kafka itself makes one exception: EndTxn of version 2 is
confirmed in the previous epoch if the last transaction ended that way, whoever ended it.

A coordinator that does not yet know of its successor may confirm anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.broker.coordinator.transactions.transaction import ONGOING, TopicPartition
from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.producer_facts import VerifiedOtherwise, ZombieServed
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.invariants.refused import error_in, named_producer, transactional_id_of
from kcluster.invariants.replayed import Decisions
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

VERIFICATION: Final = m.AddPartitionsToTxnRequest
VERIFIED: Final = m.AddPartitionsToTxnResponse
_INIT: Final = int(ApiKey.INIT_PRODUCER_ID)
_END: Final = int(ApiKey.END_TXN)
_FIRST_OF_V2: Final = 5
"""EndTxn from this version on increments the epoch."""
_Unknown = dict[tuple[str, TopicPartition], VerifiedOtherwise]
"""What is wrong if a partition of a transactional id is verified."""


class ProducerClaims:
    """The claims of the producers of one cluster; `decisions`: the transactions by the committed
    records of all coordinators."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._newest: dict[str, tuple[int, int]] = {}
        """(producer id, epoch) of the last producer that has begun anew, by transactional id."""
        self._fenced: dict[Request, tuple[int, ZombieServed]] = {}
        """The requests without an answer that must be refused, with their broker."""
        self._unknown: dict[tuple[int, int], _Unknown] = {}
        """The partitions that must not be verified, by sender and request id."""

    # ------------------------------------------------------------------------- zombies

    def on_request(self, broker: int, request: Request) -> None:
        """Record the arrival of a producer's request at the newest coordinator."""
        newest = self._newest.get(transactional_id_of(request) or "")
        if newest is None or not self._decisions.is_whole:
            return
        producer_id, epoch = named_producer(request)
        if producer_id != newest[0] or not 0 <= epoch < newest[1]:
            return
        is_of_v2 = request.api_key == _END and request.api_version >= _FIRST_OF_V2
        if is_of_v2 and epoch + 1 == newest[1]:
            return
        name = type(request.body).__name__.removesuffix("Request")
        self._fenced[request] = (broker, ZombieServed(name, producer_id, epoch, newest[1]))
        forget_oldest(self._fenced)

    def on_decided(self, reply: Reply) -> Iterator[tuple[int, BrokenPromise]]:
        """What an answer to a producer breaks, with its broker.  Called once the answer is decided,
        and perhaps again when it is sent."""
        request = reply.request
        fenced = self._fenced.pop(request, None)
        if reply.body is None or error_in(request, reply.body) is not ErrorCode.NONE:
            return
        transactional_id = transactional_id_of(request) or ""
        if request.api_key == _INIT and request.body.producer_id < 0 and transactional_id:
            given = (reply.body.producer_id, reply.body.producer_epoch)
            self._newest[transactional_id] = given
            forget_oldest(self._newest)
        if fenced is not None:
            yield fenced[0], ("zombie-served", f"transaction {transactional_id}", fenced[1])

    # ------------------------------------------------------------------- verifications

    def on_peer_request(self, request: PeerRequest) -> None:
        """Record the arrival of a leader's question at the newest coordinator."""
        unknown = dict(self._not_to_verify(request.body)) if self._decisions.is_whole else {}
        if unknown:
            self._unknown[request.source, request.request_id] = unknown
            forget_oldest(self._unknown)

    def on_peer_response(
        self, node: int, number: int, response: PeerResponse
    ) -> Iterator[BrokenPromise]:
        """What an answer breaks when it arrives at a leader.  `number`: the id that was recorded
        when the request arrived."""
        unknown = self._unknown.pop((node, number), None)
        if unknown is None:
            return
        body: m.AddPartitionsToTxnResponse = response.body
        for result in body.results_by_transaction:
            of = result.transactional_id
            for topic in result.topic_results:
                for row in topic.results_by_partition:
                    fact = unknown.get((of, (topic.name, row.partition_index)))
                    if fact is not None and not row.partition_error_code:
                        yield "verified-otherwise", f"transaction {of}", fact

    def _not_to_verify(
        self, body: m.AddPartitionsToTxnRequest
    ) -> Iterator[tuple[tuple[str, TopicPartition], VerifiedOtherwise]]:
        for asked in body.transactions:
            if not asked.verify_only:
                continue
            of, producer = asked.transactional_id, (asked.producer_id, asked.producer_epoch)
            known = self._decisions.of_id(of)
            has_open = (
                known is not None
                and known.state is ONGOING
                and (known.producer_id, known.producer_epoch) == producer
            )
            state = "" if known is None else known.state.label
            for topic in asked.topics:
                for index in topic.partitions:
                    place = (topic.name, index)
                    if not has_open or known is None or place not in known.partitions:
                        yield (of, place), VerifiedOtherwise(*producer, *place, state)
