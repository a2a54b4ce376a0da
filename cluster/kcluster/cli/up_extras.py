"""The rare options of `kcluster up`: a demo, a browser, a scenario file at the end.

Owns: these steps.  Never: is loaded by a start without their options.
Kafka: kafka-console-producer.sh and kafka-console-consumer.sh, for the demo.
"""

from __future__ import annotations

import sys
import threading
import webbrowser
from pathlib import Path
from typing import Final

from kcluster.cli.writing import writing
from kcluster.handle.cluster import Cluster
from kcluster.scenario.recorded_file import write_scenario
from kcluster.scenario.started import start_client

DEMO_TOPIC: Final = "orders"
DEMO_RATE: Final = "2/s"
"""Slow enough that a viewer follows each record."""


def start_demo(cluster: Cluster) -> None:
    """Create a topic, unless the topology has it, and start a producer and a consumer on it."""
    if DEMO_TOPIC not in cluster.topics():
        cluster.create_topic(DEMO_TOPIC, partitions=1)
    start_client(cluster, {"producer": {"topic": DEMO_TOPIC, "rate": DEMO_RATE}})
    start_client(cluster, {"consumer": {"topic": DEMO_TOPIC, "group": "readers"}})


def open_page(url: str) -> None:
    """Show a page in the user's browser; a line of stderr says why that is impossible.  A program
    named by BROWSER may run until the user closes it, so a thread waits for it."""
    threading.Thread(target=_open, args=(url,), name="browser", daemon=True).start()


def _open(url: str) -> None:
    try:
        is_open = webbrowser.open(url)
        problem = "" if is_open else "no browser was found; open the page's address yourself"
    except webbrowser.Error as error:
        problem = f"no browser opens: {error}"
    if problem:
        print(f"kcluster: {problem}", file=sys.stderr)


def write_record(cluster: Cluster, path: str) -> None:
    """Write what was done to a cluster as a scenario file."""
    with writing(path):
        write_scenario(cluster, Path(path))
