"""The hash of everything that a story sends and receives:

    python -m tests.world.bodies.traced [--under-a-tracer] [--in-a-child]

Owns: this command.  Never: a story.
"""

from __future__ import annotations

import logging
import os
import sys
from types import FrameType
from typing import Any

from kcluster.world.trace import WireTrace
from kcluster.world.world import START_MS
from tests.world.bodies import python_clients
from tests.world.rig import in_virtual_time

_SIX = {"partitions": 6, "replication_factor": 3}


def trace_hash(seed: int) -> str:
    """Of two producers, a group of two consumers, pools, a queue, a death, a restart, a pause."""
    trace = WireTrace(START_MS * 1000)
    topics = {"orders": _SIX, "payments": _SIX}
    with in_virtual_time(topics, seed=seed, profile="fast") as cluster:
        network = cluster.driver.network
        network.packet_sinks = (*network.packet_sinks, trace.on_packet)
        python_clients.busy_service(cluster, records=20, calm_s=1, dead_s=2, paused_s=2)
        trace.end(cluster.driver.now_us, 0, "")
    return trace.hash


def in_a_child(seed: int) -> str:
    """The same in a forked child, after a run in this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, trace_hash(seed).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as report:
        found = report.read()
    os.waitpid(child, 0)
    return found


def _tracer(frame: FrameType, event: str, argument: Any) -> Any:
    """As a tool that measures coverage: it sees every line."""
    return _tracer


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    if "--under-a-tracer" in sys.argv:
        import threading

        threading.settrace(_tracer)
        sys.settrace(_tracer)
    print(trace_hash(7))
    if "--in-a-child" in sys.argv:
        print(in_a_child(7))
