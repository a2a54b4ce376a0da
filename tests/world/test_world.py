"""Threads, locks, clocks, sockets and random numbers of a world without a cluster."""

from __future__ import annotations

import asyncio
import datetime
import queue
import random
import re
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic as monotonic_by_name

import pytest

from kcluster.world import scheduler
from kcluster.world.errors import Deadlock, Livelock, NotInVirtualTime, TimeLimit
from kcluster.world.replaced.clocks import EPOCH_S
from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


def test_an_hour_passes_at_once() -> None:
    real = time.monotonic()
    with empty_world(limit_s=10_000):
        began, now = time.monotonic(), time.time()
        time.sleep(3600)
        assert 3600 <= time.monotonic() - began < 3600.1
        assert 3600 <= monotonic_by_name() - began < 3600.1
        assert now == pytest.approx(EPOCH_S)
        assert datetime.datetime.now(datetime.UTC).isoformat() >= "2026-01-01T01:00:00"
        assert datetime.date.today().year == 2026
    assert time.monotonic() - real < 60
    assert datetime.datetime.now() > datetime.datetime(2026, 1, 2)


def test_threads_wait_for_each_other() -> None:
    seen: list[str] = []

    def work(name: str, out: queue.Queue[str]) -> None:
        for step in range(3):
            time.sleep(0.1 if name == "a" else 0.25)
            out.put(f"{name}{step}")

    with empty_world():
        out: queue.Queue[str] = queue.Queue(maxsize=1)
        threads = [threading.Thread(target=work, args=(name, out)) for name in "ab"]
        for thread in threads:
            thread.start()
        seen.extend(out.get(timeout=1) for _ in range(6))
        for thread in threads:
            thread.join()
        with pytest.raises(queue.Empty):
            out.get(timeout=5)
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda x: x * x, range(5))) == [0, 1, 4, 9, 16]
    assert seen == ["a0", "a1", "b0", "a2", "b1", "b2"]


def test_threads_made_before_the_world_run_in_it_and_the_other_way_round() -> None:
    seen: list[float] = []

    def work() -> None:
        time.sleep(50)
        seen.append(time.monotonic())

    before = threading.Thread(target=work)
    with empty_world():
        before.start()
        before.join()
        after = threading.Thread(target=seen.append, args=(1,))
    assert not before.is_alive()
    after.start()
    after.join()
    assert [round(at) for at in seen] == [1050, 1]


def test_a_deadlock_names_the_threads_and_their_lines() -> None:
    one, other = threading.Lock(), threading.Lock()

    def take(first: threading.Lock, second: threading.Lock) -> None:
        with first:
            time.sleep(1)
            second.acquire()

    with empty_world():
        one, other = threading.Lock(), threading.Lock()
        threads = [
            threading.Thread(target=take, args=pair, name=name)
            for name, pair in (("left", (one, other)), ("right", (other, one)))
        ]
        for thread in threads:
            thread.start()
        with pytest.raises(Deadlock) as caught:
            threads[0].join()
    text = str(caught.value)
    assert "left waits for a lock" in text
    assert "test_world.py" in text
    assert "in take" in text


def test_the_limit_ends_a_test_that_waits_for_ever() -> None:
    def wait_for_ever() -> None:
        while True:
            time.sleep(1)

    with empty_world(limit_s=60), pytest.raises(TimeLimit):
        wait_for_ever()


def sleeping_not_at_all() -> None:
    while True:
        time.sleep(0)


def looking_at_an_event() -> None:
    event = threading.Event()
    while not event.wait(0):
        pass


def yielding_in_asyncio() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    asyncio.run(spin())


def in_a_thread(spin: Callable[[], None]) -> None:
    thread = threading.Thread(target=spin)
    thread.start()
    thread.join()


SPINS = (sleeping_not_at_all, looking_at_an_event, yielding_in_asyncio)


@pytest.mark.parametrize("spin", SPINS, ids=lambda spin: spin.__name__)
@pytest.mark.parametrize("run", [in_a_thread, lambda spin: spin()], ids=["thread", "first"])
def test_the_limit_ends_a_program_that_spins(
    spin: Callable[[], None], run: Callable[[Callable[[], None]], None]
) -> None:
    """It never waits, so no thread ever finds that all wait; its line is named."""
    line = rf"test_world\.py.* in {spin.__name__}"
    with empty_world(limit_s=3), pytest.raises(TimeLimit, match=line):
        run(spin)


def hand_over_and_back(first: bool, mine: queue.Queue[int], other: queue.Queue[int]) -> None:
    if first:
        other.put(1)
    while True:
        other.put(mine.get())


