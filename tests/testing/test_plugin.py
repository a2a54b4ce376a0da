"""The pytest plugin as its users meet it: small test files, run by pytester."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kcluster.runs.directory import read_run
from kcluster.runs.explain import explain
from kcluster.testing.marks import arguments_of

pytest_plugins = ["pytester"]

FAILOVER = """
import pytest

@pytest.mark.kafka_cluster(brokers=3, topics={"orders": {"assignment": [[1, 2, 3]]}})
def test_failover(kafka_cluster):
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap})
    producer.produce("orders", b"one")
    assert producer.flush(20) == 0
    kafka_cluster.kill(1)
    assert kafka_cluster.leader("orders", 0) == 2
    producer.produce("orders", b"two")
    assert producer.flush(20) == 0
    kafka_cluster.start(1)
    verdict = kafka_cluster.verdict()
    assert verdict.outcome == "valid"
    assert verdict.acked == 2
"""


PLAIN = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Without a plugin that takes a third of the start."""


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess(*PLAIN, *arguments)


def run_alone(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    """In a separate process."""
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(*PLAIN, *arguments)


def test_kafka_cluster__a_client_through_a_failover(pytester: pytest.Pytester) -> None:
    run(pytester, FAILOVER).assert_outcomes(passed=1)


PRODUCERS = """
import pytest
from confluent_kafka import Producer

def send(kafka_cluster, producers, records):
    settings = {"bootstrap.servers": kafka_cluster.bootstrap, "client.id": "shop"}
    for _ in range(producers):
        producer = Producer({**settings, "enable.idempotence": True})
        for _ in range(records):
            producer.produce("orders", b"one")
            assert producer.flush(20) == 0

@pytest.mark.kafka_cluster(brokers=1, topics={"orders": {}}, manners=True)
def test_a_producer_for_each_record(kafka_cluster):
    send(kafka_cluster, producers=6, records=1)

@pytest.mark.kafka_cluster(brokers=1, topics={"orders": {}}, manners=True)
def test_one_producer(kafka_cluster):
    send(kafka_cluster, producers=1, records=6)
    assert kafka_cluster.manners() == []
"""


def test_kafka_cluster__bad_manners_fail_a_test_that_wants_good_ones(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, PRODUCERS)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["E *BadMannersError: producer-per-request: client shop: 6 producer ids, 1.0 for each *"]
    )


def test_kafka_cluster__a_run_directory_that_cannot_be_written_costs_no_report(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / ".kcluster").write_text("a file, where the directory should be")
    pytester.makefile(".yaml", bad=SCENARIO + "checks: {acked: 1}\n")
    pytester.makeini("[pytest]\nkcluster_scenarios = .")
    result = run(pytester, "def test_it(virtual_cluster): assert virtual_cluster.verdict()")
    result.assert_outcomes(failed=2)
    line = (
        "*run directory: not written: */.kcluster*: * (kcluster_runs in the ini file names another)"
    )
    result.stdout.fnmatch_lines([line, line])


