"""The logs of a real cluster whose failures are known, as a scenario with the same failures.

What was done to the cluster by a script, by the clock of the logs; a JVM starts in about 6 s:
04:50:01.7 kill -9 of 2, started 04:50:16.7; 04:50:32.7 preferred leaders elected
04:50:37.3 SIGTERM to 1, started 04:50:47.3
04:51:03.4 SIGSTOP of 3, SIGCONT 04:51:16.4; 04:51:39.4 preferred leaders elected
04:51:43 topic late created, payments-0 reassigned to 3 and 2, late deleted
04:51:50.2 kill -9 of 3, started at once
04:52:10.2 kill -9 of 1 and 3, both started 04:52:23.3
"""

from __future__ import annotations

from kcluster.events.brokers import BrokerFenced
from kcluster.importing.described import DescribedBroker, DescribedCluster
from kcluster.importing.log_scenario import LogScenario, scenario_of_logs
from kcluster.importing.scenario_text import clock
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.importing.outputs import FOLDER, cluster_of

CONTROLLER = ("controller.log",)
ALL = ("controller.log", "state-change-1.log", "state-change-2.log", "state-change-3.log")
LAGGING = ("controller-lag.log", "server-1.log", "server-2.log")


def imported(*names: str, given: DescribedCluster | None = None) -> LogScenario:
    logs = [(name, (FOLDER / name).read_text(encoding="utf-8")) for name in names]
    return scenario_of_logs(logs, given)


def steps(made: LogScenario) -> list[str]:
    """`04:50:02,090 kill 2`."""
    return [f"{clock(one.at_ms)[11:]} {one.verb} {one.value}" for one in made.found.steps]


def test_controller_log__kills_stops_cuts_and_starts_are_found_at_their_times() -> None:
    assert steps(imported(*CONTROLLER)) == [
        "04:50:02,090 kill 2",
        "04:50:24,269 start 2",
        "04:50:37,289 stop 1",
        "04:50:52,953 start 1",
        "04:51:04,066 isolate 3",
        "04:51:16,385 heal 3",
        "04:51:44,336 create_topic {'name': 'late', 'partitions': 2, 'replication_factor': 2,"
        " 'config': {'min.insync.replicas': '2'}}",
        "04:51:45,860 reassign {'partition': 'payments-0', 'to': [3, 2]}",
        "04:51:49,887 kill 3",
        "04:51:50,044 delete_topic late",
        "04:51:57,887 start 3",
        "04:52:10,610 kill 1",
        "04:52:11,748 kill 3",
        "04:52:29,650 start 1",
        "04:52:31,356 start 3",
    ]


def test_state_change_logs__elections_that_nobodys_death_explains_are_steps() -> None:
    elections = [one for one in steps(imported(*ALL)) if " elect " in one or " move " in one]
    assert [one.split(" ", 1)[1] for one in elections] == [
        "elect payments-1",
        "elect orders-0",
        "elect orders-3",
        "elect audit.log-0",
        "elect orders-2",
        "elect payments-0",
        "elect orders-5",
        "elect orders-1",
        "elect orders-4",
        "elect payments-2",
    ]
    assert elections[0].startswith("04:50:34")
    assert elections[4].startswith("04:51:41")


def test_server_logs__a_follower_that_fell_behind_is_cut_off_from_its_leaders() -> None:
    made = imported(*LAGGING)
    assert steps(made) == [
        "04:58:04,760 isolate {'nodes': 3, 'others': [1, 2]}",
        "04:58:13,256 heal 3",
    ]
    listed = [str(entry) for entry in made.found.left_out]
    assert any(one.startswith("server-2.log: 15 lines not understood, the first") for one in listed)


def test_logs_of_several_controllers__are_one_story_and_a_new_controller_is_listed() -> None:
    """kill -9 of node 1, the active controller, at 05:18:52.8; all stopped at the end."""
    made = imported("controller-1-of-3.log", "controller-2-of-3.log")
    assert steps(made) == [
        "05:18:55,939 kill 1",
        "05:19:18,880 start 1",
        "05:19:23,855 stop 1",
        "05:19:23,878 stop 2",
        "05:19:23,898 stop 3",
    ]
    assert made.found.steps[0].why == (
        "about 8 s before this line, or more: controller 2 counts from when it became active"
    )
    assert made.unknown == 0
    listed = [str(entry) for entry in made.found.left_out]
    assert any("controller 2 became active; the simulator has one" in one for one in listed)


