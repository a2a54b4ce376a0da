"""The stories on the clock of one's choice, with the requests that they took:

    python -m tests.world.bodies.stories failover --clock both --seed 1

Owns: this command.  Never: a story.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from tests.compat.on_both_clocks.counting import counts_requests
from tests.world.bodies import asyncio_clients, python_clients
from tests.world.bodies.outcome import Outcome
from tests.world.rig import in_virtual_time, live

_SIX: Final = {"partitions": 6, "replication_factor": 3}
_THREE: Final = {"partitions": 3, "replication_factor": 3}
STORIES: Final[dict[str, tuple[Callable[[Any], Outcome], dict[str, Any]]]] = {
    "failover": (python_clients.failover, {"orders": _THREE}),
    "two_halves": (python_clients.two_halves, {"orders": _THREE}),
    "busy_service": (python_clients.busy_service, {"orders": _SIX, "payments": _SIX}),
    "asyncio_failover": (asyncio_clients.failover, {"orders": _THREE}),
}
"""By name: the story, its topics."""


def tell(name: str, clock: str, seed: int) -> tuple[Outcome, Counter[str], float, float]:
    """One story on one clock: the outcome, the requests by API, wall and CPU seconds."""
    story, topics = STORIES[name]
    began_s, cpu_s = time.perf_counter(), time.process_time()
    make = live if clock == "live" else in_virtual_time
    with make(topics, seed=seed, profile="kafka") as cluster:
        requests = counts_requests(cluster)
        outcome = story(cluster)
    return outcome, requests, time.perf_counter() - began_s, time.process_time() - cpu_s


def main() -> None:
    """One story."""
    parser = argparse.ArgumentParser(description="A user's test, live and in virtual time.")
    parser.add_argument("story", choices=STORIES)
    parser.add_argument("--clock", choices=("live", "virtual", "both"), default="virtual")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    clocks = ("live", "virtual") if options.clock == "both" else (options.clock,)
    told = {clock: tell(options.story, clock, options.seed) for clock in clocks}
    print(f"{'':26}" + "".join(f"{clock:>10}" for clock in clocks))
    rows: dict[str, list[float]] = {
        "acked": [len(outcome.acked) for outcome, *_ in told.values()],
        "read": [len(outcome.read) for outcome, *_ in told.values()],
        "failed": [len(outcome.failed) for outcome, *_ in told.values()],
        "lost": [len(outcome.lost) for outcome, *_ in told.values()],
        "longest ack, s": [outcome.longest_ack_s for outcome, *_ in told.values()],
        "the story took, s": [outcome.took_s for outcome, *_ in told.values()],
        "wall time, s": [wall_s for *_, wall_s, _ in told.values()],
        "CPU time, s": [cpu_s for *_, cpu_s in told.values()],
    }
    for api in sorted({api for _, requests, *_ in told.values() for api in requests}):
        rows[api] = [requests[api] for _, requests, *_ in told.values()]
    for row, figures in rows.items():
        print(f"{row:26}" + "".join(f"{figure:10.5g}" for figure in figures))


if __name__ == "__main__":
    main()