def test_kafka_cluster__what_the_cluster_refuses_is_shown_at_the_tests_own_line(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
        import pytest

        def test_kill(kafka_cluster):
            kafka_cluster.kill("leader(nope-0)")

        def test_do(virtual_cluster):
            virtual_cluster.do("kil", 1)

        def test_new_topic(kafka_cluster):
            kafka_cluster.new_topic(partitons=3)

        @pytest.mark.kafka_cluster(topology={"brokers": 1, "host": "192.0.2.1"})
        def test_host(kafka_cluster):
            pass
        """,
    )
    result.assert_outcomes(failed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "test_*.py:12: kafka_cluster: broker 1 cannot listen on 192.0.2.1:*",
            ">*kafka_cluster.kill(*",
            "E*: there is no topic 'nope'; the topics are: none",
            "",
            "*test_*.py:4: WrongName",
            "E*ScenarioError: kil: no such action or key of a step; did you mean kill?",
            "",
            "*test_*.py:7: ScenarioError",
            "E*partitons: no such argument of new_topic; did you mean partitions?",
        ]
    )
    result.stdout.no_fnmatch_line("*/kcluster/*.py*")


def test_kafka_cluster__a_failure_shows_the_timeline(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        @pytest.mark.kafka_cluster(seed=7, topics={"orders": {"assignment": [[1, 2, 3]]}})
        def test_it(kafka_cluster):
            kafka_cluster.kill(1)
            assert kafka_cluster.leader("orders", 0) == 1
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- kcluster -*",
            "*broker_down*broker 1*process killed*",
            "*leader_elected*orders-0*leader 1 -> 2*",
            "seed: 7 *",
            "replay: pytest -k 'test_it'",
            "run directory: *",
        ]
    )
    (directory,) = (pytester.path / ".kcluster" / "runs").glob("test_it-live-7-*")
    assert "\n*\n" in (pytester.path / ".kcluster" / ".gitignore").read_text("utf-8")
    assert (directory / "events.jsonl").stat().st_size > 0


WRONG_MARKS = {
    "brokrs=3": "brokrs: no such argument; did you mean brokers?",
    "3": "takes keyword arguments, such as brokers=3",
    "seed='x'": "seed: x is not a whole number",
    "topology='nowhere.yaml'": "nowhere.yaml: no such file",
    "topology=3": "topology: 3 is neither a file nor a topology",
    "topology={'brokrs': 3}": "brokrs: no such key of a topology; did you mean brokers?",
    "topics={'orders': {'partitions': 'many'}}": "topics.orders.partitions: many is not a whole"
    " number",
    "topics={'orders': {'partition': 1}}": "topics.orders.partition: no such key of a topic; did"
    " you mean partitions?",
    "topics={'orders': {'min_insync_replica': 2}}": "topics.orders.min_insync_replica: no"
    " such topic config; did you mean min_insync_replicas?",
    "topics={'orders': {'min_insync': 2}}": "topics.orders.min_insync: no such topic config; did"
    " you mean min_insync_replicas?",
    "config={'min_insync_replica': 2}": "config.min_insync_replica: no such broker config; did you"
    " mean min_insync_replicas?",
}


@pytest.mark.parametrize("fixture", ["kafka_cluster", "virtual_cluster"])
def test_kafka_cluster__a_wrong_mark_is_one_line(pytester: pytest.Pytester, fixture: str) -> None:
    tests = [
        f"@pytest.mark.kafka_cluster({mark})\ndef test_{number}({fixture}):\n    pass\n"
        for number, mark in enumerate(WRONG_MARKS)
    ]
    result = run(pytester, "\n".join(["import pytest", *tests]))
    result.assert_outcomes(errors=len(WRONG_MARKS))
    shown = [line for line in result.outlines if line.startswith("test_kafka_cluster__a_wrong")]
    name = "test_kafka_cluster__a_wrong_mark_is_one_line.py"
    assert shown[1:] == [
        f"{name}:{2 + 4 * number}: kafka_cluster: {said}"
        for number, said in enumerate(WRONG_MARKS.values())
    ]
    assert "plugin.py" not in result.stdout.str()


def test_kafka_cluster__a_shared_fixture_is_shown_the_shared_cluster(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.fixture(scope="session")
        def warehouse(kafka_cluster):
            return kafka_cluster

        @pytest.fixture(scope="class")
        def shelf(kafka_cluster):
            return kafka_cluster

        def test_session(warehouse):
            pass

        def test_class(shelf):
            pass
        """,
    )
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            "fixture warehouse has the scope session, and kafka_cluster is a new cluster for each"
            " test: take kafka_cluster_session",
            "fixture shelf has the scope class,* take kafka_cluster_module",
        ]
    )


@pytest.mark.parametrize(
    "topic",
    [
        {"replication_factor": 3, "min_insync_replicas": 2},
        {"config": {"min_insync_replicas": 2}},
        {"config": {"min.insync.replicas": 2}},
        {"min.insync.replicas": 2, "config": {"retention_ms": 1000}},
    ],
)
def test_mark__configs_may_be_spelled_as_keywords(topic: dict[str, Any]) -> None:
    mark = pytest.mark.kafka_cluster(topics={"orders": topic}, config={"num_partitions": 2}).mark
    topology = arguments_of(mark, "live").topology
    assert topology.topics["orders"].config["min.insync.replicas"] == "2"
    assert topology.config["num.partitions"] == "2"


