"""Actions on brokers, as scenarios play them: a rolling restart, the loss of a rack."""

from __future__ import annotations

from kcluster.events.brokers import BrokerDown
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.scenario.played import process_events, run


def test_rolling_restart__each_waits_until_the_one_before_is_in_sync() -> None:
    result = run("steps: [{at: 1s, rolling_restart: {down: 500ms}}]")
    events = process_events(result)
    assert [text for _, text in events] == [
        f"broker {broker} {what}" for broker in (1, 2, 3) for what in ("down", "started")
    ]
    times = [at for at, _ in events]
    assert all(started - down == 500 for down, started in zip(times[::2], times[1::2], strict=True))
    assert result.passed


def test_rolling_restart__leaves_a_broker_that_is_down_alone_and_ends_in_time() -> None:
    result = run("steps: [{at: 1s, kill: 2}, {at: 2s, rolling_restart: , for: 1s}]", duration="20s")
    texts = [text for _, text in process_events(result)]
    assert texts[:3] == ["broker 2 down", "broker 1 down", "broker 1 started"]
    assert "broker 3 down" not in texts


def test_lose__a_racks_machines_lose_power_at_once() -> None:
    result = run_scenario(
        Scenario.parse(
            "topology: {brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: b}],"
            " topics: {orders: {}}}\nduration: 20s\nsteps: [{at: 5s, lose: rack b, for: 5s}]"
        ),
        "virtual",
    )
    down = [
        (note.at_ms - result.began_ms, note.event.how)
        for note in result.notes
        if isinstance(note.event, BrokerDown)
    ]
    assert down == [(5_000, "power"), (5_000, "power")]
