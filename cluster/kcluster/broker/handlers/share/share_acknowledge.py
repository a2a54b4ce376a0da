"""ShareAcknowledge (API 79, v1-2): a member's acknowledgements of its share group's records.

Owns: the session's part in it, the shape of the answer; `Acknowledging`, which a ShareFetch uses,
too: the detection of malformed acknowledgements, the outcome of each partition, once all have one.
Never: changes a record's state, or decides whether it can be acknowledged (broker/share/window.py
does).
Kafka: KafkaApis.handleShareAcknowledgeRequest, validateAcknowledgementBatches,
handleAcknowledgements; KIP-932.
Behaviour:
- answered when the share coordinator has stored the change;
- the final epoch ends the session and releases what the member still holds.
Versions:
- v2: renewal of acquisition locks (KIP-1222)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kcluster.broker.access import NONE_DENIED
from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.gather import OnPart, gather
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.broker.serving.leader_hints import current_leader, node_endpoints
from kcluster.broker.share.in_flight import AcknowledgeType
from kcluster.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, PartitionKey
from kcluster.broker.share.window import Acknowledgement, AcknowledgeOutcome
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import SHARE_VERSION

if TYPE_CHECKING:
    _Topic = m.ShareFetchRequest.FetchTopic | m.ShareAcknowledgeRequest.AcknowledgeTopic
    _Batch = (
        m.ShareFetchRequest.AcknowledgementBatch | m.ShareAcknowledgeRequest.AcknowledgementBatch
    )

Answer = m.ShareAcknowledgeResponse
HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@handles(ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 2))
def share_acknowledge(broker: Broker, request: Request, now_ms: int) -> Answer | Parked:
    """Answer one ShareAcknowledge, or park it until everything is stored."""
    body: m.ShareAcknowledgeRequest = request.body
    if not broker.image.supports(SHARE_VERSION):
        return Answer(error_code=ErrorCode.UNSUPPORTED_VERSION)
    group_id, member_id = body.group_id, body.member_id
    if group_id is None or member_id is None or not is_member_id(member_id):
        return Answer(error_code=ErrorCode.INVALID_REQUEST)
    if body.share_session_epoch == INITIAL_EPOCH:
        return Answer(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = broker.share_sessions.find(group_id, member_id, body.share_session_epoch)
    if isinstance(session, ErrorCode):
        return Answer(error_code=session)
    acknowledging = Acknowledging(broker, group_id, member_id, request.api_version)
    denied = _unreadable(broker, request)
    acknowledging.start(body.topics, body.is_renew_ack, now_ms, denied)

    def finished(at_ms: int) -> Answer:
        if body.share_session_epoch == FINAL_EPOCH:
            broker.end_share_session(session, at_ms)
        return _answer(broker, request, group_id, acknowledging)

    if acknowledging.is_settled:
        return finished(now_ms)
    acknowledging.on_settled = lambda at_ms: broker.reply(request, finished(at_ms))
    return PARKED


def _unreadable(broker: Broker, request: Request) -> frozenset[str]:
    """The topics of a request that its client may not read."""
    if broker.access is None:
        return NONE_DENIED
    names = broker.image.topic_names
    topics = [names[topic.topic_id] for topic in request.body.topics if topic.topic_id in names]
    return broker.access.unreadable(request, topics)


def _answer(
    broker: Broker, request: Request, group_id: str, acknowledging: Acknowledging
) -> Answer:
    topics: dict[bytes, m.ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
    leaders: dict[int, None] = {}
    image = broker.image
    limits = broker.share_partitions.configs.of(group_id).limits
    for (topic_id, partition), outcome in acknowledging.outcomes.items():
        data = Answer.PartitionData(
            partition_index=partition,
            error_code=outcome.error,
            error_message=outcome.message or None,
        )
        if outcome.error in HINTED:
            leader, epoch = current_leader(image, "", topic_id, partition)
            data.current_leader = Answer.LeaderIdAndEpoch(leader, epoch)
            leaders[leader] = None
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = Answer.ShareAcknowledgeTopicResponse(topic_id, [])
        topic.partitions.append(data)
    return Answer(
        acquisition_lock_timeout_ms=limits.lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=node_endpoints(
            image, leaders, request.identity.listener, Answer.NodeEndpoint
        ),
    )


FIRST_VERSION_WITH_RENEWAL: Final = 2
_ACKNOWLEDGED: Final = AcknowledgeOutcome(ErrorCode.NONE, "")
_NOT_LED: Final = AcknowledgeOutcome(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Nobody of the group has fetched this partition here."
)


class Acknowledging:
    """One request's acknowledgements.

    `outcomes`: by partition; complete when nothing is pending.  `on_settled(now_ms)`: called when
    the last of them has its outcome, if that is after `start` has returned.
    """

    def __init__(self, broker: Broker, group_id: str, member_id: str, version: int) -> None:
        self._broker = broker
        self._group_id = group_id
        self._member_id = member_id
        self._has_renewal = version >= FIRST_VERSION_WITH_RENEWAL
        self.is_settled = True
        self.outcomes: dict[PartitionKey, AcknowledgeOutcome] = {}
        self.on_settled: Callable[[int], None] | None = None

    def start(
        self,
        topics: Iterable[_Topic],
        is_renew_ack: bool,
        now_ms: int,
        denied: frozenset[str] = NONE_DENIED,
    ) -> None:
        """Process the acknowledgements in a request's `topics`; those of `denied` topics are
        refused."""
        valid: dict[PartitionKey, list[Acknowledgement]] = {}
        empty: list[PartitionKey] = []
        for topic in topics:
            image = self._broker.image.topic_by_id(topic.topic_id)
            for partition in topic.partitions:
                key = topic.topic_id, partition.partition_index
                acknowledgements = self._checked(partition.acknowledgement_batches, is_renew_ack)
                if image is None:
                    self._refuse(key, ErrorCode.UNKNOWN_TOPIC_ID)
                elif acknowledgements is None:
                    self._refuse(key, ErrorCode.INVALID_REQUEST)
                elif image.name in denied:
                    self._refuse(key, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                elif not 0 <= partition.partition_index < len(image.partitions):
                    self._refuse(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif acknowledgements:
                    valid[key] = acknowledgements
                else:
                    empty.append(key)
        if valid:
            self.outcomes.update(dict.fromkeys(empty, _ACKNOWLEDGED))
        self.is_settled = False

        def acknowledge(key: PartitionKey, on_done: OnPart[AcknowledgeOutcome]) -> None:
            leader = self._broker.share_partitions.get(SharePartition(self._group_id, *key))
            if leader is None:
                on_done(_NOT_LED, now_ms)
            else:
                leader.acknowledge(self._member_id, valid[key], on_done, now_ms)

        gather(valid, acknowledge, self._settle, now_ms)

    def _settle(self, outcomes: dict[PartitionKey, AcknowledgeOutcome], now_ms: int) -> None:
        self.outcomes.update(outcomes)
        self.is_settled = True
        if self.on_settled is not None:
            self.on_settled(now_ms)

    def _refuse(self, key: PartitionKey, error: ErrorCode) -> None:
        self.outcomes[key] = AcknowledgeOutcome(error, "")

    def _checked(
        self, batches: Iterable[_Batch], is_renew_ack: bool
    ) -> list[Acknowledgement] | None:
        """The acknowledgements of one partition; None if they are malformed, so that none
        counts."""
        highest = AcknowledgeType.RENEW if self._has_renewal else AcknowledgeType.REJECT
        checked: list[Acknowledgement] = []
        previous_last = -1
        for batch in batches:
            types = batch.acknowledge_types
            if (
                not previous_last <= batch.first_offset <= batch.last_offset
                or not types
                or (len(types) > 1 and len(types) != batch.last_offset - batch.first_offset + 1)
                or min(types) < AcknowledgeType.GAP
                or max(types) > highest
                or (AcknowledgeType.RENEW in types and not is_renew_ack)
            ):
                return None
            previous_last = batch.last_offset
            checked.append(
                Acknowledgement(
                    batch.first_offset, batch.last_offset, tuple(map(AcknowledgeType, types))
                )
            )
        return checked


def is_member_id(member_id: str | None) -> bool:
    """Whether a member id is valid.  Kafka: KafkaApis.isMemberIdValid."""
    return bool(member_id) and len(member_id or "") <= 36