def test_mark__a_config_that_is_given_in_both_spellings_is_refused() -> None:
    config = {"min_insync_replicas": 2, "min.insync.replicas": 3}
    mark = pytest.mark.kafka_cluster(topics={"orders": {"config": config}}).mark
    with pytest.raises(ValueError, match="given twice"):
        arguments_of(mark, "live")


def test_kafka_topic__differs_per_test_of_one_cluster(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        seen = []
        def test_one(kafka_cluster_module, kafka_topic):
            seen.append((kafka_cluster_module, kafka_topic))
            kafka_cluster_module.kill(kafka_cluster_module.leader(kafka_topic, 0))
            kafka_cluster_module.pause_clock()
        def test_two(kafka_cluster_module, kafka_topic):
            (cluster, topic), = seen
            assert cluster is kafka_cluster_module
            assert topic != kafka_topic
            assert all(broker.state == "up" for broker in cluster.status().brokers)
            assert not cluster.clock().paused
        def test_session(kafka_cluster_session, kafka_topic):
            assert kafka_cluster_session is not seen[0][0]
            kafka_cluster_session.new_topic("own", partitions=2, min_insync_replicas=2)
            assert kafka_cluster_session.leader("own", 1)
        """,
    ).assert_outcomes(passed=3)


def test_actions__are_called_by_their_names(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import pytest
        from kcluster import ClusterError

        @pytest.mark.kafka_cluster(topics={"orders": {"assignment": [[1, 2, 3]]}})
        def test_live(kafka_cluster):
            undo = kafka_cluster.do("isolate", "leader(orders-0)")
            kafka_cluster.wait_for(isr=("orders", 0, 2))
            undo()
            kafka_cluster.wait_for(isr=("orders", 0, 3))
            with pytest.raises(ValueError, match="did you mean isolate"):
                kafka_cluster.do("isolat", 1)
            with pytest.raises(ClusterError, match="no topic"):
                kafka_cluster.do("kill", "leader(ordres-0)")

        @pytest.mark.kafka_cluster(topics={"orders": {"assignment": [[1, 2, 3]]}})
        def test_virtual(virtual_cluster):
            producer = virtual_cluster.producer("orders", rate="50/s", count=500)
            virtual_cluster.consumer(topics="orders", group="billing")
            virtual_cluster.run_for(5_000)
            virtual_cluster.do("kill", "leader(orders-0)")
            virtual_cluster.run_for(20_000)
            virtual_cluster.repair()
            virtual_cluster.run_for(5_000)
            verdict = virtual_cluster.verdict()
            assert (verdict.outcome, verdict.acked, verdict.read) == ("valid", 500, 500)
        """,
    ).assert_outcomes(passed=2)


SCENARIO = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 100/s}}
duration: 500ms
steps: [{at: 100ms, kill: 1, for: 200ms}]
"""


def test_scenarios__are_collected_if_the_ini_enables_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkcluster_scenarios = faults\n")
    faults = pytester.mkdir("faults")
    (faults / "good.yaml").write_text(SCENARIO)
    (faults / "bad.yaml").write_text(SCENARIO + "checks: {acked: 1}\n")
    (faults / "wrong.yaml").write_text("steps: [{kil: 1}]")
    (pytester.mkdir("other") / "not.yaml").write_text("kil: 1")
    result = pytester.runpytest_subprocess(
        *PLAIN, "--kcluster-clock=both", "--continue-on-collection-errors"
    )
    result.assert_outcomes(passed=2, failed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*did you mean kill?*", "*FAILED acked: *, not 1*", "*replay: kcluster scenario run *"]
    )


def test_plugin__imports_nothing_where_it_is_not_used(pytester: pytest.Pytester) -> None:
    run_alone(
        pytester,
        """
        import sys
        def test_it():
            assert not {"gevent", "msgspec", "kcluster.handle.cluster"} & set(sys.modules)
        """,
    ).assert_outcomes(passed=1)


def test_plugin__with_xdist_ports_do_not_clash(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    text = FAILOVER.replace(
        "def test_failover(", "@pytest.mark.parametrize('n', range(4))\ndef test_failover(n, "
    )
    run_alone(pytester, text, "-n", "2").assert_outcomes(passed=4)


def test_kafka_cluster__starts_quickly(pytester: pytest.Pytester) -> None:
    """It takes 50 ms on an idle machine; the bound here is a multiple of that."""
    result = run_alone(
        pytester,
        """
        import time
        import pytest
        spent = []
        @pytest.fixture(autouse=True)
        def timed():
            began = time.process_time()
            yield
            spent.append(time.process_time() - began)
        @pytest.mark.parametrize("n", range(9))
        def test_it(n, timed, kafka_cluster):
            pass
        def test_median():
            assert sorted(spent)[4] < 0.15, spent
        """,
    )
    result.assert_outcomes(passed=10)


LOSSY = """
import pytest

