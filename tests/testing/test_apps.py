"""Programs of a test that die and are started again: `kafka_cluster.run`, `kill`, `restart`."""

from __future__ import annotations

import pytest

import kcluster.testing.world_handle  # noqa: F401  # a world outlives the sessions in this process

pytest_plugins = ["pytester"]

HEAD = """
import sqlite3, threading, time
import pytest
from kafka import KafkaConsumer, KafkaProducer

def consumer_of(cluster, **more):
    servers = cluster.bootstrap.split(",")
    return KafkaConsumer("orders", bootstrap_servers=servers, group_id="billing",
                         auto_offset_reset="earliest", **more)

def send(cluster, count):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), client_id="shop")
    for number in range(count):
        producer.send("orders", b"%d" % number)
        time.sleep(0.1)
    producer.close()

virtual = pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
"""


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=HEAD + text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_kill__ends_threads_where_they_stand_and_sends_nothing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
seen = []

def billing(cluster):
    consumer = consumer_of(cluster)
    threading.Thread(target=lambda: time.sleep(1e6)).start()
    try:
        for record in consumer:
            seen.append(record.offset)
            time.sleep(0.5)
            seen.append("done")
    finally:
        consumer.close()  # would leave the group, if it were alive
        threading.Thread(target=seen.append, args=("after",)).start()

@virtual
def test_it(kafka_cluster):
    app = kafka_cluster.run(billing, kafka_cluster)
    send(kafka_cluster, 5)
    while not seen:
        time.sleep(0.01)
    app.kill()
    before = list(seen)
    assert not app.is_running
    time.sleep(5)
    assert seen == before and seen[-1] != "done"
    kinds = [entry.note.event.kind for entry in kafka_cluster.events()]
    assert "program_killed" in kinds and "group_member_left" not in kinds
    app.restart()
    time.sleep(60)  # the dead member's session ends after 45 s
    assert app.is_running and app.lives == 2
    assert seen.count(0) == 2 or 0 in seen
    assert {0, 1, 2, 3, 4} <= set(seen)
""",
        "-W",
        "error::pytest.PytestWarning",
    )
    result.assert_outcomes(passed=1)


def test_pause__an_app_stands_still_and_loses_its_session(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def ticking(cluster, ticks):
    consumer = consumer_of(cluster, session_timeout_ms=6_000)
    while True:
        consumer.poll(timeout_ms=100)
        ticks.append(time.monotonic())

@virtual
def test_it(kafka_cluster):
    ticks = []
    app = kafka_cluster.run(ticking, kafka_cluster, ticks)
    time.sleep(10)
    app.pause()
    time.sleep(0.5)  # whatever it was about to do
    before = len(ticks)
    time.sleep(20)
    assert len(ticks) == before and app.is_running
    kinds = [entry.note.event.kind for entry in kafka_cluster.events()]
    assert "program_paused" in kinds and "group_member_expired" in kinds
    app.resume()
    time.sleep(20)
    assert len(ticks) > before + 20 and app.lives == 1
    kinds = [entry.note.event.kind for entry in kafka_cluster.events()]
    assert kinds.count("group_member_joined") == 2 and "program_resumed" in kinds
""",
    )
    result.assert_outcomes(passed=1)


def test_pause__killed_restarted_and_calm_apps_are_not_paused(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def ticking(ticks):
    while True:
        ticks.append(time.monotonic())
        time.sleep(1)

def computing(ticks):
    while True:
        ticks.append(time.monotonic())

@virtual
def test_it(kafka_cluster):
    for app_of in (ticking, computing):
        ticks = []
        app = kafka_cluster.run(app_of, ticks)
        time.sleep(2)
        app.pause()
        time.sleep(2)
        before = len(ticks)
        app.restart()
        time.sleep(2)
        assert len(ticks) > before + 1
        app.pause()
        time.sleep(2)
        before = len(ticks)
        time.sleep(5)
        assert len(ticks) == before
        kafka_cluster.calm()
        time.sleep(2)
        assert len(ticks) > before + 1
        app.kill()
    with pytest.raises(Exception, match="app computing does not run"):
        kafka_cluster.do("pause", "app computing")
    with pytest.raises(Exception, match="only kill, start, pause and resume take programs"):
        kafka_cluster.do("isolate", "app ticking")
""",
    )
    result.assert_outcomes(passed=1)


def test_kill__rolls_a_database_back_and_frees_its_locks(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def billing(path):
    with sqlite3.connect(path) as database:
        database.execute("insert into orders values (1)")
        time.sleep(10)

@virtual
def test_it(kafka_cluster, tmp_path):
    path = tmp_path / "orders"
    with sqlite3.connect(path) as database:
        database.execute("create table orders (number)")
    app = kafka_cluster.run(billing, path)
    time.sleep(1)
    app.kill()
    with sqlite3.connect(path) as database:
        assert database.execute("select * from orders").fetchall() == []
        database.execute("insert into orders values (2)")
""",
    )
    result.assert_outcomes(passed=1)


