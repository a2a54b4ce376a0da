"""A replica's role, watermark and ISR: what moves them, and what holds them back."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.config.kafka.definitions import BrokerConfig, TopicConfig
from kcluster.metadata.records import BrokerRegistration, PartitionRegistration
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Record, build_batch

LAG_MS = 30_000
ALL = -1


def registration(**changes: Any) -> PartitionRegistration:
    fields: dict[str, Any] = {
        "topic_id": b"t" * 16,
        "partition": 0,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return PartitionRegistration(**(fields | changes))


class Leader:
    """A leader on broker 1 with followers 2 and 3, and the clock that it sees."""

    def __init__(self, min_insync_replicas: int = 1, **changes: Any) -> None:
        self.brokers = {
            broker_id: BrokerRegistration(
                broker_id, 10 + broker_id, (BrokerEndpoint("h", 9),), None, fenced=False
            )
            for broker_id in (1, 2, 3)
        }
        config = TopicConfig.resolve(
            BrokerConfig.resolve(), {"min.insync.replicas": str(min_insync_replicas)}
        )
        self.last_fetches: dict[int, int] = {}
        log = Log(b"t" * 16, 0)
        first = registration(**changes)
        self.replica = Replica(
            "t", first, 1, log, config, self.brokers, self.last_fetches, LAG_MS, {}
        )
        self.replica.lead(first, 0)

    def append(self, count: int = 1, acks: int = ALL, now_ms: int = 0) -> ErrorCode:
        records = [Record(i, 0, None, b"v", ()) for i in range(count)]
        return self.replica.append_as_leader(memoryview(build_batch(records)), acks, now_ms).error

    def fetch(self, follower: int, offset: int, now_ms: int = 0) -> bool:
        self.last_fetches[follower] = now_ms
        epoch = self.brokers[follower].epoch
        return self.replica.record_fetch(follower, epoch, offset, 0, now_ms)


def test_watermark__is_the_offset_that_every_member_of_the_isr_has() -> None:
    leader = Leader()
    leader.append(5)
    leader.fetch(2, 5)
    assert leader.replica.high_watermark == 0
    leader.fetch(3, 3)
    assert leader.replica.high_watermark == 3
    leader.fetch(3, 5)
    assert leader.replica.high_watermark == 5


def test_watermark__of_a_lone_isr_moves_with_the_append() -> None:
    leader = Leader(replicas=(1,), isr=(1,))
    leader.append(2)
    assert leader.replica.high_watermark == 2


def test_watermark__does_not_advance_below_min_insync_replicas() -> None:
    # KIP-966: the remaining replica could otherwise commit records that the ELR lacks.
    leader = Leader(min_insync_replicas=2, isr=(1,))
    assert leader.append(acks=1) == ErrorCode.NONE
    assert leader.replica.high_watermark == 0


def test_watermark__does_not_wait_for_a_follower_that_has_only_begun_to_fetch() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(5)
    leader.fetch(3, 0)
    leader.fetch(2, 5)
    assert leader.replica.high_watermark == 5


def test_watermark__waits_for_a_caught_up_follower_that_is_about_to_join() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 0, now_ms=10)
    leader.append(1, now_ms=20)
    leader.fetch(2, 1, now_ms=20)
    assert leader.replica.high_watermark == 0
    leader.fetch(3, 1, now_ms=20)
    assert leader.replica.high_watermark == 1


def test_watermark__does_not_wait_for_a_fenced_follower() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 0, now_ms=10)
    leader.brokers[3] = BrokerRegistration(3, 13, (BrokerEndpoint("h", 9),), None, fenced=True)
    leader.append(1, now_ms=20)
    leader.fetch(2, 1, now_ms=20)
    assert leader.replica.high_watermark == 1


def test_append__acks_all_is_refused_below_min_insync_replicas() -> None:
    leader = Leader(min_insync_replicas=2, isr=(1,))
    assert leader.append(acks=ALL) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.replica.log.log_end_offset == 0


def test_append__min_insync_replicas_is_capped_at_the_number_of_replicas() -> None:
    leader = Leader(min_insync_replicas=2, replicas=(1,), isr=(1,))
    assert leader.append(acks=ALL) == ErrorCode.NONE


def test_acks__not_enough_replicas_after_append_when_the_isr_shrank_meanwhile() -> None:
    leader = Leader(min_insync_replicas=2, isr=(1, 2))
    leader.append()
    leader.fetch(2, 1)
    leader.fetch(3, 1)
    leader.replica.lead(registration(isr=(1,), partition_epoch=1), 5)
    assert leader.replica.acks_reached(1) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_acks__a_former_leader_answers_not_leader() -> None:
    leader = Leader()
    leader.append()
    leader.replica.follow(registration(leader=2, leader_epoch=1, partition_epoch=1))
    assert leader.replica.acks_reached(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_isr__a_follower_behind_for_too_long_is_proposed_out() -> None:
    leader = Leader()
    leader.append(now_ms=1_000)
    leader.fetch(2, 1, now_ms=1_000)
    assert leader.replica.propose_shrink(LAG_MS) is None
    proposal = leader.replica.propose_shrink(LAG_MS + 1)
    assert proposal is not None
    assert proposal.isr == (1, 2)
    assert proposal.maximal_isr == (1, 2, 3)


def test_isr__a_quiet_caught_up_follower_is_not_late_when_records_come_again() -> None:
    # Incremental fetches (KIP-227) do not name a partition where nothing happens.
    leader = Leader()
    leader.fetch(2, 0, now_ms=0)
    leader.fetch(3, 0, now_ms=0)
    leader.last_fetches.update({2: 99_500, 3: 99_600})
    leader.append(now_ms=100_000)
    assert leader.replica.propose_shrink(100_001) is None


def test_isr__a_proposed_shrink_holds_the_watermark_until_it_is_committed() -> None:
    leader = Leader()
    leader.append(now_ms=1)
    leader.fetch(2, 1, now_ms=1)
    leader.replica.propose_shrink(LAG_MS + 1)
    assert leader.replica.high_watermark == 0
    assert leader.replica.commit_isr(registration(isr=(1, 2), partition_epoch=1), LAG_MS + 2)
    assert leader.replica.high_watermark == 1


def test_isr__a_member_fenced_by_the_controller_no_longer_holds_the_watermark() -> None:
    leader = Leader()
    leader.append()
    leader.fetch(2, 1)
    leader.brokers[3] = BrokerRegistration(3, 13, (BrokerEndpoint("h", 9),), None, fenced=True)
    leader.replica.lead(registration(isr=(1, 2), partition_epoch=1), 5)
    assert leader.replica.high_watermark == 1


def test_isr__a_follower_that_has_all_that_is_committed_is_proposed_in() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(2)
    leader.fetch(2, 2)
    leader.fetch(3, 1)
    assert leader.replica.propose_expansion(3) is None
    leader.fetch(3, 2)
    proposal = leader.replica.propose_expansion(3)
    assert proposal is not None
    assert proposal.isr == (1, 2, 3)
    assert leader.replica.propose_expansion(3) is None, "one proposal at a time"


@pytest.mark.parametrize(
    "broker",
    [
        pytest.param(
            BrokerRegistration(3, 13, (BrokerEndpoint("h", 9),), None, fenced=True), id="fenced"
        ),
        pytest.param(
            BrokerRegistration(
                3, 13, (BrokerEndpoint("h", 9),), None, fenced=False, in_controlled_shutdown=True
            ),
            id="going down",
        ),
        pytest.param(
            BrokerRegistration(3, 99, (BrokerEndpoint("h", 9),), None, fenced=False),
            id="another life",
        ),
    ],
)
def test_isr__an_ineligible_broker_is_not_proposed(broker: BrokerRegistration) -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 0)
    leader.brokers[3] = broker
    assert leader.replica.propose_expansion(3) is None


def test_isr__a_refused_proposal_leaves_the_committed_isr() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 0)
    proposal = leader.replica.propose_expansion(3)
    assert proposal is not None
    leader.replica.drop_proposal(proposal)
    assert leader.replica.maximal_isr == (1, 2)


def test_role__a_new_epoch_starts_at_the_log_end() -> None:
    leader = Leader()
    leader.append(3)
    assert leader.replica.lead(registration(leader_epoch=4, partition_epoch=4), 9)
    assert leader.replica.leader_epoch_start_offset == 3
    assert leader.replica.log.epochs.entries == [(0, 0), (4, 3)]


def test_role__only_a_change_of_leader_or_epoch_restarts_a_follower() -> None:
    leader = Leader()
    assert leader.replica.follow(registration(leader=2, leader_epoch=1, partition_epoch=1))
    assert not leader.replica.follow(
        registration(leader=2, leader_epoch=1, partition_epoch=2, isr=(2,))
    )


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, ErrorCode.NONE),
        (2, ErrorCode.NONE),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epoch__in_the_request_is_compared(epoch: int, answer: ErrorCode) -> None:
    leader = Leader(leader_epoch=2)
    assert leader.replica.check_leader(epoch) == answer


def test_epoch__is_compared_before_leadership() -> None:
    leader = Leader()
    leader.replica.follow(registration(leader=2, leader_epoch=1, partition_epoch=1))
    assert leader.replica.check_leader(0) == ErrorCode.FENCED_LEADER_EPOCH
    assert leader.replica.check_leader(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_follower__takes_the_leaders_watermark_no_further_than_its_own_log() -> None:
    leader = Leader()
    leader.append(2)
    leader.replica.follow(registration(leader=2, leader_epoch=1, partition_epoch=1))
    assert leader.replica.follow_high_watermark(7)
    assert leader.replica.high_watermark == 2


def test_truncation__takes_the_watermark_down_with_the_log() -> None:
    leader = Leader(replicas=(1,), isr=(1,))
    leader.append(2)
    leader.append(2)
    leader.replica.truncate_to(2)
    assert (leader.replica.log.log_end_offset, leader.replica.high_watermark) == (2, 2)


def test_lead__again_after_others_forgets_the_offsets_of_followers() -> None:
    # Another broker led epoch 1, and this one learned of it only with epoch 2: followers may have
    # truncated since and hold other records, so their earlier fetch offsets prove nothing.
    leader = Leader()
    leader.append(3)
    leader.fetch(2, 3)
    again = registration(leader_epoch=2, partition_epoch=2, isr=(1, 2))
    assert leader.replica.lead(again, 10)
    assert leader.replica.high_watermark == 0
    leader.fetch(2, 3, now_ms=20)
    assert leader.replica.high_watermark == 3


def test_retention__a_log_far_above_its_size_is_shortened_at_once() -> None:
    record = Record(0, 0, None, bytes(4 << 20), ())
    size = len(build_batch([record]))
    leader = Leader(isr=(1,), replicas=(1,)).replica
    follower = Leader().replica
    limit = TopicConfig(
        max_message_bytes=2 * size, retention_bytes=2 * size, internal_segment_bytes=size
    )
    for replica in (leader, follower):
        replica.configure(limit)
    for end in range(1, 11):
        (batch,) = leader.append_as_leader(memoryview(build_batch([record])), ALL, 0).batches
        follower.append_as_follower([batch], 0)
        follower.high_watermark = end
        kept = [one.log.log_end_offset - one.log.log_start_offset for one in (leader, follower)]
        assert kept == ([end, end] if end < 10 else [2, 2])
