"""Proxies before one Kafka cluster, beside itself: python -m bench.proxied NAME=ADDRESS…

Owns: the turns, the table.  Never: starts a cluster or a proxy: docs/how-to/proxy.md has the
commands.  The first name is what the others are compared with.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Final

FIGURES: Final = {
    "produce_1k": "produce 1 KB records, MB/s",
    "produce_100b": "produce 100 B records, thousand/s",
    "consume": "consume, MB/s",
    "ack_p50_ms": "ack, one record at a time, p50, ms",
    "ack_p99_ms": "ack, one record at a time, p99, ms",
}
LIMIT_S: Final = 300


def measure(bootstrap: str, *more: str) -> dict[str, float]:
    """The figures of one turn."""
    command = [sys.executable, "-m", "bench.clients.load", bootstrap, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="proxies before one cluster")
    parser.add_argument("places", nargs="+", metavar="NAME=ADDRESS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", default="60")
    parser.add_argument("--replicas", default="3")
    options = parser.parse_args()
    places = dict(place.split("=", 1) for place in options.places)
    more = ("--mb", options.mb, "--replicas", options.replicas)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in places}
    for _ in range(options.rounds):
        for name, bootstrap in places.items():
            found[name].append(measure(bootstrap, *more))
            print(name, found[name][-1], file=sys.stderr)
    print(f"| figure | {' | '.join(places)} |")
    print(f"| --- | {' | '.join('---:' for _ in places)} |")
    for key, words in FIGURES.items():
        cells = []
        for name in places:
            values = [each[key] for each in found[name]]
            middle, low, high = statistics.median(values), min(values), max(values)
            cells.append(f"{middle:.3g} ({low:.3g} to {high:.3g})")
        print(f"| {words} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
