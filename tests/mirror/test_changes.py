"""The events of a real metadata log, and the reasons that its records show."""

from __future__ import annotations

from msgspec.structs import replace

from kcluster.events.brokers import BrokerFenced, BrokerRegistered, ControlledShutdown
from kcluster.events.partitions import (
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    ReassignmentCompleted,
    ReassignmentStarted,
)
from kcluster.events.reasons import (
    CaughtUp,
    ElectionKind,
    Fenced,
    Fencing,
    OutOfSync,
    Requested,
    ShuttingDown,
    Unreported,
)
from kcluster.events.topics import ConfigChanged, PartitionsAdded, TopicCreated, TopicDeleted
from kcluster.metadata.records import (
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
)
from kcluster.mirror.changes import MOVE, Applied, Circumstances, election_kind, events_of
from tests.mirror.captured import applied

ORDERS = PartitionRegistration(b"o" * 16, 0, (1, 2, 3), (1, 2, 3), 1, 4, 9)
BROKER = BrokerRegistration(1, 11, (), None, fenced=False)
FENCE = Applied(BrokerRegistrationChangeRecord(1, 11, fenced=True), BROKER)


def to(**fields: object) -> Applied:
    """orders-0 with other fields."""
    return Applied(PartitionRecord(replace(ORDERS, **fields)), ORDERS, "orders")


def events(*records: Applied, known: Circumstances | None = None) -> list[object]:
    return [event for event, _ in events_of(records, known or Circumstances(), at_ms=10_000)]


# -------------------------------------------------------------------------------- a whole run


def test_run__its_events_tell_what_was_done() -> None:
    _, changes = applied()
    found = [change.event for change in changes]
    assert [x for x in found if isinstance(x, TopicCreated)] == [
        TopicCreated("orders", 2, 2, {}),
        TopicCreated("more", 1, 1, {"min.insync.replicas": "1"}),
    ]
    assert PartitionsAdded("more", 1, 2) in found
    assert TopicDeleted("more") in found
    assert [x.configs for x in found if isinstance(x, ConfigChanged)] == [{"retention.ms": "60000"}]
    registered = [x for x in found if isinstance(x, BrokerRegistered) and x.broker == 2]
    assert [(x.previous_epoch is None, x.clean) for x in registered] == [
        (True, True),
        (False, False),
        (False, True),
    ], "first, after a kill, after a controlled shutdown"
    assert [x for x in found if isinstance(x, ControlledShutdown)] == [ControlledShutdown(2, 1)]


def test_run__a_reassignment_begins_and_ends() -> None:
    _, changes = applied()
    found = [change.event for change in changes]
    (started,) = (x for x in found if isinstance(x, ReassignmentStarted))
    (completed,) = (x for x in found if isinstance(x, ReassignmentCompleted))
    assert (started.old_replicas, started.replicas) == ((3, 1), (3, 2))
    assert (completed.added, completed.removed) == ((2,), (1,))
    assert completed.reason == CaughtUp(3, (2,))


def test_run__a_dead_leader_is_replaced_because_it_was_fenced() -> None:
    _, changes = applied()
    elected, cause = next((x.event, x.cause) for x in changes if isinstance(x.event, LeaderElected))
    assert isinstance(elected, LeaderElected)
    assert elected.old_leader == 2
    assert elected.reason == Fenced(2, Fencing.UNREPORTED)
    assert isinstance(cause, BrokerFenced)


# ----------------------------------------------------------------------------------- reasons


def test_fenced__unreported_unless_more_is_known() -> None:
    assert events(FENCE) == [BrokerFenced(1, Fencing.UNREPORTED)]


def test_fenced__a_process_that_is_down_sends_no_heartbeat() -> None:
    known = Circumstances(silent_since_ms={1: 1_000})
    assert events(FENCE, known=known) == [BrokerFenced(1, Fencing.SESSION_EXPIRED, 9_000)]


