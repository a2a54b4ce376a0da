"""What docs/explanation/findings-virtual-clients.md says of client libraries, in virtual time.

A test that fails after an upgrade has good news: take the finding off that page.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("aiokafka")
pytest.importorskip("kafka")

import aiokafka
import kafka

from tests.world.bodies import findings
from tests.world.rig import in_virtual_time

pytestmark = [
    pytest.mark.pure_python,
    pytest.mark.filterwarnings("ignore"),  # what these leave open is the finding
    pytest.mark.skipif(
        (kafka.__version__, aiokafka.__version__) != ("3.0.12", "0.14.0"), reason="other releases"
    ),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of warnings are part of some findings."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def counted(finding: Callable[[Any], dict[str, float]]) -> dict[str, float]:
    with in_virtual_time(seed=findings.SEED) as cluster:
        return finding(cluster)


def test_aiokafka_never_stops_while_its_coordinator_is_unknown() -> None:
    figures = counted(findings.stop_without_coordinator)
    assert figures["waited s"] > figures["coordinator back after s"] + 50
    assert not figures["stop() returned"]


def test_aiokafka_raises_when_it_is_stopped_in_the_backoff_of_a_fetch() -> None:
    assert counted(findings.stop_in_backoff)["stop() raised"] >= 5


def test_aiokafka_connects_to_a_dead_broker_twenty_times_a_second() -> None:
    assert 100 < counted(findings.reconnects)["attempts to connect"] < 300


def test_aiokafka_asks_an_old_leader_again_and_again_and_never_for_metadata() -> None:
    figures = counted(findings.lookups_at_an_old_leader)
    assert figures["offset lookups"] > 70
    assert figures["metadata asked for"] == 0


def test_kafka_python_takes_seconds_for_milliseconds() -> None:
    assert counted(findings.backoff_units)["passes of the sender"] > 3_000


def test_kafka_python_spins_in_poll_while_its_coordinator_is_silent() -> None:
    figures = counted(findings.silent_coordinator)
    assert figures["most in one poll, silent"] > 20, "without waiting"


def test_kafka_python_never_sends_again_after_a_batch_expired_in_flight() -> None:
    figures = counted(findings.expired_in_flight)
    assert figures["waited s"] == findings.WATCHED_FLUSH_S
    assert figures["never done"] > 30


def test_kafka_python_never_adds_offsets_after_the_coordinator_has_died() -> None:
    figures = counted(findings.offsets_never_sent)
    assert figures["offsets sent"] == 0
    assert figures["asked for the coordinator"] == 1
    assert not figures["returned"]
