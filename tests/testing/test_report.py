"""What the report of a failed test says: whose line did what, which threads died, since when."""

from __future__ import annotations

import re
import threading

import pytest

import kcluster.testing.world_handle  # noqa: F401  # one copy of it for all sessions in here
from kcluster.testing.client_logs import fold_client_logs
from kcluster.testing.thread_deaths import ThreadDeaths, death_lines

pytest_plugins = ["pytester"]

QUIET = ("-p", "no:cacheprovider")

THREADS = """
import asyncio, threading, time
import pytest

def bill():
    time.sleep(1)
    raise ValueError("no price")

def resume_wrongly(cluster):
    with pytest.raises(TypeError):
        cluster.resume()

@pytest.mark.kafka_cluster(clock="virtual")
def test_threads(kafka_cluster):
    async def break_it():
        await asyncio.to_thread(kafka_cluster.kill, 1)
    asyncio.run(break_it())
    thread = threading.Thread(target=bill, name="billing")
    thread.start()
    thread.join()
    resume_wrongly(kafka_cluster)
    assert False
"""


def test_report__names_the_threads_that_died_and_the_tests_own_lines(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_threads=THREADS)
    result = pytester.runpytest_inprocess(*QUIET, "-W", "ignore")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*ms  test *test_threads.py:15 await asyncio.to_thread(kafka_cluster.kill, 1)",
            "*ms  broker_down *",
            "*ms  test *test_threads.py:10 cluster.resume()  raised TypeError: *",
            "thread billing ended with ValueError: no price at test_threads.py:6, +*ms",
        ]
    )
    assert getattr(threading.excepthook, "__func__", None) is not ThreadDeaths._on_death


def test_deaths__two_clusters_hear_of_each_and_leave_in_any_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda ended: heard.append(str(ended.exc_value)))

    def die(word: str) -> None:
        def work() -> None:
            raise ValueError(word)

        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()

    first, second = ThreadDeaths(lambda: 5), ThreadDeaths(lambda: 7)
    first.attach()
    second.attach()
    die("a")
    first.detach()
    die("b")
    second.detach()
    die("c")
    assert heard == ["a", "b", "c"]
    assert [death.error for death in first.found] == ["ValueError: a"]
    assert [death.error for death in second.found] == ["ValueError: a", "ValueError: b"]
    (line,) = death_lines(first.found, 2)
    assert re.fullmatch(r"thread worker ended with ValueError: a at .*_report.py:\d+, \+3 ms", line)
    assert not list(death_lines(first.found, 6))


SHARED = """
import pytest

def produce(cluster, topic, count):
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(20) == 0

def test_first(kafka_cluster_module, kafka_topic):
    kafka_cluster_module.kill(1)
    produce(kafka_cluster_module, kafka_topic, 3)
    assert kafka_cluster_module.verdict().sent == 3

def test_second(kafka_cluster_module, kafka_topic):
    assert kafka_cluster_module.verdict().reason == "nothing was sent"
    mark = kafka_cluster_module.mark()
    produce(kafka_cluster_module, kafka_topic, 2)
    verdict = kafka_cluster_module.verdict()
    assert (verdict.sent, verdict.acked, verdict.windows) == (2, 2, ())
    assert kafka_cluster_module.verdict(since=mark).sent == 2
    assert kafka_cluster_module.verdict(since="@0").sent == 5
    assert not verdict.sent, "to see the report"
"""


def test_verdict__of_a_shared_cluster_is_on_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shared=SHARED)
    result = pytester.runpytest_inprocess(*QUIET)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["sent 2  acked 2 *", "valid: no anomaly*"])
    assert "kafka_cluster_module.kill(1)" not in result.stdout.str(), "of the test before"


def test_logs__of_client_libraries_are_folded() -> None:
    entry = "ERROR    kafka.conn:conn.py:322 connect failed\n  a traceback"
    own = "INFO     shop.orders:orders.py:3 order 7"
    text = "\n".join([entry, entry, own, *[entry] * 33, "WARNING  aiokafka:x.py:1 no", own])
    report = pytest.TestReport("t", ("t", 1, "t"), {}, "failed", None, "call")
    report.sections = [("Captured log call", text), ("Captured stdout call", text)]
    fold_client_logs(report)
    folded = report.sections[0][1]
    assert folded.count("connect failed") == folded.count("a traceback") == 3
    assert folded.count(own) == 2
    assert folded.splitlines()[-1] == (
        "... and more log entries: 32 of kafka.conn, 1 of aiokafka (pytest -vv shows them)"
    )
    assert report.sections[1][1] == text