@pytest.mark.kafka_cluster(topics={"orders": {"assignment": [[1, 2, 3]]}})
def test_it(virtual_cluster):
    virtual_cluster.producer("orders", rate="100/s", acks="1", count=2_000)
    virtual_cluster.do("slow", nodes=1, others="2, 3", latency="40ms")
    virtual_cluster.run_for(10_000)
    virtual_cluster.do("kill", 1)
    virtual_cluster.run_for(30_000)
    virtual_cluster.repair()
    STATEMENT
"""


@pytest.mark.parametrize(
    "statement", ["assert virtual_cluster.verdict()", "virtual_cluster.verdict().check()"]
)
def test_verdict__a_failed_assertion_says_in_three_lines_what_was_lost_and_why(
    pytester: pytest.Pytester, statement: str
) -> None:
    result = run(pytester, LOSSY.replace("STATEMENT", statement))
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines_random([r">    .*verdict\(\).*"])
    shown = [line for line in result.outlines if line.startswith("E ")]
    assert len(shown) == 3, shown
    assert "invalid: " in shown[0]
    assert "lost-write: orders-0: " in shown[1]
    assert "because: +" in shown[2]
    assert "drops offsets" in shown[2]


CARELESS = """
import pytest
from confluent_kafka import Consumer, Producer


def reader(cluster):
    settings = {
        "bootstrap.servers": cluster.bootstrap, "group.id": "billing", "client.id": "billing",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    return consumer


@pytest.mark.kafka_cluster(topics={"orders": {"assignment": [[1, 2, 3]]}})
def test_commit_before_work(kafka_cluster):
    producer = Producer({"bootstrap.servers": kafka_cluster.bootstrap})
    for number in range(6):
        producer.produce("orders", b"%d" % number)
    assert producer.flush(20) == 0
    done = kafka_cluster.processed("orders")
    consumer = reader(kafka_cluster)
    for _ in range(3):
        message = consumer.poll(20)
        consumer.commit(message, asynchronous=False)
        if message.offset() == 2:
            break  # it crashes between the commit and the work
        done.add(message)
    consumer.close()
    kafka_cluster.kill(1)
    consumer = reader(kafka_cluster)
    for _ in range(3):
        done.add(consumer.poll(20))
    consumer.close()
    assert kafka_cluster.verdict()  # Kafka has lost nothing
    done.check()
"""


def test_processed__a_missed_record_is_named_with_the_commit_that_skipped_it(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, CARELESS)
    result.assert_outcomes(failed=1)
    missed = (
        "missed: orders-0, offset 2: generation 1 of group billing (billing-*) committed offset 3"
        " at +* ms, *before member billing-* left; nobody processed it"
    )
    result.stdout.fnmatch_lines([f"E *{missed}"])
    timeline = [re.match(r" *[+-]\d+ ms  [a-z_]+ +", line) for line in result.outlines]
    assert len({found.end() for found in timeline if found}) == 1, "one column of subjects"
    result.stdout.fnmatch_lines(
        [
            "*group_member_joined *group billing member billing-* of client billing joined",
            "*group_rebalanced * generation 1: 1 member; *",
            "*group_assigned * generation 1: orders-0 to billing-*",
            "*offset_lookup * orders-0 * client billing asked for the start of the log and got 0*",
            "*committed * generation 1, billing-*: orders-0: 3*",
            "*group_member_left *",
            "*test * test_*.py:30 kafka_cluster.kill(1)",
            "*broker_down *",
            "not judged: what applications did with the records that they read",
            "sent 6 *read 6 (and * reads again)",
            "valid: *",
            missed,
            "not seen: what clients outside of the cluster did without a broker: *",
        ]
    )
    story = result.stdout.str()
    assert "billing got COORDINATOR_NOT_AVAILABLE for its FindCoordinator" in story
    (directory,) = (pytester.path / ".kcluster" / "runs").glob("test_commit_before_work-*")
    record, problems = read_run(directory)
    assert problems == []
    assert [(row.problem, row.first) for row in record.problems] == [("missed", 2)]
    assert [row.offset for row in record.processed] == [0, 1, 3, 4, 5]
    assert [row.offset for row in record.commits] == [1, 2, 3]
    assert any("the application processed 5 records" in line for line in explain(record))


def test_processed__takes_records_of_any_client_from_any_thread(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import threading
        from types import SimpleNamespace
        import pytest

        @pytest.mark.kafka_cluster(topics={"orders": {}})
        def test_ledger(kafka_cluster):
            from kafka import KafkaConsumer, KafkaProducer
            servers = kafka_cluster.bootstrap.split(",")
            producer = KafkaProducer(bootstrap_servers=servers)
            for number in range(4):
                producer.send("orders", b"%d" % number)
            producer.close()
            done = kafka_cluster.processed("orders")
            settings = {"bootstrap_servers": servers, "auto_offset_reset": "earliest"}
            with KafkaConsumer("orders", **settings) as consumer:
                done.add(next(consumer), by="a name")
                done.add("orders", 0, 1)
                place = {"topic": "orders", "partition": 0, "offset": 2}
                done.add(SimpleNamespace(**{key: lambda x=x: x for key, x in place.items()}))
                thread = threading.Thread(target=done.add, args=("orders", 0, 3), name="worker-1")
                thread.start()
                thread.join()
            done.check()
            assert [entry.worker for entry in done.entries()] == [
                "a name", "MainThread", "MainThread", "worker-1"
            ]
            with pytest.raises(TypeError, match="does not say its topic, partition and offset"):
                done.add(object())
            with pytest.raises(ValueError, match="a record of others; this ledger is of orders"):
                done.add("others", 0, 1)
            with pytest.raises(Exception, match="no topic ordres; did you mean orders?"):
                kafka_cluster.processed("ordres").check()
        """,
    ).assert_outcomes(passed=1)


