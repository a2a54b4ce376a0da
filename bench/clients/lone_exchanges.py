"""One Produce at a time over one connection: python -m bench.clients.lone_exchanges BOOTSTRAP.

Owns: the time of such an exchange, and the CPU time that other processes spend on it (--pids).
Never: batches, pipelines, decodes while it times.  Prints `p50_ms`, `p99_ms` and `cpu_us`.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Final

from bench.clients.topics import make_topic
from bench.processes import cpu_s
from bench.wire import Wire, batch_of, produce_frame

WARM_UP: Final = 500


def main() -> None:
    parser = argparse.ArgumentParser(description="one Produce at a time")
    parser.add_argument("bootstrap")
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--pids", default="", help="whose CPU time is measured, with commas")
    options = parser.parse_args()
    pids = [int(pid) for pid in options.pids.split(",") if pid]
    topic, leaders = make_topic(options.bootstrap, 1, options.replicas)
    frame = produce_frame(topic, 0, batch_of(1, 100))
    took_ms = []
    with Wire(leaders[0][1:]) as wire:
        sock = wire.socket
        for at in range(WARM_UP + options.count):
            if at == WARM_UP:
                before_s = cpu_s(pids)
            began_s = time.perf_counter()
            sock.sendall(frame)
            wire.frame()
            took_ms.append((time.perf_counter() - began_s) * 1e3)
        spent_s = cpu_s(pids) - before_s
    took_ms = sorted(took_ms[WARM_UP:])
    p50_ms, p99_ms = (took_ms[options.count * part // 100] for part in (50, 99))
    cpu_us = spent_s / options.count * 1e6
    print(json.dumps({"p50_ms": p50_ms, "p99_ms": p99_ms, "cpu_us": cpu_us}))


if __name__ == "__main__":
    main()
