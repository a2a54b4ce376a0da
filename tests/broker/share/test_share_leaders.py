"""Share partitions when leaders, coordinators or logs change: what was stored counts, what was
acquired and not stored is delivered again."""

from __future__ import annotations

from kcluster.events.share_groups import SharePartitionEvent
from kcluster.events.words import text_of
from kcluster.evidence.recorder import Recorder
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.broker.coordinator.share_state.share_state_rig import ShareStateRig
from tests.broker.share.share_history import ShareDelivery, share_facts_of
from tests.broker.share.share_rig import (
    ACCEPT,
    REJECT,
    RELEASE,
    ClusterMember,
    acknowledged,
    acquired,
    cluster,
    configure_group,
    errors,
)
from tests.rig.cluster import CONTROLLER

LOCK_MS = 30_000


# ---------------------------------------------------------------------------------- leaders


def test_a_new_leader_goes_on_where_the_last_one_stored() -> None:
    rig = cluster(2, 2)
    first = ClusterMember(rig, at=1)
    assert acquired(first.fetch(0)) == [(0, 3, 1)]
    assert errors(first.acknowledge({0: [(0, 1, ACCEPT)]})) == {0: "NONE"}
    rig.move("orders", 0, 2)
    rig.run_for(1_000)
    assert acquired(ClusterMember(rig, at=2).fetch(0)) == [(2, 3, 1)]
    assert errors(first.acknowledge({0: [(2, 3, ACCEPT)]})) == {0: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert errors(first.fetch()) == {0: "NOT_LEADER_OR_FOLLOWER"}


def test_the_hint_names_the_new_leader() -> None:
    rig = cluster(1)
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    rig.move("orders", 0, 2)
    rig.run_for(1_000)
    answer = member.fetch()
    assert answer.responses[0].partitions[0].current_leader.leader_id == 2
    assert [node.node_id for node in answer.node_endpoints] == [2]


def test_gaps_between_stored_batches_are_not_taken_for_acknowledged() -> None:
    """KAFKA-18494: of 0 and 1, which a member holds, nothing was stored."""
    rig = cluster(2, 2, 2)
    holder, quick = ClusterMember(rig, at=1), ClusterMember(rig, at=1, member_id="b")
    assert acquired(holder.fetch(0, max_records=1)) == [(0, 1, 1)]
    assert acquired(quick.fetch(0, max_records=1)) == [(2, 3, 1)]
    quick.acknowledge({0: [(2, 3, ACCEPT)]})
    rig.move("orders", 0, 2)
    rig.run_for(1_000)
    assert acquired(ClusterMember(rig, at=2).fetch(0)) == [(0, 1, 1), (4, 5, 1)]


def test_a_leader_that_does_not_know_its_end_is_fenced_by_the_coordinator() -> None:
    rig = cluster(2)
    old = ClusterMember(rig, at=1)
    old.fetch(0)
    rig.cut(1, CONTROLLER)
    rig.cut(1, 3)
    rig.wait(lambda: rig.partition().leader not in (1, None), "another leader")
    leader = rig.partition().leader or 0
    rig.run_for(1_000)
    new = ClusterMember(rig, at=leader, member_id="b")
    assert acquired(new.fetch(0)) == [(0, 1, 1)]
    assert errors(old.acknowledge({0: [(0, 1, ACCEPT)]})) == {0: "NOT_LEADER_OR_FOLLOWER"}
    assert errors(new.acknowledge({0: [(0, 1, ACCEPT)]})) == {0: "NONE"}


def test_state_that_was_initialized_again_is_loaded_again() -> None:
    """As by AlterShareGroupOffsets: the leader's own state counts no more."""
    rig = cluster(2)
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    rig.initialize(state_epoch=2, start_offset=1)
    assert errors(member.acknowledge({0: [(0, 1, ACCEPT)]})) == {0: "NOT_LEADER_OR_FOLLOWER"}
    answer = member.fetch()
    assert acquired(answer) == [(1, 1, 1)]


# ----------------------------------------------------------------------------- coordinators


def test_what_cannot_be_stored_is_delivered_again_when_its_lock_has_ended() -> None:
    rig = cluster(2)
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    for broker in (2, 3):
        rig.cut(1, broker)
    failed = member.acknowledge({0: [(0, 1, ACCEPT)]})
    assert errors(failed) == {0: "UNKNOWN_SERVER_ERROR"}, "the coordinator could not be asked"
    for broker in (2, 3):
        rig.heal(1, broker)
    rig.run_for(10_000)
    assert acquired(member.fetch()) == [(0, 1, 2)]
    assert errors(member.acknowledge({0: [(0, 1, ACCEPT)]})) == {0: "NONE"}


def test_a_lock_that_comes_back_from_a_failed_store_still_ends() -> None:
    """Meanwhile the timer of the locks has looked, and found nothing to wait for."""
    rig = cluster(1, 1, of_brokers={"request.timeout.ms": 1_000})
    member = ClusterMember(rig, at=1)
    assert acquired(member.fetch(0, max_records=1)) == [(0, 0, 1)]
    rig.run_for(20_000)
    assert acquired(member.fetch(max_records=1)) == [(1, 1, 1)]
    rig.run_for(7_000)
    for broker in (2, 3):
        rig.cut(1, broker)
    assert errors(member.acknowledge({0: [(1, 1, ACCEPT)]})) == {0: "UNKNOWN_SERVER_ERROR"}
    for broker in (2, 3):
        rig.heal(1, broker)
    assert acquired(member.fetch()) == [(0, 0, 2)], "its lock ended while the store was tried"
    rig.run_for(20_000)
    assert acquired(member.fetch()) == [(1, 1, 2)]


def test_a_state_is_loaded_behind_the_writes_of_whoever_held_it_before() -> None:
    """The group's last session ends while an acknowledgement is still to be stored."""
    rig = cluster(2, 1)
    member = ClusterMember(rig, at=1)
    assert acquired(member.fetch(0, max_records=1)) == [(0, 1, 1)]
    for broker in (2, 3):
        rig.cut(1, broker)
    member.send_fetch(acks={0: [(0, 1, ACCEPT)]})
    rig.run_for(1_000)
    member.line.close()
    other = ClusterMember(rig, at=1, member_id="b")
    other.send_fetch(0, max_wait_ms=120_000)
    rig.run_for(1_000)
    for broker in (2, 3):
        rig.heal(1, broker)
    # The member had acquired 2 with its last fetch.
    assert acquired(other.line.outcome(120_000)) == [(2, 2, 2)]


def test_an_answer_waits_for_the_store_and_a_second_acknowledgement_is_refused() -> None:
    rig = cluster(2, latency_ms=50)
    member, same = ClusterMember(rig, at=1), ClusterMember(rig, at=1)
    member.fetch(0)
    same.epoch = 1
    began_ms = rig.now_ms
    acks = {0: [(0, 1, ACCEPT)]}
    member.send_fetch(acks=acks, max_wait_ms=0)
    rig.run_for(1)
    assert errors(same.acknowledge(acks, epoch=2)) == {0: "INVALID_RECORD_STATE"}
    assert acknowledged(member.line.outcome()) == {0: "NONE"}
    assert rig.now_ms - began_ms >= 100, "a round trip to the coordinator"


def test_without_its_state_a_share_partition_is_not_read() -> None:
    rig = ShareStateRig()
    answer = ClusterMember(rig, at=1).fetch(0)
    assert errors(answer) == {0: "UNKNOWN_SERVER_ERROR"}
    assert rig.initialize(start_offset=0) == "NONE"
    rig.produce(b"v", to=1)
    rig.run_for(1_000)
    assert acquired(ClusterMember(rig, at=1).fetch(0)) == [(0, 0, 1)]


def test_a_state_that_makes_no_sense_is_not_read() -> None:
    rig = cluster(2)
    assert rig.write((0, 0, 9, 1), start=0) == "NONE"
    assert errors(ClusterMember(rig, at=1).fetch(0)) == {0: "UNKNOWN_SERVER_ERROR"}


# -------------------------------------------------------------------------------------- logs


def test_what_the_log_has_lost_is_settled_and_the_start_never_goes_back() -> None:
    """KAFKA-19859."""
    rig = cluster(2, 2, 2)
    member = ClusterMember(rig, at=1)
    assert acquired(member.fetch(0, batch_size=2)) == [(0, 1, 1), (2, 3, 1), (4, 5, 1)]
    member.acknowledge({0: [(0, 5, RELEASE)]})
    assert acquired(member.fetch(max_records=1, share_acquire_mode=1)) == [(0, 0, 2)]
    partition = m.DeleteRecordsRequest.DeleteRecordsPartition(0, 5)
    topic = m.DeleteRecordsRequest.DeleteRecordsTopic("orders", [partition])
    rig.ask_and_wait(1, ApiKey.DELETE_RECORDS, 2, m.DeleteRecordsRequest([topic], 5_000))
    rig.run_for(1_000)
    assert acquired(member.fetch()) == [], "the log start is noticed"
    assert acquired(member.fetch()) == [(5, 5, 2)]
    assert errors(member.acknowledge({0: [(0, 0, ACCEPT)]})) == {0: "NONE"}
    assert errors(member.acknowledge({0: [(5, 5, ACCEPT)]})) == {0: "NONE"}
    assert rig.read()[1:] == (5, [(5, 5, 2, 2)])


# ------------------------------------------------------------------------------------ quotas


def test_what_a_quota_holds_back_is_delivered_again_when_its_lock_has_ended() -> None:
    """As in Kafka, which acquires first and empties the answer afterwards."""
    rig = cluster()
    rig.produce(*[b"v" * 1_000] * 20, to=1)
    kind = m.AlterClientQuotasRequest
    entity = [kind.EntityData("client-id", None)]
    entry = kind.EntryData(entity, [kind.OpData("consumer_byte_rate", 1_000.0, False)])
    rig.ask_and_wait(1, ApiKey.ALTER_CLIENT_QUOTAS, 1, kind([entry]))
    rig.run_for(1_000)
    member = ClusterMember(rig, at=1)
    held_back = member.fetch(0)
    assert held_back.throttle_time_ms > 0
    assert acquired(held_back) == []
    assert acquired(member.fetch()) == [], "they are acquired"
    rig.run_for(LOCK_MS)
    assert member.fetch().throttle_time_ms > 0
    kind_of_all = kind.EntryData(entity, [kind.OpData("consumer_byte_rate", 0.0, True)])
    rig.ask_and_wait(1, ApiKey.ALTER_CLIENT_QUOTAS, 1, kind([kind_of_all]))
    rig.run_for(2 * LOCK_MS)
    assert acquired(member.fetch()) == [(0, 19, 3)]


# -------------------------------------------------------------------------------- what is known


def test_events_tell_where_a_leader_begins_and_whose_locks_expired() -> None:
    rig = cluster(2, 2)
    configure_group(rig, "share.delivery.count.limit", "2")
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    member.acknowledge({0: [(1, 1, ACCEPT), (3, 3, RELEASE)]})
    assert acquired(member.fetch()) == [(3, 3, 2)]
    rig.run_for(LOCK_MS)
    assert [text_of(event) for event in rig.events_of(SharePartitionEvent)] == [
        "broker 1 delivers orders-0 from offset 0, 0 records in flight",
        "locks on 3 records of orders-0 expired: 2 to be delivered again, "
        "1 archived after the last delivery allowed",
    ]


def test_history_has_every_delivery_and_acknowledgement() -> None:
    rig = cluster(4)
    recorder = Recorder(rig.dispatcher, rig.plan)
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    member.acknowledge({0: [(0, 3, [ACCEPT, RELEASE, RELEASE, REJECT])]})
    member.fetch(acks={0: [(0, 0, ACCEPT)]})
    facts = [
        (fact.first_offset, fact.last_offset, fact.delivery_count)
        if isinstance(fact, ShareDelivery)
        else (fact.first_offset, fact.last_offset, fact.type, fact.error)
        for fact in share_facts_of(recorder)
    ]
    assert facts == [
        (0, 3, 1),
        (0, 0, "accept", ""),
        (1, 2, "release", ""),
        (3, 3, "reject", ""),
        (0, 0, "accept", ""),
        (1, 2, 2),
    ]