def test_processed__in_virtual_time_is_what_the_built_in_consumers_read(
    pytester: pytest.Pytester,
) -> None:
    run(
        pytester,
        """
        import pytest

        @pytest.mark.kafka_cluster(topics={"orders": {"partitions": 2}})
        @pytest.mark.parametrize("refused", [False, True])
        def test_it(virtual_cluster, refused):
            virtual_cluster.producer("orders", rate="20/s", count=200)
            virtual_cluster.consumer(topics="orders", group="billing", name="first")
            virtual_cluster.run_for(5_500)
            if refused:
                virtual_cluster.do("rule", api="OffsetCommit", answer="ILLEGAL_GENERATION", times=1)
            virtual_cluster.run_for(15_000)
            done = virtual_cluster.processed("orders")
            if not refused:
                done.check()
                return
            with pytest.raises(AssertionError, match="was refused with ILLEGAL_GENERATION"):
                done.check()
            assert {problem.times for problem in done.problems()} == {2}
        """,
    ).assert_outcomes(passed=2)


def test_report__names_the_line_that_did_each_thing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(kafka_cluster_module, kafka_topic):
            cluster = kafka_cluster_module
            undo = cluster.do("isolate", f"leader({kafka_topic}-0)")
            undo()
            with cluster.isolate(1, 2):
                pass
            assert cluster.leader(kafka_topic, 0) == 0
        """,
    )
    result.assert_outcomes(failed=1)
    name = "test_report__names_the_line_that_did_each_thing.py"
    result.stdout.fnmatch_lines(
        [
            f"* test * {name}:3 undo = cluster.do(*",
            "* network_cut *",
            f"* test * {name}:4 undo()",
            "* network_healed *",
            f"* test * {name}:5 with cluster.isolate(1, 2):",
            "* network_cut *",
            f"* test * {name}:5 with cluster.isolate(1, 2):",
            "* network_healed *",
        ]
    )
    assert f"{name}:7" not in "".join(x for x in result.outlines if "  test  " in x)


def test_report__has_connections_that_brokers_closed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import socket

        def test_it(kafka_cluster):
            host, port = kafka_cluster.bootstrap.split(",")[0].split(":")
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
                assert connection.recv(1) != b""
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*+* ms  broker 1: connection * from 127.0.0.1 closed: *"])
