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
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from kcluster.cli.control import ControlError
from kcluster.cli.group import fail
from kcluster.demo.count import Count, Ledger, count_lines
from kcluster.demo.load import (
    GROUP,
    PACE_S,
    PRODUCER_ID,
    Consuming,
    Producing,
    require_clients,
    wait_until_complete,
)
from kcluster.demo.orders import lines_of, orders

if TYPE_CHECKING:
    from kcluster.demo.spark import Audited, SparkPart
    from kcluster.handle.cluster import Cluster

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
@click.option("--spark", is_flag=True, help="Spark ingests the topic meanwhile, and audits it.")
@click.option("--json", "as_json", is_flag=True, help="Timeline and count as one JSON object.")
def command(
    file: str | None, topology: str | None, profile: str, spark: bool, as_json: bool
) -> None:
    from kcluster.config.files.problems import TopologyError
    from kcluster.drivers.live import ClusterError

    try:
        nothing_was_lost = run(file, topology, profile, spark, as_json)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except ClusterError as error:
        fail(ControlError(str(error)), as_json)
    except ControlError as error:
        fail(error, as_json)
    sys.exit(0 if nothing_was_lost else 1)


class Shown(Struct):
    """What became of the demo.  `audited`: by Spark, if that was asked for; `no_spark`: or why it
    could not."""

    count: Count
    moments: list[Any]
    audited: Audited | None
    no_spark: str

    @property
    def nothing_was_lost(self) -> bool:
        return self.count.nothing_acked_was_lost and not (self.audited and self.audited.lost)


def run(
    file: str | None, topology_file: str | None, profile: str, with_spark: bool, as_json: bool
) -> bool:
    """The whole demo; returns whether nothing was lost."""
    version = require_clients().__version__
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what it would say, the timeline shows
    lines = read_lines(file)
    from kcluster.handle.cluster import Cluster

    topology, topic = set_the_stage(topology_file, profile)
    say = (lambda text: None) if as_json else print
    part, no_spark = start_spark(say) if with_spark else (None, "")
    began = time.monotonic()
    cluster = Cluster(topology)
    if part is not None:
        part.attach(cluster)
    with cluster:
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
        before_kill = None
        if part is not None:
            part.start(topic)
            before_kill = part.wait_for_rows
        count, moments = tell_the_story(cluster, topic, lines, before_kill, quiet=as_json)
        audited = None if part is None else part.finish(count.acked, lines)
    shown = Shown(count, moments, audited, no_spark)
    show(shown, as_json)
    return shown.nothing_was_lost


def start_spark(say: Callable[[str], None]) -> tuple[SparkPart | None, str]:
    """Spark's part; or why there is none: the demo is worth seeing without."""
    from kcluster.demo.spark import SparkPart
    from kcluster.pipeline.session import SessionError

    try:
        part = SparkPart(Path(mkdtemp(prefix="kcluster-demo-")))
    except SessionError as error:
        return None, str(error)
    say(f"Spark {part.spark.version} is up, and will ingest what is sent")
    return part, ""


def tell_the_story(
    cluster: Cluster,
    topic: str,
    lines: list[str],
    before_kill: Callable[[], None] | None,
    quiet: bool,
) -> tuple[Count, list[Any]]:
    """Load, failover, and what came out; with what happened when."""
    from kcluster.demo.story import Story
    from kcluster.demo.watch import Watch

    ledger, watch = Ledger(lines), Watch(topic)
    cluster.subscribe(lambda entry: watch.on_note(entry.note))
    cluster.driver.dispatcher.reply_sinks += (watch.on_reply,)
    consuming = Consuming(cluster.bootstrap, topic, ledger)
    burst = max(1, round(len(lines) * PACE_S / LOAD_S))
    producing = Producing(cluster.bootstrap, topic, ledger, burst)
    try:
        with progress(ledger, quiet=quiet) as stage:
            story = Story(cluster, watch, ledger, producing, consuming, stage, before_kill)
            told = story.tell()
            wait_until_complete(ledger, (producing, consuming))
    finally:
        producing.close()
        consuming.close()
    return ledger.count(), told.moments


def show(shown: Shown, as_json: bool) -> None:
    """All of it, as lines or as one JSON object."""
    if as_json:
        print_result(shown)
        return
    from kcluster.events.timeline import timeline_lines

    for line in ("", *timeline_lines(shown.moments), "", *count_lines(shown.count)):
        print(line)
    if shown.audited is not None:
        from kcluster.demo.spark import audited_lines

        for line in ("", *audited_lines(shown.audited), ""):
            print(line)
    print("nothing acked was lost" if shown.nothing_was_lost else "ACKED RECORDS WERE LOST")
    if shown.no_spark:
        print(f"without its end on Spark: {shown.no_spark}")


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
    from kcluster.cli.topology_choice import choose_topology
    from kcluster.config.topology.model import TopicSpec

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


def print_result(shown: Shown) -> None:
    """`{"timeline": […], "count": {…}, "spark": {…}, "producer": …}` on one line."""
    import json

    from kcluster.events.render import plain

    result = {
        "producer": PRODUCER_ID,
        "timeline": plain(shown.moments),
        "count": plain(shown.count),
        "spark": plain(shown.audited) if shown.audited is not None else shown.no_spark or None,
        "nothing_acked_was_lost": shown.nothing_was_lost,
    }
    print(json.dumps(result, ensure_ascii=False))
