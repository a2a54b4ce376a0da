"""The pytest plugin as its users meet it: small test files, run by pytester."""

from __future__ import annotations

import pytest

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


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def run_alone(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    """In a separate process."""
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_kafka_cluster__a_client_through_a_failover(pytester: pytest.Pytester) -> None:
    run(pytester, FAILOVER).assert_outcomes(passed=1)


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


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("brokrs=3", "did you mean brokers?"),
        ("3", "takes keyword arguments"),
        ("topology='nowhere.yaml'", "no such file"),
        ("topics={'orders': {'partitions': 'many'}}", "not a whole number"),
    ],
)
def test_kafka_cluster__a_wrong_argument_is_reported(
    pytester: pytest.Pytester, mark: str, expected: str
) -> None:
    result = run(
        pytester,
        f"""
        import pytest
        @pytest.mark.kafka_cluster({mark})
        def test_it(kafka_cluster):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    assert expected in result.stdout.str()


def test_kafka_topic__differs_per_test_of_one_cluster(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        seen = []
        def test_one(kafka_cluster_module, kafka_topic):
            seen.append((kafka_cluster_module, kafka_topic))
            kafka_cluster_module.kill(kafka_cluster_module.leader(kafka_topic, 0))
        def test_two(kafka_cluster_module, kafka_topic):
            (cluster, topic), = seen
            assert cluster is kafka_cluster_module
            assert topic != kafka_topic
            assert all(broker.state == "up" for broker in cluster.status().brokers)
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
        "--kcluster-clock=both", "--continue-on-collection-errors"
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


@pytest.mark.timeout_s(90)  # it starts three processes
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