def test_kill__ends_a_loop_that_catches_everything(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def stubborn():
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

@virtual
def test_it(kafka_cluster):
    app = kafka_cluster.run(stubborn)
    time.sleep(5)
    kafka_cluster.kill("app stubborn")
    assert not app.is_running
""",
    )
    result.assert_outcomes(passed=1)


def test_run__an_app_of_asyncio_is_killed_and_restarted(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import asyncio
from aiokafka import AIOKafkaConsumer

async def billing(cluster, seen):
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=cluster.bootstrap, group_id="billing",
                                auto_offset_reset="earliest", enable_auto_commit=False)
    async with consumer:
        async for record in consumer:
            seen.append(record.offset)

@virtual
def test_it(kafka_cluster):
    seen = []
    app = kafka_cluster.run(billing, kafka_cluster, seen)
    send(kafka_cluster, 3)
    time.sleep(10)
    app.restart()
    time.sleep(60)
    assert seen == [0, 1, 2, 0, 1, 2]
""",
    )
    result.assert_outcomes(passed=1)


def test_run__an_exception_that_ends_an_app_fails_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def billing():
    time.sleep(3)
    raise ValueError("no price")

@virtual
def test_unnoticed(kafka_cluster):
    kafka_cluster.run(billing)
    time.sleep(5)

@virtual
def test_joined(kafka_cluster):
    app = kafka_cluster.run(billing)
    with pytest.raises(AssertionError, match="app billing ended with ValueError: no price"):
        app.join()
    app.restart()
    time.sleep(1)
    app.kill()
    with pytest.raises(Exception, match="app billing does not run"):
        app.kill()
    with pytest.raises(Exception, match="no such program; did you mean billing?"):
        kafka_cluster.kill("app biling")
""",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*AppFailed: app billing ended with ValueError: no price"])


def test_kill__after_a_moment(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def billing(cluster):
    consumer = consumer_of(cluster, enable_auto_commit=False, max_poll_records=1)
    for record in consumer:
        consumer.commit()
        time.sleep(1)

@virtual
def test_it(kafka_cluster):
    app = kafka_cluster.run(billing, kafka_cluster)
    app.kill(after="3rd commit of billing", within="50ms")
    kafka_cluster.kill("leader(orders-0)", after="2nd ack of orders")
    send(kafka_cluster, 10)
    time.sleep(30)
    events = [entry.note for entry in kafka_cluster.events()]
    kinds = [note.event.kind for note in events]
    assert "broker_down" in kinds and not app.is_running
    with pytest.raises(Exception, match="no such moment; did you mean commit?"):
        app.kill(after="3rd comit of billing")
    kafka_cluster.at_moment("1st rebalance of shipping", "kill", {"brokers": "any broker"})
    assert str(kafka_cluster.awaited[0]) == "1st rebalance of shipping"
""",
    )
    result.assert_outcomes(passed=1)


def test_run__a_supervised_app_starts_again_after_an_exception(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
lives = []

def billing():
    lives.append(time.monotonic())
    threading.Thread(target=lambda: time.sleep(1e6)).start()
    time.sleep(1)
    if len(lives) < 3:
        raise ValueError("no price")

@virtual
def test_it(kafka_cluster):
    app = kafka_cluster.run(billing, restart_after="2s")
    time.sleep(20)
    assert [round(at - lives[0]) for at in lives] == [0, 3, 6]
    assert not app.is_running and len(kafka_cluster.deaths.found) == 2
""",
    )
    result.assert_outcomes(passed=1)


def test_stall__threads_race_that_do_not_wake_at_one_moment(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
count = 0

def add():
    global count
    for _ in range(20):
        time.sleep(0.01)
        before = count
        after = before + 1
        count = after

def adding(number):
    time.sleep(number / 1000)  # so that the two never wake at one moment
    add()

@virtual
def test_it(kafka_cluster):
    for _ in range(2):
        kafka_cluster.run(adding, _)
    time.sleep(60)
    assert count == 40
    kafka_cluster.do("stall", app="all", share="30%", longest="20ms")
    for _ in range(2):
        kafka_cluster.run(adding, _)
    time.sleep(60)
    assert 40 < count < 80
    with pytest.raises(Exception, match="no such program"):
        kafka_cluster.do("stall", app="nobody")
""",
    )
    result.assert_outcomes(passed=1)


