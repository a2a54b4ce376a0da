"""The computing time of TLS handshakes in virtual time: of the project's own clients, and of
bytes."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.clients.worlds import started
from tests.drivers.tls.test_cluster_tls import Secured, answers
from tests.rig.incidents import INCIDENTS

COST_MS = 50
CLIENTS = 6


def acks_ms(cost_ms: float, clients: int, **config: str) -> list[int]:
    """When the first record of each client is acknowledged; all of them begin at once."""
    driver = started(
        listeners={"CLIENT": {"protocol": "SSL"}},
        security={"tls": {"handshake_cpu_ms": cost_ms}},
        brokers=1,
        topics={"orders": {"partitions": 1}},
        config=config,
    )
    ledger = Ledger()
    settings = ProducerSettings(linger_ms=0, enable_idempotence=False)
    for number in range(clients):
        plan = ProducerPlan(count=1, partitions=(0,))
        driver.add_client(Producer(f"p{number}", ledger, plan, settings))
    driver.run_for(5_000)
    return sorted(send.ended_ms - send.sent_ms for send in ledger.sends if send.ended_ms)


def test_handshake__costs_nothing_by_default_and_its_setting_otherwise() -> None:
    (free,) = acks_ms(0, 1)
    (paid,) = acks_ms(COST_MS, 1)
    assert paid - free == COST_MS


def test_handshake__a_storm_waits_for_the_network_threads() -> None:
    free = acks_ms(0, CLIENTS)
    one_thread = acks_ms(COST_MS, CLIENTS, **{"num.network.threads": "1"})
    three_threads = acks_ms(COST_MS, CLIENTS)
    assert len(set(free)) == 1
    assert one_thread[-1] - free[-1] == CLIENTS * COST_MS
    assert three_threads[-1] - free[-1] == CLIENTS // 3 * COST_MS


def test_handshake__a_storm_after_an_outage_shows_as_latency() -> None:
    (file,) = (each for each in INCIDENTS if each.stem == "reauthentication_storm")
    slow = file.read_text().replace("verdict: valid", 'verdict: valid\n  writes_resume: "> 1200ms"')
    assert not run_scenario(Scenario.parse(slow), "virtual").failures
    quick = slow.replace("cpu_ms: 30", "cpu_ms: 0").replace("> 1200ms", "< 1050ms")
    assert not run_scenario(Scenario.parse(quick), "virtual").failures


def shake_ms(secured: Secured) -> tuple[Any, float]:
    """A connection, and how long it took."""
    driver = secured.cluster.driver
    began_us = driver.now_us
    line = secured.connect()
    return line, (driver.now_us - began_us) / 1000


def test_handshake__of_bytes_costs_the_same_and_delays_others() -> None:
    config = {"num.network.threads": "1"}
    free = Secured("memory", security={"tls": "auto"})
    paid = Secured("memory", security={"tls": {"handshake_cpu_ms": COST_MS}}, config=config)
    first, without_ms = shake_ms(free)
    second, with_ms = shake_ms(paid)
    assert with_ms - without_ms == COST_MS
    busy = paid.world.connect()
    busy.sendall(b"\x16")  # a handshake begins, and keeps the thread busy
    driver = paid.cluster.driver
    began_us = driver.now_us
    assert answers(second)
    assert driver.now_us - began_us >= COST_MS * 1000
    for each in (first, second, busy):
        each.close()
    free.world.finish()
    paid.world.finish()


@pytest.mark.parametrize("wrong", ["-1", "5ms", "10001", "yes"])
def test_handshake__a_wrong_cost_is_told_with_its_place(wrong: str) -> None:
    with pytest.raises(TopologyError, match=r"1:\d+ security.tls.handshake_cpu_ms"):
        Topology.parse(f"{{brokers: 1, security: {{tls: {{handshake_cpu_ms: {wrong}}}}}}}")
