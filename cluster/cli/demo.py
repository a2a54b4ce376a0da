"""`kcluster demo`: real clients, a leader killed under load, the timeline, and the count.

Owns: the setting (topology, text, clients), what is printed, the exit code.  Never: the story
itself (demo/story.py).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
from msgspec.structs import replace

from cluster.cli.control import ControlError
from cluster.cli.group import fail
from cluster.demo.count import Count, Ledger, count_lines
from cluster.demo.load import (
    GROUP,
    PACE_S,
    PRODUCER_ID,
    Consuming,
    Producing,
    require_clients,
    wait_until_complete,
)
from cluster.demo.orders import lines_of, orders

LOAD_S: Final = 3.0
"""The text is sent in about so long, plus what the story waits for."""

DEFAULT_TOPIC: Final = "orders"
MIN_LINES: Final = 8


@click.command("demo", help="Send FILE's lines (default: 20,000 orders) while a leader is killed.")
@click.argument("file", metavar="[FILE.txt]", required=False)
@click.option("--topology", metavar="FILE", help="By default topology.yaml if there, or 3 brokers.")
@click.option(
    "--profile",
    type=click.Choice(["fast", "kafka"]),
    default="fast",
    show_default=True,
    help="fast: Kafka's time constants 100 times shorter. kafka: the real ones, about 20 s.",
)
@click.option("--json", "as_json", is_flag=True, help="Timeline and count as one JSON object.")
def command(file: str | None, topology: str | None, profile: str, as_json: bool) -> None:
    from cluster.config.problems import TopologyError
    from cluster.runtime.live import ClusterError

    try:
        count = run(file, topology, profile, as_json)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except ClusterError as error:
        fail(ControlError(str(error)), as_json)
    except ControlError as error:
        fail(error, as_json)
    sys.exit(0 if count.nothing_acked_was_lost else 1)


def run(file: str | None, topology_file: str | None, profile: str, as_json: bool) -> Count:
    """The whole demo; returns the count."""
    version = require_clients().__version__
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what it would say, the timeline shows
    lines = read_lines(file)
    from cluster.demo.story import Story
    from cluster.demo.watch import Watch
    from cluster.runtime.cluster import Cluster
    from cluster.trace.timeline import timeline_lines

    topology, topic = set_the_stage(topology_file, profile)
    say = (lambda text: None) if as_json else print
    began = time.monotonic()
    with Cluster(topology) as cluster:
        took_s = time.monotonic() - began
        say(f"{len(cluster.broker_ids)} brokers up in {took_s:.2f} s: {cluster.bootstrap}")
        say(f"time constants: {profile}" + (
            ", Kafka's 100 times shorter (--profile kafka for the real ones)"
            if profile == "fast" else ""
        ))  # fmt: skip
        spec = topology.topics[topic]
        partitions = len(spec.assignment) if spec.assignment is not None else spec.partitions
        say(f"kafka-python {version} sends {len(lines):,} lines to {topic} ({partitions} "
            f"partitions), acks=all, idempotent; group {GROUP} reads them")  # fmt: skip
        ledger, watch = Ledger(lines), Watch(topic)
        cluster.subscribe(lambda entry: watch.on_note(entry.note))
        cluster.driver.dispatcher.reply_sinks += (watch.on_reply,)
        consuming = Consuming(cluster.bootstrap, topic, ledger)
        burst = max(1, round(len(lines) * PACE_S / LOAD_S))
        producing = Producing(cluster.bootstrap, topic, ledger, burst)
        try:
            with progress(ledger, quiet=as_json) as stage:
                told = Story(cluster, watch, ledger, producing, consuming, stage).tell()
                wait_until_complete(ledger, (producing, consuming))
        finally:
            producing.close()
            consuming.close()
        count = ledger.count()
    if as_json:
        print_result(count, told.moments)
        return count
    say("")
    for line in (*timeline_lines(told.moments), "", *count_lines(count)):
        say(line)
    say("nothing acked was lost" if count.nothing_acked_was_lost else "ACKED RECORDS WERE LOST")
    return count


def read_lines(file: str | None) -> list[str]:
    """The text to send."""
    if file is None:
        return orders()
    try:
        lines = lines_of(file)
    except OSError as error:
        raise ControlError(f"{file}: {error.strerror}", 2) from error
    if len(lines) < MIN_LINES:
        raise ControlError(f"{file} has {len(lines)} lines; the demo needs {MIN_LINES} or more", 2)
    return lines


def set_the_stage(topology_file: str | None, profile: str) -> tuple[Any, str]:
    """The topology, on free ports, and the topic to use; one is added if there is none that
    outlives a broker.

    The file's ports are for clusters that stay: a demo that took them would meet another one that
    looked for free ports in the same moment, and other clusters' clients in search of a broker.
    """
    from cluster.cli.topology_choice import choose_topology
    from cluster.config.topology import TopicSpec

    topology = choose_topology(topology_file, profile=profile)
    if len(topology.brokers) < 2:
        raise ControlError("with one broker nobody can take over; the demo needs two or more", 2)
    brokers = tuple(replace(broker, port=0, advertised=None) for broker in topology.brokers)
    topology = replace(topology, brokers=brokers)
    for spec in topology.topics.values():
        if outlives_a_broker(spec):
            return topology, spec.name
    name = DEFAULT_TOPIC if DEFAULT_TOPIC not in topology.topics else "demo-orders"
    factor = min(3, len(topology.brokers))
    spec = TopicSpec(name, partitions=6, replication_factor=factor)
    return replace(topology, topics={**topology.topics, name: spec}), name


def outlives_a_broker(spec: Any) -> bool:
    """Has it a second replica everywhere, and does it take acks=all writes with one of them
    gone?"""
    if spec.assignment is not None:
        replicas = min(len(brokers) for brokers in spec.assignment)
    else:
        replicas = spec.replication_factor
    return replicas >= 2 and int(spec.config.get("min.insync.replicas", 1)) < replicas


@contextmanager
def progress(ledger: Ledger, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A progress bar of lines read, on a terminal; the body is given what sets its text."""
    if quiet or not sys.stdout.isatty():
        yield lambda text: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("", total=len(ledger.lines))
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(0.05):
                bar.update(task, completed=len(ledger.places))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield lambda text: bar.update(task, description=text)
        finally:
            ended.set()
            thread.join()


def print_result(count: Count, moments: list[Any]) -> None:
    """`{"timeline": […], "count": {…}, "producer": …}` on one line."""
    import json

    from cluster.trace.render import plain

    result = {
        "producer": PRODUCER_ID,
        "timeline": plain(moments),
        "count": plain(count),
        "nothing_acked_was_lost": count.nothing_acked_was_lost,
    }
    print(json.dumps(result, ensure_ascii=False))
