from __future__ import annotations

from kcluster.contract import PeerDisconnected
from kcluster.events.brokers import BrokerFenced, RegistrationRefused
from kcluster.events.partitions import IsrShrunk, LeaderElected
from kcluster.metadata.records import NO_LEADER
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import CLUSTER_ID, Controller


def test_membership__unfenced_once_their_registration_is_applied() -> None:
    t = Controller()
    t.register(4)
    early = t.heartbeat(4, follow=False)
    assert (early.is_fenced, early.is_caught_up) == (True, False)
    late = t.heartbeat(4)
    assert (late.is_fenced, late.is_caught_up) == (False, True)
    assert t.follow(1).brokers[4].is_active


def test_membership__want_fence_keeps_a_broker_fenced() -> None:
    t = Controller()
    t.register(4)
    assert t.heartbeat(4, want_fence=True).is_fenced
    assert t.heartbeat(1, want_fence=True).is_fenced, "an unfenced one may ask for it"


def test_membership__epoch_is_the_offset_of_the_registration() -> None:
    t = Controller()
    response = t.register(4)
    image = t.follow(4)
    assert image.brokers[4].epoch == response.broker_epoch == image.offset


def test_membership__a_broker_silent_for_the_session_timeout_is_fenced() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    t.die(1)
    p = t.partition("orders")
    assert (p.leader, p.isr, p.leader_epoch, p.partition_epoch) == (2, (2, 3), 1, 1)
    reason = "broker 1 fenced: no heartbeat for 9000 ms"
    assert t.texts(BrokerFenced) == [f"broker 1: {reason}"]
    assert t.texts(IsrShrunk) == [f"orders-0: ISR [1, 2, 3] -> [2, 3]: {reason}"]
    assert t.texts(LeaderElected) == [
        f"orders-0: leader 1 -> 2, epoch 1: {reason}; first active replica in the ISR"
    ]
    fenced, shrunk, elected = (
        next(note for note in t.notes if isinstance(note.event, kind))
        for kind in (BrokerFenced, IsrShrunk, LeaderElected)
    )
    assert shrunk.cause == elected.cause == fenced.note_id
    assert fenced.at_ms == 9_000, "the last heartbeat was at 0"


def test_membership__fencing_a_follower_does_not_bump_the_leader_epoch() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    t.die(3)
    p = t.partition("orders")
    assert (p.leader, p.isr, p.leader_epoch, p.partition_epoch) == (1, (1, 2), 0, 1)


def test_membership__the_longest_silent_broker_is_fenced_first() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]], min_insync_replicas="1")
    t.silent.add(2)
    t.run(4_000)
    t.silent.add(1)
    t.run(12_000)
    assert [event.broker for event in t.events(BrokerFenced)] == [2, 1]
    assert t.partition("orders").leader == 3


def test_membership__a_new_incarnation_waits_for_the_old_session() -> None:
    t = Controller()
    contact_ms = t.last_contact_ms(1)
    assert t.register(1).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    left_ms = contact_ms + 9_000 - t.now_ms
    assert t.events(RegistrationRefused) == [RegistrationRefused(1, left_ms)]
    t.die(1)
    assert t.register(1).error_code == ErrorCode.NONE


def test_membership__the_same_incarnation_only_updates_its_registration() -> None:
    t = Controller()
    before = t.epochs[1]
    again = t.register(1, new_incarnation=False)
    assert (again.error_code, again.broker_epoch) == (ErrorCode.NONE, before)
    assert t.node.image.brokers[1].is_active


def test_membership__an_unclean_restart_leaves_the_isr_on_registration() -> None:
    """It registered but never sent a heartbeat: no session holds the id."""
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    t.forget_contact(2)
    t.register(2)
    p = t.partition("orders")
    assert (p.isr, p.leader) == ((1, 3), 1)


def test_membership__stale_epoch_is_refused() -> None:
    t = Controller()
    old = t.epochs[1]
    t.die(1)
    t.start(1)
    stale = ErrorCode.STALE_BROKER_EPOCH
    beat = m.BrokerHeartbeatRequest(broker_id=1, broker_epoch=old, current_metadata_offset=99)
    assert t.ask(1, beat).error_code == stale
    ids = m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=old)
    assert t.ask(1, ids).error_code == stale
    assert t.ask(7, m.BrokerHeartbeatRequest(broker_id=7, broker_epoch=1)).error_code == stale


def test_membership__other_cluster_is_refused() -> None:
    t = Controller()
    request = m.BrokerRegistrationRequest(broker_id=9, cluster_id=CLUSTER_ID + "x")
    assert t.ask(9, request).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_membership__controlled_shutdown_ends_when_all_leaders_have_moved() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    first = t.heartbeat(1, want_shut_down=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    p = t.partition("orders")
    assert (p.leader, p.isr) == (2, (2, 3)), "moved in that very request"
    second = t.heartbeat(1, want_shut_down=True)
    assert not second.should_shut_down, "brokers 2 and 3 have not yet applied it"
    for broker in (2, 3):
        t.heartbeat(broker)
    third = t.heartbeat(1, want_shut_down=True)
    assert (third.should_shut_down, third.is_fenced) == (True, True)
    assert t.node.image.brokers[1].fenced
    assert len(t.texts(BrokerFenced)) == 1
    assert t.heartbeat(1, want_shut_down=True).should_shut_down, (
        "a repeated request gets the same answer"
    )
    assert len(t.texts(BrokerFenced)) == 1


def test_membership__a_new_controller_does_not_wait_for_what_the_last_one_moved() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    assert not t.heartbeat(1, want_shut_down=True).should_shut_down
    t.node.membership.take_over(t.now_ms)
    assert t.heartbeat(1, want_shut_down=True).should_shut_down


def test_membership__a_broker_without_leaders_may_shut_down_at_once() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    assert t.heartbeat(3, want_shut_down=True).should_shut_down
    assert t.partition("orders").isr == (1, 2)


def test_membership__clean_restart_stays_eligible_unclean_does_not() -> None:
    for clean, leader in ((True, 1), (False, NO_LEADER)):
        t = Controller()
        t.create("orders", [[1, 2]], min_insync_replicas="2")
        t.silent |= {1, 2}
        t.run(20_000)
        assert t.partition("orders").elr == (1, 2)
        t.start(1, previous_epoch=t.epochs[1] if clean else -1)
        assert t.partition("orders").leader == leader, clean


def test_membership__unregister() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    assert t.ask(1, m.UnregisterBrokerRequest(broker_id=1)).error_code == ErrorCode.NONE
    assert t.partition("orders").isr == (2, 3)
    assert 1 not in t.follow(2).brokers
    unknown = t.ask(1, m.UnregisterBrokerRequest(broker_id=1))
    assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    t.run(30_000)


def test_membership__each_broker_gets_its_own_block_of_producer_ids() -> None:
    t = Controller()
    starts = []
    for broker in (1, 2, 1):
        request = m.AllocateProducerIdsRequest(broker_id=broker, broker_epoch=t.epochs[broker])
        response = t.ask(broker, request)
        assert response.producer_id_len == 1000
        starts.append(response.producer_id_start)
    assert starts == [0, 1000, 2000]


def test_membership__a_lost_process_is_fenced_by_its_session_not_by_its_connection() -> None:
    t = Controller()
    t.create("orders", [[1, 2, 3]])
    t.step(PeerDisconnected(1))
    assert t.partition("orders").leader == 1
