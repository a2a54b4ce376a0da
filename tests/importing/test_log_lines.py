"""Lines of Kafka 4.3.1's logs, read as facts; lines that are not understood are counted."""

from __future__ import annotations

from kcluster.importing.log_lines import (
    AssignmentReplayed,
    BrokerSeen,
    ControllerActive,
    IsrBecame,
    IsrShrank,
    LeaderStarted,
    LoggedRegistration,
    LoggedUnfencing,
    LogReading,
    PartitionSeen,
    ReassignmentAccepted,
    SessionExpired,
    ShutdownStarted,
    TopicGone,
    TopicMade,
    in_order,
    read_log,
)
from tests.importing.outputs import reading_of


def test_controller_log__has_the_story_of_its_brokers() -> None:
    story = [
        (place.line, fact)
        for place, fact in in_order(reading_of("controller.log"))
        if isinstance(
            fact,
            SessionExpired
            | ShutdownStarted
            | LoggedRegistration
            | LoggedUnfencing
            | ControllerActive,
        )
    ]
    assert [fact for _, fact in story] == [
        ControllerActive(100),
        LoggedRegistration(2, True),
        LoggedRegistration(3, True),
        LoggedRegistration(1, True),
        LoggedUnfencing(3),
        LoggedUnfencing(2),
        LoggedUnfencing(1),
        SessionExpired(2),
        LoggedRegistration(2, False),
        LoggedUnfencing(2),
        ShutdownStarted(1),
        SessionExpired(1),
        LoggedRegistration(1, False),
        LoggedUnfencing(1),
        SessionExpired(3),
        LoggedUnfencing(3),
        LoggedRegistration(3, False),
        LoggedUnfencing(3),
        SessionExpired(1),
        SessionExpired(3),
        LoggedRegistration(1, False),
        LoggedRegistration(3, False),
        LoggedUnfencing(1),
        LoggedUnfencing(3),
    ]


def test_controller_log__has_topics_reassignments_and_racks() -> None:
    facts = [fact for _, fact in in_order(reading_of("controller.log"))]
    assert BrokerSeen(2, "b") in facts
    assert PartitionSeen("orders", 1, (3, 1, 2)) in facts
    assert TopicMade("late", 2, 2, {"min.insync.replicas": "2"}) in facts
    assert TopicMade(
        "payments", 3, 2, {"compression.type": "zstd", "segment.bytes": "1048576"}
    ) in (facts)
    assert TopicGone("late") in facts
    accepted = facts.index(ReassignmentAccepted())
    assert facts[accepted + 1] == AssignmentReplayed("payments", 0, (3, 2, 1), (1,), (3,))


def test_state_change_log__has_the_leaders_and_who_led_before() -> None:
    facts = [fact for _, fact in in_order(reading_of("state-change-2.log"))]
    assert LeaderStarted("orders", 0, 2, None) in facts
    assert LeaderStarted("payments", 1, 2, 3) in facts


def test_server_log__has_the_followers_that_fell_behind_and_for_how_long() -> None:
    facts = [fact for _, fact in in_order(reading_of("server-1.log"))]
    assert facts == [
        IsrShrank("clicks", 0, 1, (3,), 4_743),
        IsrBecame("clicks", 0, 1, (1, 2)),
        IsrBecame("clicks", 0, 1, (3, 2, 1)),
    ]


def test_logs__every_line_of_a_controller_is_understood_and_other_lines_are_counted() -> None:
    reading = reading_of("controller.log", "state-change-1.log", "state-change-3.log")
    assert [place.message for place in reading.unknown] == []
    reading = reading_of("server-1.log")
    assert (reading.lines, len(reading.unknown)) == (18, 15)


def test_logs__the_layout_of_a_console_and_lines_of_stack_traces_are_read() -> None:
    reading = LogReading()
    text = (
        "2026-11-22 04:50:10,090 INFO [QuorumController id=1] Fencing broker 2 at epoch 12 because"
        " its session has timed out.\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
    )
    read_log("out.log", text, reading)
    ((place, fact),) = reading.facts
    assert (fact, place.line, reading.lines, reading.unknown) == (SessionExpired(2), 1, 1, [])


def test_logs__what_is_no_log_is_refused_with_its_place() -> None:
    reading = LogReading()
    read_log("a.txt", "\nTopic: orders\n", reading)
    read_log("b.txt", "[2026-13-22 04:50:10,090] INFO hello\n", reading)
    read_log("c.txt", "", reading)
    assert [str(problem) for problem in reading.problems] == [
        "a.txt:2:1: no line with a time like [2026-11-22 04:50:10,090]; not a log of Kafka 4.x",
        "b.txt:1:2: 2026-13-22 04:50:10,090 is not a time",
    ]
    assert reading.empty == ["c.txt"]
