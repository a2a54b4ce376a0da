"""The operator's requests that change groups, checked like the requests of a client.

Owns: which of the runtime's requests the rules must know, each with its answer.  Never: judges an
answer (offset_answers.py and memberships.py do), sends a request (operations/asking.py does).
Kafka: Admin.alterConsumerGroupOffsets, Admin.deleteConsumerGroups.
"""

from __future__ import annotations

from typing import Final

from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.invariants import Invariants
from kcluster.invariants.promises import LeaderEpoch, forget_oldest
from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.runtime.dispatch import RUNTIME_ID, Dispatcher

_KNOWN: Final[dict[type, ApiKey]] = {
    m.OffsetCommitRequest: ApiKey.OFFSET_COMMIT,
    m.DeleteGroupsRequest: ApiKey.DELETE_GROUPS,
}


class Administrator:
    """The operator of one cluster."""

    def __init__(self, dispatcher: Dispatcher, invariants: Invariants) -> None:
        self._invariants = invariants
        self._asked: dict[int, Request] = {}
        """The requests without an answer, by id."""
        dispatcher.answer_sinks = (*dispatcher.answer_sinks, self._on_answer)

    def on_request(
        self, broker: int, question: PeerRequest, leader_epoch: LeaderEpoch, now_ms: int
    ) -> None:
        """Record a request when it arrives at a broker, if the runtime has sent it."""
        key = _KNOWN.get(type(question.body)) if question.source == RUNTIME_ID else None
        if key is None:
            return
        version, number = VERSIONS[key][1], question.request_id
        request = Request(RUNTIME_ID, key, version, number, None, question.body)
        self._asked[number] = request
        forget_oldest(self._asked)
        self._invariants.offset_answers.on_request(request)
        self._invariants.memberships.on_request(broker, request, leader_epoch, now_ms)
        self._invariants.promises.on_request(request, now_ms)

    def _on_answer(self, answer: PeerResponse, now_ms: int) -> None:
        request = self._asked.pop(answer.request_id, None)
        if request is not None:
            reply = Reply(request, answer.body)
            self._invariants.offset_answers.on_decided(reply)
            self._invariants.check_memberships(reply, now_ms)
            self._invariants.check_promises(answer.source, reply, _no_epoch, now_ms)


def _no_epoch(_broker: int, _group: str) -> None:
    """No leader epoch: no rule about these answers needs one."""
