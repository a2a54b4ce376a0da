"""TLS handshakes, one after the other: python -m bench.clients.handshakes BOOTSTRAP CA_FILE.

Owns: the connections, the processes of clients.  Never: logs in, resumes a session.
Prints `secured_handshakes` (per second, all processes together) and `secured_handshake_us` (CPU
time of the processes in --pids per handshake).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import ssl
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from bench.processes import cpu_s
from bench.wire import address_of

TIMEOUT_S: Final = 120
WARM_UP_SHARE: Final = 5
"""The number of counted handshakes for each one that warms up."""


def shake_hands(address: tuple[str, int], ca: str, count: int) -> tuple[float, float]:
    """Connect `count` times after a warm-up; returns the times in s at which the first connection
    began and the last one ended."""
    context = ssl.create_default_context(cafile=ca)
    began_s = 0.0
    for number in range(-count // WARM_UP_SHARE, count):
        if number == 0:
            began_s = time.monotonic()
        with (
            socket.create_connection(address, TIMEOUT_S) as sock,
            context.wrap_socket(sock, server_hostname=address[0]),
        ):
            pass
    return began_s, time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description="TLS handshakes")
    parser.add_argument("bootstrap")
    parser.add_argument("ca")
    parser.add_argument("--count", type=int, default=500, help="of each process")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pids", default="")
    options = parser.parse_args()
    pids = [int(pid) for pid in options.pids.split(",") if pid]
    address, count = address_of(options.bootstrap), options.count
    with ProcessPoolExecutor(
        options.processes, mp_context=multiprocessing.get_context("spawn")
    ) as clients:
        before_s = cpu_s(pids)
        running = [
            clients.submit(shake_hands, address, options.ca, count)
            for _ in range(options.processes)
        ]
        times = [client.result(TIMEOUT_S) for client in running]
        used_s = cpu_s(pids) - before_s
    took_s = max(ended for _, ended in times) - min(began for began, _ in times)
    each = options.processes * count
    rate, cost_s = each / took_s, used_s / (each + each // WARM_UP_SHARE)
    print(json.dumps({"secured_handshakes": rate, "secured_handshake_us": cost_s * 1e6}))


if __name__ == "__main__":
    main()