def test_stall__may_come_before_the_program_that_it_names(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def sleeping(at):
    for _ in range(20):
        at.append(time.monotonic())

@virtual
def test_it(kafka_cluster):
    kafka_cluster.do("stall", app="billing", share="100%", longest="20ms")
    billing, others = [], []
    kafka_cluster.run(sleeping, billing, name="billing")
    kafka_cluster.run(sleeping, others, name="others")
    time.sleep(60)
    assert billing[-1] - billing[0] > 0.05
    assert others[-1] - others[0] < 0.001
""",
    )
    result.assert_outcomes(passed=1)


def test_stall__may_be_at_one_line(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import inspect

def sleeping(at):
    for _ in range(20):
        at.append(time.monotonic())
        at.append(time.monotonic())

@virtual
def test_it(kafka_cluster):
    line = inspect.getsourcelines(sleeping)[1] + 3
    kafka_cluster.do("stall", app="all", share="100%", longest="20ms", line=f"test_it.py:{line}")
    at = []
    kafka_cluster.run(sleeping, at)
    time.sleep(60)
    assert at[-1] - at[0] > 0.05
    assert all(after - before < 0.001 for before, after in zip(at[1::2], at[2::2]))
""",
    )
    result.assert_outcomes(passed=1)


def test_execution__leaving_a_with_statement_is_not_its_line_again(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
import inspect

def booking(lock, booked):
    for _ in range(3):
        with lock:
            booked.append(1)
        time.sleep(1)
    time.sleep(100)

@virtual
def test_it(kafka_cluster):
    lock, booked = threading.Lock(), []
    line = inspect.getsourcelines(booking)[1] + 2
    kafka_cluster.at_moment(f"2nd execution of test_it.py:{line}", "kill", "app booking")
    app = kafka_cluster.run(booking, lock, booked)
    time.sleep(10)
    assert booked == [1] and app.was_killed
    assert lock.acquire(timeout=5)  # else it would have died with the lock, for ever
""",
    )
    result.assert_outcomes(passed=1)


def test_execution__an_app_dies_before_it_executes_a_line(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def billing(begun, ended):
    for number in range(5):
        begun.append(number)
        ended.append(number)

@virtual
def test_it(kafka_cluster):
    begun, ended = [], []
    line = billing.__code__.co_firstlineno + 3
    moment = f"3rd execution of {__name__}.py:{line}"
    kafka_cluster.at_moment(moment, "kill", {"brokers": "app billing"}, lasts="1s")
    kafka_cluster.run(billing, begun, ended)
    time.sleep(10)
    assert begun == [0, 1, 2, 0, 1, 2, 3, 4]
    assert ended == [0, 1, 0, 1, 2, 3, 4]
    with pytest.raises(Exception, match="execution has a line of code"):
        kafka_cluster.at_moment("2nd execution of billing", "kill", {"brokers": "app billing"})
""",
    )
    result.assert_outcomes(passed=1)


def test_report__has_what_clients_and_tasks_met_themselves(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import asyncio

async def service(cluster):
    async def refresh():
        await asyncio.Event().wait()
    await asyncio.gather(asyncio.create_task(refresh(), name="refresh"))

@virtual
def test_it(kafka_cluster):
    kafka_cluster.run(service, kafka_cluster)
    producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap.split(","), client_id="shop")
    kafka_cluster.do("isolate", "all")
    for _ in range(2):
        try:
            producer.send("orders", b"one").get(timeout=2)
        except Exception:
            pass
    kafka_cluster.calm()
    assert False
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*client_error *test_it.py:* raised kafka.errors.KafkaTimeoutError*2 times until*",
            "tasks:",
            "  refresh in refresh awaits at test_it.py:*: await asyncio.Event().wait()",
        ]
    )
