"""A live cluster and its clients in the process of a world: for them all stays as it is."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("kafka")

from kafka import KafkaProducer

from tests.world.bodies import python_clients
from tests.world.rig import in_virtual_time, live

pytestmark = pytest.mark.pure_python


def test_a_live_cluster_serves_on_beside_a_world() -> None:
    acked: list[int] = []
    times_s: list[float] = []
    is_over = threading.Event()

    def produce(bootstrap: str) -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        while not is_over.is_set():
            acked.append(producer.send("orders", b"outside").get(timeout=30).offset)
            times_s.append(time.time())
        producer.close()

    began_s = time.time()
    with live() as outside:
        thread = threading.Thread(target=produce, args=(outside.bootstrap,))
        thread.start()
        with in_virtual_time() as inside:
            outcome = python_clients.two_halves(inside)
        is_over.set()
        thread.join()
    assert (outcome.failed, outcome.lost) == ([], [])
    assert acked
    assert began_s <= min(times_s), "no clock of a world"
    assert max(times_s) <= time.time()