def test_fenced__a_process_that_shuts_down_asks_for_it() -> None:
    known = Circumstances(shutting_down=(1,))
    assert events(FENCE, known=known) == [BrokerFenced(1, Fencing.SHUTDOWN_COMPLETE)]


def test_leader__the_fencing_of_the_old_one_is_the_cause() -> None:
    found = events_of([to(leader=2, isr=(2, 3)), FENCE], Circumstances(), at_ms=0)
    fencing, _ = found[0]
    kinds = [event.kind for event, _ in found]
    assert kinds == ["broker_fenced", "isr_shrunk", "leader_elected"]
    assert all(cause is fencing for _, cause in found[1:])


def test_leader__a_controlled_shutdown_counts_the_leaders_to_move() -> None:
    leaving = BrokerRegistrationChangeRecord(1, 11, in_controlled_shutdown=True)
    shutdown, shrunk, elected = events(Applied(leaving, BROKER), to(leader=2, isr=(2, 3)))
    assert shutdown == ControlledShutdown(1, leaders_to_move=1)
    assert isinstance(shrunk, IsrShrunk)
    assert shrunk.reason == ShuttingDown(1)
    assert isinstance(elected, LeaderElected)
    assert elected.election is ElectionKind.IN_SYNC


def test_isr__only_its_leader_shrinks_it_when_no_broker_left() -> None:
    (shrunk,) = events(to(isr=(1, 2)))
    assert isinstance(shrunk, IsrShrunk)
    assert shrunk.reason == OutOfSync(1, (3,))


def test_isr__only_its_leader_expands_it() -> None:
    behind = replace(ORDERS, isr=(1, 2))
    record: MetadataRecord = PartitionRecord(ORDERS)
    (expanded,) = events(Applied(record, behind, "orders"))
    assert isinstance(expanded, IsrExpanded)
    assert expanded.reason == CaughtUp(1, (3,))


def test_leader__a_user_who_asked_is_the_reason() -> None:
    for asked, kind in (("preferred", ElectionKind.PREFERRED), (MOVE, ElectionKind.REQUESTED)):
        (elected,) = events(to(leader=2), known=Circumstances(requested={("orders", 0): asked}))
        assert isinstance(elected, LeaderElected)
        assert elected.reason == Requested("" if asked == MOVE else asked)
        assert elected.election is kind


def test_leader__without_any_sign_the_reason_is_unreported() -> None:
    (elected,) = events(to(leader=2))
    assert isinstance(elected, LeaderElected)
    assert elected.reason == Unreported()


# ---------------------------------------------------------------------------- kinds of elections


def test_election__its_kind_follows_from_where_the_leader_stood() -> None:
    after = replace(ORDERS, leader=2)
    cases = {
        ElectionKind.IN_SYNC: replace(ORDERS, replicas=(3, 2, 1)),
        ElectionKind.ELIGIBLE: replace(ORDERS, isr=(1,), elr=(2,)),
        ElectionKind.LAST_KNOWN_LEADER: replace(ORDERS, isr=(), last_known_elr=(2,)),
        ElectionKind.UNCLEAN: replace(ORDERS, isr=(1,)),
    }
    assert {kind: election_kind(old, after) for kind, old in cases.items()} == {
        kind: kind for kind in cases
    }


def test_election__an_unclean_one_is_not_clean() -> None:
    old = replace(ORDERS, isr=(1,))
    new = replace(ORDERS, isr=(2,), leader=2, recovering=True)
    _, elected = events(Applied(PartitionRecord(new), old, "orders"))
    assert isinstance(elected, LeaderElected)
    assert not elected.clean


def test_election__of_the_replica_whose_catching_up_ends_a_reassignment_is_clean() -> None:
    old = replace(ORDERS, replicas=(1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(1,))
    new = replace(ORDERS, replicas=(2, 3, 4), isr=(4,), leader=4)
    assert election_kind(old, new) is ElectionKind.IN_SYNC
    assert election_kind(old, replace(new, recovering=True)) is ElectionKind.UNCLEAN
