"""Tests of users in virtual time: the fixture with clock="virtual", its reports, its steps."""

from __future__ import annotations

import pytest

import kcluster.testing.world_handle  # noqa: F401  # a world outlives the sessions in this process
from kcluster.runs.directory import read_run

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


FAILOVER = """
import threading, time
import pytest
from kafka import KafkaConsumer, KafkaProducer

real = []

@pytest.fixture(scope="module")
def around():
    real.append(time.time())
    yield
    assert 0 <= time.time() - real[0] < 60  # the machine's time again

@pytest.fixture
def began():  # made before the cluster, by its place, and yet in virtual time
    return time.time()

@pytest.fixture
def producer(kafka_cluster):
    servers = kafka_cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    yield producer
    producer.close()

@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"assignment": [[1, 2, 3]]}})
def test_failover(around, began, kafka_cluster, producer):
    read = []

    def consume():
        servers = kafka_cluster.bootstrap.split(",")
        settings = {"bootstrap_servers": servers, "auto_offset_reset": "earliest"}
        with KafkaConsumer("orders", **settings) as consumer:
            while len(read) < 2:
                read.extend(x for batch in consumer.poll(500).values() for x in batch)

    reader = threading.Thread(target=consume)
    reader.start()
    producer.send("orders", b"one").get(timeout=30)
    kafka_cluster.kill("leader(orders-0)")
    assert kafka_cluster.leader("orders", 0) == 2
    producer.send("orders", b"two").get(timeout=30)
    kafka_cluster.start(1)
    reader.join()
    assert [x.value for x in read] == [b"one", b"two"]
    assert 9 < time.time() - began < 60
    assert kafka_cluster.new_topic() == "topic-1"
    verdict = kafka_cluster.verdict()
    assert (verdict.outcome, verdict.acked, verdict.read) == ("valid", 2, 2)
"""


def test_kafka_cluster__real_clients_and_fixtures_live_in_virtual_time(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, FAILOVER, "-W", "error::pytest.PytestWarning")
    result.assert_outcomes(passed=1)


