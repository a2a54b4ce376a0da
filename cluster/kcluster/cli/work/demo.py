"""The work of `kcluster demo`: a cluster, real clients, a leader killed under load, the count.

Owns: the topology, the text to send, the output.  Never: decides the order of events
(demo/story.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.cli.errors import CommandError
from kcluster.cli.progress_bar import BAR, COUNT, progress_bar
from kcluster.cli.topology_choice import choose_topology
from kcluster.config.topology.specs import TopicSpec
from kcluster.demo.count import DemoCount, DemoLedger, count_lines
from kcluster.demo.load import (
    ABANDON_S,
    GIVE_UP_S,
    GROUP,
    PACE_S,
    PRODUCER_ID,
    Consuming,
    Producing,
    require_clients,
    wait_until_complete,
)
from kcluster.demo.orders import lines_of, orders
from kcluster.demo.story import DemoStory
from kcluster.demo.watch import FailoverWatch
from kcluster.events.render import plain
from kcluster.events.timeline import timeline_lines
from kcluster.handle.cluster import Cluster

if TYPE_CHECKING:
    from kcluster.config.topology.model import Topology
    from kcluster.config.topology.specs import TopicSpec
    from kcluster.demo.spark import Audited, SparkPart
    from kcluster.handle.cluster import Cluster

LOAD_S: Final = 3.0
"""The approximate time to send the text, apart from the story's waits."""

DEFAULT_TOPIC: Final = "orders"
MIN_LINES: Final = 8


class DemoResult(Struct):
    """The parts of the output.  `audited`: Spark's audit, with --spark; `no_spark`: the reason why
    there is no audit."""

    count: DemoCount
    moments: list[Any]
    audited: Audited | None
    no_spark: str

    @property
    def nothing_was_lost(self) -> bool:
        return self.count.nothing_acked_was_lost and not (self.audited and self.audited.lost)


def run(
    file: str | None,
    topology_file: str | None,
    profile: str,
    with_spark: bool,
    quiet: bool,
    as_json: bool,
) -> bool:
    """The whole demo; returns whether nothing was lost."""
    version = require_clients().__version__
    logging.getLogger("kafka").setLevel(
        logging.CRITICAL
    )  # the timeline already shows the lines that it would log
    lines = read_lines(file)

    topology, topic = set_the_stage(topology_file, profile)
    say = (lambda text: None) if quiet or as_json else print
    part, no_spark = start_spark(say) if with_spark else (None, "")
    began = time.monotonic()
    cluster = Cluster(topology, record=False)
    if part is not None:
        part.attach(cluster)
    with cluster:
        took_s = time.monotonic() - began
        say(f"{len(cluster.broker_ids)} brokers up in {took_s:.2f} s: {cluster.bootstrap}")
        say(
            f"time constants: {profile}"
            + (
                ", 100 times shorter than Kafka's (--profile kafka for the real ones)"
                if profile == "fast"
                else ""
            )
        )
        spec = topology.topics[topic]
        partitions = len(spec.assignment) if spec.assignment is not None else spec.partitions
        say(
            f"kafka-python {version} sends {len(lines):,} lines to {topic} ({partitions} "
            f"partitions), acks=all, idempotent; group {GROUP} reads them"
        )
        before_kill = None
        if part is not None:
            part.start(topic)
            before_kill = part.wait_for_rows
        count, moments = tell_the_story(cluster, topic, lines, before_kill, quiet or as_json)
        audited = None if part is None else part.finish(count.acked, lines)
    result = DemoResult(count, moments, audited, no_spark)
    show(result, quiet, as_json)
    return result.nothing_was_lost


def start_spark(say: Callable[[str], None]) -> tuple[SparkPart | None, str]:
    """Start Spark's part; returns it, or the reason why there is none: the demo also works without
    it."""
    from kcluster.demo.spark import SparkPart
    from kcluster.pipeline.session import SessionError

    try:
        part = SparkPart()
    except SessionError as error:
        return None, str(error)
    say(f"Spark {part.spark.version} is up, and will ingest the topic")
    return part, ""


