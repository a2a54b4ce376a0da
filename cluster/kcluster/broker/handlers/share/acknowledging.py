"""The acknowledgements in one ShareFetch or ShareAcknowledge request, and their outcomes.

Owns: the detection of malformed acknowledgements; the outcomes, once every partition has one.
Never: decides whether a record can be acknowledged (broker/share/window.py does).  Kafka:
KafkaApis.validateAcknowledgementBatches, handleAcknowledgements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.share.in_flight import AcknowledgeType
from kcluster.broker.share.sessions import PartitionKey
from kcluster.broker.share.window import Acknowledgement, AcknowledgeOutcome
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    _Topic = m.ShareFetchRequest.FetchTopic | m.ShareAcknowledgeRequest.AcknowledgeTopic
    _Batch = (
        m.ShareFetchRequest.AcknowledgementBatch | m.ShareAcknowledgeRequest.AcknowledgementBatch
    )

FIRST_VERSION_WITH_RENEWAL: Final = 2
_ACKNOWLEDGED: Final = AcknowledgeOutcome(ErrorCode.NONE, "")
_NOT_LED: Final = AcknowledgeOutcome(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Nobody of the group has fetched this partition here."
)


class Acknowledging:
    """One request's acknowledgements.

    `outcomes`: by partition; complete when nothing is pending.  `on_settled(now_ms)`: called when
    the last of them has its outcome, unless that happens within `start`.
    """

    def __init__(self, broker: Broker, group_id: str, member_id: str, version: int) -> None:
        self._broker = broker
        self._group_id = group_id
        self._member_id = member_id
        self._has_renewal = version >= FIRST_VERSION_WITH_RENEWAL
        self._pending = 0
        self.outcomes: dict[PartitionKey, AcknowledgeOutcome] = {}
        self.on_settled: Callable[[int], None] | None = None

    @property
    def is_settled(self) -> bool:
        return not self._pending

    def start(self, topics: Iterable[_Topic], is_renew_ack: bool, now_ms: int) -> None:
        """Process the acknowledgements in a request's `topics`."""
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
                elif not 0 <= partition.partition_index < len(image.partitions):
                    self._refuse(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif acknowledgements:
                    valid[key] = acknowledgements
                else:
                    empty.append(key)
        if valid:
            self.outcomes.update(dict.fromkeys(empty, _ACKNOWLEDGED))
        self._pending = len(valid)
        for key, acknowledgements in valid.items():
            self._acknowledge(key, acknowledgements, now_ms)

    def _refuse(self, key: PartitionKey, error: ErrorCode) -> None:
        self.outcomes[key] = AcknowledgeOutcome(error, "")

    def _checked(
        self, batches: Iterable[_Batch], is_renew_ack: bool
    ) -> list[Acknowledgement] | None:
        """The acknowledgements of one partition; None if any is malformed, because then none
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

    def _acknowledge(
        self, key: PartitionKey, acknowledgements: list[Acknowledgement], now_ms: int
    ) -> None:
        leader = self._broker.share_partitions.get(SharePartition(self._group_id, *key))

        def done(outcome: AcknowledgeOutcome, at_ms: int) -> None:
            self.outcomes[key] = outcome
            self._pending -= 1
            if not self._pending and self.on_settled is not None:
                self.on_settled(at_ms)

        if leader is None:
            done(_NOT_LED, now_ms)
        else:
            leader.acknowledge(self._member_id, acknowledgements, done, now_ms)


def is_member_id(member_id: str | None) -> bool:
    """Whether a member id is valid.  Kafka: KafkaApis.isMemberIdValid."""
    return bool(member_id) and len(member_id or "") <= 36