def test_log__each_step_names_the_line_that_it_comes_from() -> None:
    text = imported(*CONTROLLER).text
    assert (
        "Fencing broker 2 at epoch 12 because its session has timed out.\n"
        "  # about 8 s before this line\n"
        "  - {at: 5s, kill: 2}\n"
    ) in text
    assert "  # controller.log:" in text


def test_log__alone__shows_brokers_racks_and_the_topics_of_before_the_first_failure() -> None:
    scenario = Scenario.parse(imported(*CONTROLLER).text)
    assert [(one.id, one.rack) for one in scenario.topology.brokers] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]
    assert sorted(scenario.topology.topics) == ["audit.log", "orders", "payments", "plain"]
    assert scenario.topology.topics["payments"].assignment == ((1, 2), (2, 3), (3, 1))
    assert scenario.topology.topics["orders"].config["min.insync.replicas"] == "2"


def test_log__with_a_described_cluster__is_played_on_that() -> None:
    described = cluster_of("topics.txt", "broker_configs_all.txt", "topic_configs_all.txt")
    scenario = Scenario.parse(imported(*LAGGING, given=described).text)
    assert scenario.topology.config["replica.lag.time.max.ms"] == "4000"
    assert "clicks" not in scenario.topology.topics


def test_log__a_broker_that_the_topology_lacks_is_listed_not_played() -> None:
    described = DescribedCluster("x", brokers=(DescribedBroker(1), DescribedBroker(3)))
    made = imported(*CONTROLLER, given=described)
    assert not [one for one in steps(made) if one.endswith(" 2")]
    listed = [str(entry) for entry in made.found.left_out]
    assert [one for one in listed if one.endswith(": broker 2 is not in the topology")]


def test_log__a_topic_of_before_the_first_failure_that_the_topology_lacks_is_listed() -> None:
    described = DescribedCluster(
        "x", brokers=(DescribedBroker(1), DescribedBroker(2), DescribedBroker(3))
    )
    made = imported(*CONTROLLER, given=described)
    assert steps(made)[0] == "04:50:02,090 kill 2"
    listed = [str(entry) for entry in made.found.left_out]
    assert [one for one in listed if one.endswith(": topic audit.log is not in the topology")]


def test_log__a_config_of_a_new_topic_that_nothing_obeys_is_listed() -> None:
    text = (FOLDER / "controller.log").read_text(encoding="utf-8")
    text = text.replace("name='min.insync.replicas', value='2')]): SUCCESS", (
        "name='remote.storage.enable', value='true')]): SUCCESS"
    ))  # fmt: skip
    made = scenario_of_logs([("controller.log", text)], None)
    (created,) = [step for step in made.found.steps if step.verb == "create_topic"]
    assert created.value == {"name": "late", "partitions": 2, "replication_factor": 2}
    assert "config remote.storage.enable of topic late: tiered storage is not simulated" in map(
        str, made.found.left_out
    )


def test_log__without_a_failure__makes_no_scenario() -> None:
    made = scenario_of_logs([("c.log", "[2026-11-22 04:50:10,090] INFO hello (a.B)\n")], None)
    assert (made.text, made.lines, made.unknown, made.problems) == ("", 1, 1, ())


def test_log__only_empty_files__are_refused() -> None:
    made = scenario_of_logs([("a.log", ""), ("b.log", "\n")], None)
    assert [str(problem) for problem in made.problems] == [
        "a.log:1:1: empty; a log of Kafka 4.x was expected",
        "b.log:1:1: empty; a log of Kafka 4.x was expected",
    ]


def test_imported_scenario__is_played_and_brokers_are_fenced_when_the_log_says() -> None:
    """The log has broker 2 fenced at 04:50:10,090; `kill` is at 5 s, 04:50:02,090."""
    text = (FOLDER / "controller.log").read_text(encoding="utf-8")
    until = text.index("[2026-11-22 04:50:3")
    made = scenario_of_logs([("controller.log", text[:until])], None)
    assert steps(made) == ["04:50:02,090 kill 2", "04:50:24,269 start 2"]
    result = run_scenario(Scenario.parse(made.text), "virtual", 1)
    assert not result.has_problems
    fenced = [
        (row.event.broker, row.at_ms)
        for row in result.record().notes
        if isinstance(row.event, BrokerFenced)
    ]
    ((broker, at_ms),) = fenced
    assert broker == 2
    assert abs(at_ms - (5_000 + 8_000)) < 1_200