def test_threads_that_wake_each_other_for_ever_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock is read, no poll is empty: nothing lets time pass."""
    monkeypatch.setattr(scheduler, "MAX_HANDOVERS", 500)
    left: queue.Queue[int] = queue.Queue()
    right: queue.Queue[int] = queue.Queue()
    with empty_world():
        echo = threading.Thread(target=hand_over_and_back, args=(False, left, right), name="echo")
        echo.start()
        with pytest.raises(Livelock, match="500 times") as caught:
            hand_over_and_back(True, right, left)
    _, first, second = str(caught.value).splitlines()
    assert first.startswith("  MainThread waits for ")
    assert second.startswith("  echo waits for ")
    for line in (first, second):
        assert re.search(r"test_world\.py:\d+ in hand_over_and_back$", line)


def test_a_moment_has_room_for_many_handovers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MAX_HANDOVERS", 500)

    def send() -> None:
        for number in range(50):
            items.put(number)

    with empty_world():
        items: queue.Queue[int] = queue.Queue(maxsize=1)
        for _ in range(5):
            sender = threading.Thread(target=send)
            sender.start()
            assert [items.get() for _ in range(50)] == list(range(50))
            sender.join()
            time.sleep(0.001)


def test_a_thread_that_spins_gets_there() -> None:
    with empty_world():
        until = time.monotonic() + 1
        while time.monotonic() < until:
            pass


def test_threads_that_are_left_are_ended_and_named() -> None:
    stop = threading.Event()

    def serve() -> None:
        event = threading.Event()
        event.wait()

    with empty_world() as here:
        threading.Thread(target=serve, name="server", daemon=True).start()
        time.sleep(1)
    assert [thread.name for thread in here.left] == ["server"]
    assert not stop.is_set()


def test_threads_that_are_left_and_still_want_to_run_are_ended_in_any_order() -> None:
    def cling(lock: threading.Lock) -> None:
        with lock:
            try:
                time.sleep(1000)
            finally:
                time.sleep(0)

    for seed in range(5):
        with empty_world(seed=seed, schedule="random", patience_s=0.3) as world:
            for _ in range(4):
                threading.Thread(target=cling, args=(threading.Lock(),)).start()
            time.sleep(1)
        assert len(world.left) == 4


def test_a_server_and_a_client_inside() -> None:
    with empty_world():
        listening = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            accepted, _ = listening.accept()
            while data := accepted.recv(100):
                accepted.sendall(data.upper())
            accepted.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with socket.create_connection(listening.getsockname()) as client:
            client.sendall(b"hello")
            assert client.recv(100) == b"HELLO"
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
        thread.join()
        with pytest.raises(NotInVirtualTime, match=r"example\.org is no broker"):
            socket.create_connection(("example.org", 80))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 1))


def slept_for(seconds: int) -> int:
    time.sleep(seconds)
    return seconds


def test_asyncio_as_it_is() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    async def main() -> bytes:
        server = await asyncio.start_server(echo, "127.0.0.1", 8000)
        reader, writer = await asyncio.open_connection("127.0.0.1", 8000)
        writer.write(b"hello")
        await asyncio.sleep(100)
        answer = await reader.read(100)
        assert await asyncio.to_thread(slept_for, 3) == 3
        writer.close()
        server.close()
        return answer

    with empty_world():
        assert asyncio.run(main()) == b"hello"


def test_random_numbers_come_from_the_seed() -> None:
    def draw(seed: int) -> list[object]:
        with empty_world(seed=seed):
            return [random.random(), random.Random().random(), uuid.uuid4(), uuid.uuid1()]

    state = random.getstate()
    first = draw(1)
    assert draw(1) == first
    assert all(x != y for x, y in zip(draw(2), first, strict=True))
    assert random.getstate() == state


def test_selectors_see_sockets() -> None:
    with empty_world(), selectors.DefaultSelector() as selector:
        one, other = socket.socketpair()
        selector.register(one, selectors.EVENT_READ, "one")
        began = time.monotonic()
        assert selector.select(2) == []
        assert time.monotonic() - began >= 2
        other.send(b"x")
        ((key, events),) = selector.select(2)
        assert (key.data, events) == ("one", selectors.EVENT_READ)


def test_a_loop_that_runs_outside_is_not_seen_inside() -> None:
    async def inside() -> int:
        await asyncio.sleep(100)
        return 5

    before, outside = asyncio._get_running_loop(), asyncio.new_event_loop()
    asyncio._set_running_loop(outside)
    try:
        with empty_world():
            assert asyncio.run(inside()) == 5
        assert asyncio._get_running_loop() is outside
    finally:
        asyncio._set_running_loop(before)
        outside.close()
