"""What client libraries need to live in a world, and which are refused."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import multiprocessing.pool
import platform
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from kcluster.world.errors import NotInVirtualTime
from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


def test_confluent_kafka_is_refused_in_one_line_whoever_holds_its_classes() -> None:
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    made_by_name = confluent_kafka.Producer

    Derived = type("Derived", (confluent_kafka.Consumer,), {})  # as applications derive their own

    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "billing"}
    with empty_world():
        for cls in (confluent_kafka.Producer, confluent_kafka.Consumer, admin.AdminClient, Derived):
            with pytest.raises(NotInVirtualTime) as refused:
                cls(settings)
            assert "confluent_kafka does its I/O in C" in str(refused.value)
            assert "\n" not in str(refused.value)
    assert confluent_kafka.Producer is made_by_name
    assert isinstance(made_by_name(settings), confluent_kafka.Producer)
    Derived(settings).close()


def test_a_library_imported_in_a_world_is_refused_as_well() -> None:
    pytest.importorskip("confluent_kafka")
    others = {name: module for name, module in sys.modules.items() if "confluent_kafka" in name}
    for name in others:
        if name != "confluent_kafka.cimpl":  # C modules are not loaded twice
            del sys.modules[name]
    try:
        with empty_world():
            again = importlib.import_module("confluent_kafka")
            with pytest.raises(NotInVirtualTime, match="librdkafka"):
                again.Producer({"bootstrap.servers": "127.0.0.1:1"})
    finally:
        sys.modules.update(others)


def test_sets_of_tasks_and_futures_have_the_same_order_in_each_world() -> None:
    async def made() -> list[Any]:
        tasks = [asyncio.create_task(asyncio.sleep(0), name=f"{number}") for number in range(50)]
        done, _ = await asyncio.wait(tasks)
        futures = [asyncio.get_running_loop().create_future() for _ in range(50)]
        gathered = [asyncio.gather(future) for future in futures]
        names = [task.get_name() for task in done]
        return (
            names
            + [futures.index(x) for x in set(futures)]
            + [gathered.index(x) for x in set(gathered)]
        )

    def orders() -> list[Any]:
        with empty_world():
            results = [concurrent.futures.Future[None]() for _ in range(50)]
            kept.append(set(results))
            return [results.index(x) for x in kept[-1]] + asyncio.run(made())

    kept: list[set[Any]] = []
    assert orders() == orders()
    assert all(each in kept[0] for each in tuple(kept[0])), "still found when the world is over"


def test_threads_of_a_pool_are_joined_in_the_order_of_their_starts() -> None:
    made_before = threading.Thread()
    seen = {made_before}
    with empty_world(), concurrent.futures.ThreadPoolExecutor(20) as pool:
        barrier = threading.Barrier(20)
        list(pool.map(lambda _: barrier.wait(), range(20)))
        names = [thread.name for thread in pool._threads]
        assert made_before in seen, "it has the hash that it had"
    assert names == [f"ThreadPoolExecutor-0_{number}" for number in range(20)]


def test_names_are_counted_anew_in_each_world() -> None:
    def names() -> list[str]:
        with empty_world(), concurrent.futures.ThreadPoolExecutor() as pool:
            thread = threading.Thread()
            return [thread.name, pool.submit(lambda: threading.current_thread().name).result()]

    assert names() == names() == ["Thread-1", "ThreadPoolExecutor-0_0"]


def test_aiokafka_builds_records_in_python() -> None:
    records: Any = pytest.importorskip("aiokafka.record.default_records")
    accumulator: Any = pytest.importorskip("aiokafka.producer.message_accumulator")
    before = accumulator.DefaultRecordBatchBuilder
    with empty_world():
        assert accumulator.DefaultRecordBatchBuilder is records._DefaultRecordBatchBuilderPy
    assert accumulator.DefaultRecordBatchBuilder is before


def test_clients_take_an_unknown_host_for_an_answer_of_the_resolver() -> None:
    kafka = pytest.importorskip("kafka")
    with empty_world(), pytest.raises(kafka.errors.KafkaError) as failed:
        kafka.KafkaProducer(bootstrap_servers="kafka.example.org:9092", bootstrap_timeout_ms=1000)
    assert failed.value is not None


def test_asyncio_is_adapted_also_if_a_world_imports_it_first() -> None:
    script = """
from tests.world.rig import empty_world
assert "asyncio" not in __import__("sys").modules
with empty_world():
    import asyncio
    async def main():
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
        await asyncio.gather(*tasks)
        print([hash(task) for task in tasks], hash(asyncio.get_running_loop().create_future()))
    asyncio.run(main())
assert isinstance(asyncio.new_event_loop().create_future(), asyncio.Future)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False
    )
    assert run.returncode == 0, run.stderr
    serials = [int(number) for number in run.stdout.replace("[", "").replace("]", ",").split(",")]
    assert serials == sorted(serials)
    assert max(serials) < 20


def test_a_thread_pool_of_multiprocessing_works() -> None:
    def double(number: int) -> int:
        time.sleep(1)
        return number * 2

    for _ in range(2):
        with empty_world():
            began_s = time.monotonic()
            with multiprocessing.pool.ThreadPool(4) as pool:
                assert pool.map(double, range(8)) == [*range(0, 16, 2)]
                assert pool.apply_async(double, (21,)).get(timeout=5) == 42
                with pytest.raises(multiprocessing.TimeoutError):
                    pool.apply_async(time.sleep, (60,)).get(timeout=5)
                pool.close()
                pool.join()
            assert time.monotonic() - began_s == pytest.approx(2 + 1 + 60, abs=0.1)
    with multiprocessing.pool.ThreadPool(2) as pool:
        assert pool.map(str, [1]) == ["1"]


def test_platform_asks_no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "_platform_cache", {})
    monkeypatch.setattr(platform, "_uname_cache", None)
    with empty_world() as world:
        assert platform.architecture()[0] in ("64bit", "32bit")
        assert platform.platform()
        assert platform.processor() is not None
        assert not world.refused
