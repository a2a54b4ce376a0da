"""ShareAcknowledge (API 79, v1-2): a member's acknowledgements of its share group's records.

Owns: the session's part in it, the shape of the answer.  Never: changes a record's state
(broker/share/window.py does).
Kafka: KafkaApis.handleShareAcknowledgeRequest; KIP-932.
Behaviour:
- answered when the share coordinator has stored the change;
- the final epoch ends the session and releases what the member still holds.
Versions:
- v2: renewal of acquisition locks (KIP-1222)
"""

from __future__ import annotations

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.share.acknowledging import Acknowledging, is_member_id
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.broker.serving.leader_hints import current_leader, node_endpoints
from kcluster.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import SHARE_VERSION

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
    acknowledging.start(body.topics, body.is_renew_ack, now_ms)

    def finished(at_ms: int) -> Answer:
        if body.share_session_epoch == FINAL_EPOCH:
            broker.end_share_session(session, at_ms)
        return _answer(broker, group_id, acknowledging)

    if acknowledging.is_settled:
        return finished(now_ms)
    acknowledging.on_settled = lambda at_ms: broker.reply(request, finished(at_ms))
    return PARKED


def _answer(broker: Broker, group_id: str, acknowledging: Acknowledging) -> Answer:
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
        node_endpoints=node_endpoints(image, leaders, Answer.NodeEndpoint),
    )
