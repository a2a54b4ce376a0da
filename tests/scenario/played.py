"""Short scenarios of one topic on three brokers, and what became of their brokers."""

from __future__ import annotations

from kcluster.events.brokers import BrokerDown, BrokerPaused, BrokerResumed, BrokerStarted
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

HEAD = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 10/s}}
duration: 40s
"""


def run(steps: str, clock: str = "virtual", duration: str = "40s") -> RunResult:
    return run_scenario(Scenario.parse(HEAD.replace("40s", duration) + steps), clock)


def process_events(result: RunResult) -> list[tuple[int, str]]:
    wanted = (BrokerDown, BrokerStarted, BrokerPaused, BrokerResumed)
    return [
        (
            note.at_ms - result.began_ms,
            f"{note.event.subject} {note.event.kind.removeprefix('broker_')}",
        )
        for note in result.notes
        if isinstance(note.event, wanted) and note.at_ms > result.began_ms
    ]