def test_report__of_a_failed_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import socket, threading, time; from contextlib import suppress
        import pytest

        def sleep():
            time.sleep(300)

        @pytest.mark.kafka_cluster(clock="virtual", seed=7, topics={"orders": {}})
        def test_fails(kafka_cluster):
            from kafka import KafkaProducer
            servers = kafka_cluster.bootstrap.split(",")
            producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
            producer.send("orders", b"one").get(timeout=30)
            threading.Thread(target=sleep, name="sleeper", daemon=True).start()
            kafka_cluster.kill(1)
            time.sleep(1)
            assert kafka_cluster.verdict().acked == 2

        @pytest.mark.kafka_cluster(clock="virtual", limit="20s")
        def test_stands_still(kafka_cluster):
            lock = threading.Lock()
            with lock:
                other = threading.Thread(target=lambda: lock.acquire(), name="other")
                other.start()
                other.join()

        @pytest.mark.kafka_cluster(clock="virtual", limit="20s")
        def test_takes_too_long(kafka_cluster):
            with suppress(OSError):
                socket.create_connection(("example.org", 80))
            time.sleep(30)
        """,
    )
    result.assert_outcomes(failed=3)
    file = "test_it.py"
    result.stdout.fnmatch_lines(
        [
            f"*+* ms  test *{file}:14 kafka_cluster.kill(1)",
            "*broker_down*broker 1*",
            "*broker_fenced*broker 1*no heartbeat for 9000 ms*",
            "threads:",
            f"  sleeper waits for a time to pass (300 s), {file}:5*",
            "seed: 7",
            "kcluster *, Python *, kafka-python *, PYTHONHASHSEED *",
            f"replay: pytest {file}::test_fails --kcluster-seed 7",
            "run directory: *",
            ">*other.join()",
            "E *deadlock: no thread can go on; what each waits for:",
            f"E * other waits for a lock, {file}:22*",
            ">*time.sleep(30)",
            "E *the limit of virtual time is reached*",
            "refused: example.org *",
        ]
    )
    assert "scheduler.py" not in result.stdout.str(), "the inside of a world is no user's matter"
    (directory,) = (pytester.path / ".kcluster" / "runs").glob("test_fails-virtual-7-*")
    record, problems = read_run(directory)
    assert problems == []
    assert record.info.environment.keys() >= {"Python", "kafka-python", "PYTHONHASHSEED"}
    assert record.info.replay.endswith("--kcluster-seed 7")
    assert {row.client for row in record.exchanges} == {"shop"}


def test_clock__is_that_of_the_option_before_that_of_the_mark(pytester: pytest.Pytester) -> None:
    text = """
        import time
        import pytest

        @pytest.mark.kafka_cluster(clock="virtual")
        def test_marked(kafka_cluster):
            is_virtual = time.time() < 1_767_300_000
            assert kafka_cluster.clock_name == ("virtual" if is_virtual else "live")

        def test_plain(kafka_cluster):
            assert kafka_cluster.new_topic() == "topic-1"

        def test_shared(kafka_cluster_module):
            pass
        """
    result = run(pytester, text, "-v")
    result.assert_outcomes(passed=3)
    result = run(pytester, text, "-v", "--kcluster-clock=both")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "kcluster: in 1 of the tests, a cluster is shared by tests, so it is live; *",
            "*::test_plain[[]live] PASSED*",
            "*::test_plain[[]virtual] PASSED*",
        ]
    )


WRONG_MARKS = {
    "clock='virtul'": "clock: virtul: no such clock; did you mean virtual?",
    "clock='virtual', seeds=0": "seeds: 0 is no number of runs",
    "clock='virtual', sedes=2": "sedes: no such argument; did you mean seeds?",
    "clock='virtual', schedule='rnd'": "schedule: rnd: no such schedule; there are fifo, random",
    "clock='virtual', compute='slow'": "compute: slow is neither a factor, such as 2.0, nor"
    " 'random'",
    "clock='virtual', limit='soon'": "limit: soon is not a time like 250ms, 5s or 2m",
    "clock='virtual', scenario='nowhere.yaml'": "nowhere.yaml: no such file",
    "clock='virtual', chaos='one falt'": "chaos: one falt: no such word or profile; did you mean"
    " one fault?",
    "clock='virtual', chaos=3": "chaos: 3 is none of 'one fault', 'overlapping faults', nor a"
    " profile's file",
    "seeds=2": "seeds: only with clock='virtual'",
}


def test_mark__wrong_arguments_are_one_line(pytester: pytest.Pytester) -> None:
    tests = [
        f"@pytest.mark.kafka_cluster({mark})\ndef test_{number}(kafka_cluster):\n    pass\n"
        for number, mark in enumerate(WRONG_MARKS)
    ]
    result = run(pytester, "\n".join(["import pytest", *tests]))
    result.assert_outcomes(errors=len(WRONG_MARKS))
    name = "test_it.py"
    shown = [line for line in result.outlines if line.startswith(f"{name}:")]
    assert shown == [
        f"{name}:{2 + 4 * number}: kafka_cluster: {said}"
        for number, said in enumerate(WRONG_MARKS.values())
    ]


STEPS = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
duration: 60s
steps:
  - {at: 2s, kill: leader(orders-0), for: 20s}
  - {when: "isr(orders-0) = 2", pause: 3, for: 1s}
"""


