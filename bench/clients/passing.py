"""Much data with a small retention: python -m bench.clients.passing BOOTSTRAP --pids PIDS.

Owns: the load, and measuring the system's memory during it.  Never: judges the result.  Prints
`quarters_mb`: the maximum memory during each quarter of the data.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Final

from confluent_kafka import Producer

from bench.clients.topics import QUIET, make_topic
from bench.processes import memory_mb

PARTITIONS: Final = 6
SEGMENTS: Final = 8
"""The number of segments that a partition keeps: only whole segments are deleted."""
LEAST_SEGMENT_BYTES: Final = 1 << 20
LOOKS: Final = 10
"""The number of memory readings in each quarter."""
MB_PER_S: Final = 150.0
"""Not faster: between two of retention's looks (CHECK_MS of bench/ours.py) comes what must be held
beside RETAINED_BYTES.  At full speed, 500 MB/s here, that is 50 MB more, and memory swings by it.

What is resident is what is held, plus 30 MB of program and what malloc keeps of the last peak, and
it stays so: 6 GB at full speed grow by 3 to 9 MB.  Other settings of glibc's malloc were tried, by
its environment: MMAP_THRESHOLD_=131072 gives back at once what is freed, but then each frame's
pages are new ones, 0.92 s of CPU a GB instead of 0.62; ARENA_MAX=1 with MMAP_THRESHOLD_=33554432
grows by 6 MB over those 6 GB and produces no faster (median of five 416 MB/s, without 525).  So
malloc is left as it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description="data passing through")
    parser.add_argument("bootstrap")
    parser.add_argument("--mb", type=int, default=1_000)
    parser.add_argument("--retained", type=int, default=64_000_000, help="bytes")
    parser.add_argument("--pids", required=True)
    options = parser.parse_args()
    pids = [int(pid) for pid in options.pids.split(",")]
    each = options.retained // PARTITIONS
    topic, _ = make_topic(
        options.bootstrap,
        PARTITIONS,
        retention_bytes=str(each),
        segment_bytes=str(max(LEAST_SEGMENT_BYTES, each // SEGMENTS)),
    )
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 200_000,
            **QUIET,
        }
    )
    quarters = [0.0] * 4
    payload = os.urandom(1_000)
    count = options.mb * 1_000
    looks = 4 * LOOKS
    began_s = time.perf_counter()
    for at in range(count):
        _send(producer, topic, payload, at)
        if at % (count // looks) == count // looks - 1:
            serve_until(producer, began_s + (at + 1) / 1_000 / MB_PER_S)
            quarter = min(3, at * 4 // count)
            quarters[quarter] = max(quarters[quarter], memory_mb(pids))
    left = producer.flush(60)
    if left:
        raise SystemExit(f"{left} records were not acked")
    print(json.dumps({"quarters_mb": quarters}))


def serve_until(producer: Any, at_s: float) -> None:
    """Process delivery reports until the given time; a poll returns after the first one."""
    while (left_s := at_s - time.perf_counter()) > 0:
        producer.poll(left_s)


def _send(producer: Any, topic: str, payload: bytes, at: int) -> None:
    while True:
        try:
            producer.produce(topic, payload, partition=at % PARTITIONS)
            return
        except BufferError:
            producer.poll(0.05)


if __name__ == "__main__":
    main()