def tell_the_story(
    cluster: Cluster,
    topic: str,
    lines: list[str],
    before_kill: Callable[[], None] | None,
    quiet: bool,
) -> tuple[DemoCount, list[Any]]:
    """Play the load and the failover.  Returns the count, and the moments of the timeline."""
    ledger, watch = DemoLedger(lines), FailoverWatch(topic)
    cluster.subscribe(lambda entry: watch.on_note(entry.note))
    cluster.driver.dispatcher.reply_sinks += (watch.on_reply,)
    consuming = Consuming(cluster.bootstrap, topic, ledger)
    burst = max(1, round(len(lines) * PACE_S / LOAD_S))
    producing = Producing(cluster.bootstrap, topic, ledger, burst)
    patience_s = ABANDON_S
    try:
        with progress(ledger, quiet=quiet) as stage:
            story = DemoStory(cluster, watch, ledger, producing, consuming, stage, before_kill)
            moments = story.play()
            wait_until_complete(ledger, (producing, consuming))
        patience_s = GIVE_UP_S
    finally:
        producing.close(patience_s)
        consuming.close(patience_s)
    return ledger.count(), moments


def show(result: DemoResult, quiet: bool, as_json: bool) -> None:
    """Print the result, as lines or as one JSON object; `quiet`: the answer alone."""
    if as_json:
        print_result(result)
        return
    if not quiet:
        show_story(result)
    print("nothing acked was lost" if result.nothing_was_lost else "ACKED RECORDS WERE LOST")
    if result.no_spark:
        print(f"without Spark: {result.no_spark}")


def show_story(result: DemoResult) -> None:
    """Print the timeline and the counts."""
    for line in ("", *timeline_lines(result.moments), "", *count_lines(result.count)):
        print(line)
    if result.audited is not None:
        from kcluster.demo.spark import audited_lines

        for line in ("", *audited_lines(result.audited), ""):
            print(line)


def read_lines(file: str | None) -> list[str]:
    """The lines of the text to send."""
    if file is None:
        return orders()
    try:
        lines = lines_of(file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}", 2) from error
    if len(lines) < MIN_LINES:
        raise CommandError(f"{file} has {len(lines)} lines; the demo needs at least {MIN_LINES}", 2)
    return lines


def set_the_stage(topology_file: str | None, profile: str) -> tuple[Topology, str]:
    """The topology, on free ports, and the topic to use.  A topic is added if none of the file's
    survives the death of a broker.

    The file's ports are left alone: clients of another cluster may be looking for a broker there.
    """
    topology = choose_topology(topology_file, profile=profile)
    if len(topology.brokers) < 2:
        raise CommandError("with one broker no other can take over; the demo needs at least two", 2)
    brokers = tuple(replace(broker, port=0, advertised=None) for broker in topology.brokers)
    topology = replace(topology, brokers=brokers)
    for spec in topology.topics.values():
        if survives_a_broker(spec):
            return topology, spec.name
    name = DEFAULT_TOPIC if DEFAULT_TOPIC not in topology.topics else "demo-orders"
    factor = min(3, len(topology.brokers))
    spec = TopicSpec(name, partitions=6, replication_factor=factor)
    return replace(topology, topics={**topology.topics, name: spec}), name


def survives_a_broker(spec: TopicSpec) -> bool:
    """Whether every partition has a second replica, and accepts acks=all writes without one."""
    if spec.assignment is not None:
        replicas = min(len(brokers) for brokers in spec.assignment)
    else:
        replicas = spec.replication_factor
    return replicas >= 2 and int(spec.config.get("min.insync.replicas", 1)) < replicas


@contextmanager
def progress(ledger: DemoLedger, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A progress bar of lines read, on a terminal; yields the function that sets its text."""
    if quiet or not sys.stdout.isatty():
        yield lambda text: None
        return
    with progress_bar(BAR, COUNT, "{task.description}", to_stderr=False) as bar:
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


def print_result(result: DemoResult) -> None:
    """Print the result as one line of JSON: `{"timeline": […], "count": {…}, "spark": {…},
    "producer": …}`."""
    values = {
        "producer": PRODUCER_ID,
        "timeline": plain(result.moments),
        "count": plain(result.count),
        "spark": plain(result.audited) if result.audited is not None else result.no_spark or None,
        "nothing_acked_was_lost": result.nothing_was_lost,
    }
    print(json.dumps(values, ensure_ascii=False))