def test_play__performs_the_steps_of_a_scenario_beside_the_test(pytester: pytest.Pytester) -> None:
    (pytester.path / "steps.yaml").write_text(STEPS)
    result = run(
        pytester,
        """
        import time
        import pytest
        from kcluster import ClusterError

        ORDERS = {"orders": {"assignment": [[1, 2, 3]]}}

        @pytest.mark.kafka_cluster(clock="virtual", topics=ORDERS, scenario="steps.yaml")
        def test_mark(kafka_cluster):
            time.sleep(1.9)
            assert kafka_cluster.status().brokers[0].state == "up"
            time.sleep(0.2)
            assert kafka_cluster.status().brokers[0].state == "down"
            kafka_cluster.do("slow", nodes=2, latency="40ms")

        @pytest.mark.kafka_cluster(clock="virtual", topics=ORDERS)
        def test_method(kafka_cluster):
            steps = kafka_cluster.play("steps.yaml")
            assert not steps.is_done
            with pytest.raises(ClusterError, match="not all steps were performed within 5s"):
                steps.wait("5s")
            steps.wait()
            assert kafka_cluster.status().brokers[2].state == "paused"
            steps.stop()
            kafka_cluster.wait_for(isr=("orders", 0, 3), within="60s")

        @pytest.mark.kafka_cluster(clock="virtual")
        def test_nothing_to_kill(kafka_cluster):
            kafka_cluster.play("steps.yaml")
            time.sleep(5)
        """,
    )
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["E *kill (line 4): there is no topic 'orders'*"])


def test_signals__a_test_handles_what_it_sends_itself(pytester: pytest.Pytester) -> None:
    """As services do in main(); what the process does with signals is as before afterwards."""
    result = run(
        pytester,
        """
        import asyncio, os, signal, time
        import pytest

        pytestmark = pytest.mark.kafka_cluster(clock="virtual")

        async def serve(deadline_s):
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, stop.set)
            loop.call_later(5, os.kill, os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stop.wait(), deadline_s)
            assert loop.remove_signal_handler(signal.SIGTERM)

        def test_asyncio(kafka_cluster):
            began_s = time.monotonic()
            asyncio.run(serve(60))
            assert 5 <= time.monotonic() - began_s < 6

        def test_handlers(kafka_cluster):
            seen = []
            before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
            assert before is signal.SIG_DFL
            signal.raise_signal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.kill(os.getpid(), signal.SIGTERM)
            assert seen == [signal.SIGTERM]

        def test_interrupted(kafka_cluster):
            # A shell's background job inherits SIGINT ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

        def test_afterwards():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        """,
    )
    result.assert_outcomes(passed=4)


def test_chaos__each_seed_has_its_own_faults_and_calm_ends_them(pytester: pytest.Pytester) -> None:
    (pytester.path / "kills.yaml").write_text("kinds: [{kill: 2}]\n")
    result = run(
        pytester,
        """
        import time
        import pytest

        FAULTS = ("broker_down", "broker_paused", "network_cut", "network_shaped", "link_cut")
        ORDERS = {"orders": {"replication_factor": 3}}

        def faults(cluster):
            return [entry for entry in cluster.events() if entry.kind in FAULTS]

        @pytest.mark.kafka_cluster(clock="virtual", seeds=3, topics=ORDERS, chaos="one fault")
        def test_mark(kafka_cluster):
            time.sleep(60)
            before = faults(kafka_cluster)
            kafka_cluster.calm()
            time.sleep(60)
            assert len(faults(kafka_cluster)) == len(before) > 0
            with open("seen.txt", "a") as seen:
                print([str(entry.note) for entry in before], file=seen)

        @pytest.mark.kafka_cluster(clock="virtual", topics=ORDERS, chaos="overlapping faults")
        def test_words(kafka_cluster):
            time.sleep(60)
            assert faults(kafka_cluster)

        @pytest.mark.kafka_cluster(clock="virtual", topics=ORDERS, chaos="kills.yaml")
        def test_file(kafka_cluster):
            time.sleep(60)
            assert {entry.event.subject for entry in faults(kafka_cluster)} == {"broker 2"}
        """,
    )
    result.assert_outcomes(passed=3)
    seen = (pytester.path / "seen.txt").read_text().splitlines()
    assert len(set(seen)) == 3
