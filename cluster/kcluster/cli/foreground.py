"""The work of `kcluster up`: a cluster in the foreground, with its door and its output.

Owns: the order of starting and stopping, and the output meanwhile.  Never: imports click (see
main.py), prints from the cluster's thread: a blocked terminal must not stop the cluster.
Kafka: kafka-server-start.sh, with a log of changes and their reasons.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.cli.directory import check_name, running_clusters
from kcluster.cli.door import ClaimedName, Door, require_free
from kcluster.cli.errors import CommandError
from kcluster.cli.print_thread import PrintThread
from kcluster.cli.stop_signals import leaving_within, on_stop_signals
from kcluster.cli.topology_choice import choose_topology, require_free_ports, without_effect_line
from kcluster.cli.up_options import UpOptions
from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.contract import Note, Reply
from kcluster.events.render import (
    ECHOES,
    fold,
    folded_line,
    note_values,
    request_line,
    request_values,
)
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.releases import latest

if TYPE_CHECKING:
    from kcluster.cli.run_directory import LiveRunWriter
    from kcluster.web.held import HeldCluster

DEFAULT_NAME: Final = "kcluster"
TRACE_BACKLOG: Final = 20_000
"""Traced requests that may wait for a slow terminal; further ones are counted, not shown."""
GATHER_S: Final = 0.02
"""Events within this time of each other are shown together, with equal lines folded."""
MAX_GATHERED: Final = 1_000
"""The most items that are printed at once."""
_NAMING_APIS: Final = (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS)


class Traced(Struct, gc=False):
    """A request and its answer, for --trace-requests."""

    broker_id: int
    reply: Reply
    at_ms: int


class StopWanted(Struct):
    """The exception for a request to stop the cluster."""


def run_reporting(options: UpOptions, began_s: float) -> int:
    """Run until stopped; returns the exit code.  All problems go to stderr.  `began_s`: the start
    of the process on the monotonic clock, for the ready line."""
    try:
        return run(options, began_s)
    except TopologyError as error:
        lines, exit_code = str(error).splitlines(), 2
    except CommandError as error:
        lines, exit_code = [f"kcluster: {error}"], error.exit_code
    except ClusterError as error:
        lines, exit_code = [f"kcluster: {error}"], 1
    except OSError as error:
        if error.filename is None:
            raise
        lines, exit_code = [f"kcluster: {error.filename}: {error.strerror}"], 2
    if options.as_json:
        lines = [json.dumps({"error": line}, ensure_ascii=False) for line in lines]
    print("\n".join(lines), file=sys.stderr)
    return exit_code


def run(options: UpOptions, began_s: float) -> int:
    """Start the cluster, print its events, stop it.  Bad options raise before anything starts."""
    if options.no_record and (options.out or options.record):
        wanted = "--out" if options.out else "--record"
        raise CommandError(f"{wanted} needs a record; leave out --no-record", 2)
    if options.no_record and (options.page or options.open):
        wanted = "--page" if options.page else "--open"
        raise CommandError(f"{wanted} shows the record; leave out --no-record", 2)
    topology = choose_topology(options.file, options.brokers, options.base_port, options.profile)
    require_free_ports(topology)
    _require_writable(options)
    ignored = without_effect_line(topology)
    if ignored is not None and _is_simulated(options) and not options.quiet:
        print(ignored, file=sys.stderr)
    inbox: SimpleQueue[object] = SimpleQueue()
    started, stopping, noticed = threading.Event(), threading.Event(), threading.Event()

    def stop() -> None:
        stopping.set()
        inbox.put(StopWanted())

    on_stop_signals(stop, started.is_set, noticed.is_set)
    with _new_cluster(options, topology, inbox.put) as cluster:
        started.set()
        name = cluster.name = free_name(options.name, topology)
        claimed = ClaimedName(name)
        door = None
        try:
            printer = Printer(options, cluster.began_ms)
            _listen(cluster, inbox, options.trace_requests)
            directory = _write_run(cluster, options)
            door = Door(claimed, partial(_held, cluster, name, stop, directory))
            with surviving_output():
                printer.ready(cluster, name, time.monotonic() - began_s)
            gc.enable()
            gc.freeze()
            if options.page or options.open or options.demo:
                _first_minute(cluster, options, door, printer)
            printing = PrintThread(lambda: _print_until_stop(inbox, printer))
            stopping.wait()
            noticed.set()
            printing.finish()
            path = None if directory is None else directory.finish()
            if options.record is not None:
                from kcluster.cli.up_extras import write_record

                write_record(cluster, options.record)
            with surviving_output():
                if path is not None:
                    printer.saved(path)
                if options.record is not None:
                    printer.written(options.record)
        finally:
            gc.freeze()  # the interpreter's last collection would walk over a gigabyte
            claimed.release()
            with leaving_within():
                cluster.close()
                if door is not None:
                    door.close()
    printing.leave_if_stuck(0)
    return 0


def _new_cluster(options: UpOptions, topology: Topology, log: Callable[[str], None]) -> Cluster:
    """The cluster that the options ask for: a simulated one, or a real Kafka."""
    if _is_simulated(options):
        for flag, is_given in (("--no-proxy", options.no_proxy), ("--network", options.network)):
            if is_given:
                raise CommandError(f"{flag} goes with --ground kafka", 2)
        return Cluster(topology, log=log, record=not options.no_record)
    from kcluster.cli.real_kafka import started_by

    require_free(free_name(options.name, topology))  # before a start that takes seconds
    return started_by(options, topology, log)


def _is_simulated(options: UpOptions) -> bool:
    return options.ground is None and options.kafka_home is None


def _first_minute(cluster: Cluster, options: UpOptions, door: Door, printer: Printer) -> None:
    """Serve the page, start the demo, open a browser, as far as they are wanted."""
    if options.page or options.open:
        url = door.page_url()
        with surviving_output():
            printer.page(url)
    if options.open or options.demo:
        from kcluster.cli.up_extras import open_page, start_demo

        if options.demo:
            start_demo(cluster)
        if options.open:
            open_page(url)


def _require_writable(options: UpOptions) -> None:
    """Check that the files that `options` name can be written when the cluster stops; CommandError
    if not."""
    if options.out is None and options.record is None:
        return
    from kcluster.cli.writing import require_writable_directory, require_writable_file

    if options.out is not None:
        require_writable_directory(options.out)
    if options.record is not None:
        require_writable_file(options.record)


def _held(
    cluster: Cluster, name: str, stop: Callable[[], None], directory: LiveRunWriter | None
) -> HeldCluster:
    """The cluster in the form in which its door serves it."""
    from kcluster.web.held import HeldCluster

    return HeldCluster(name, cluster, stop=stop, own_run=directory)


def free_name(wanted: str | None, topology: Topology) -> str:
    """The name by which verbs will find the cluster.  The default name gets a number if it is
    taken; a chosen name, by `--name` or KCLUSTER_NAME, must be free, which ClaimedName checks."""
    chosen = wanted or os.environ.get("KCLUSTER_NAME")
    if chosen:
        return check_name(chosen)
    if topology.name != DEFAULT_NAME:
        return check_name(topology.name)
    running = running_clusters()
    numbered = (DEFAULT_NAME if n == 1 else f"{DEFAULT_NAME}-{n}" for n in range(1, 10_000))
    return next(name for name in numbered if name not in running)


def _versions(cluster: Cluster) -> str:
    """The brokers' Kafka releases, unless all simulate the newest one that this program knows."""
    if cluster.real_version:
        return f", Apache Kafka {cluster.real_version}"
    brokers: dict[str, list[str]] = {}
    for broker in cluster.brokers():
        brokers.setdefault(broker.kafka_version, []).append(str(broker.id))
    if list(brokers) == [latest().name]:
        return ""
    if len(brokers) == 1:
        return f", Kafka {next(iter(brokers))}"
    each = (f"{version} (broker {', '.join(ids)})" for version, ids in brokers.items())
    return f", Kafka {' and '.join(each)}"


class Printer:
    """Events and requests as lines on stdout; as JSON objects with `--json`."""

    def __init__(self, options: UpOptions, origin_ms: int) -> None:
        self._as_json = options.as_json
        self._is_quiet = options.quiet
        self._origin_ms = origin_ms
        self.names: dict[bytes, str] = {}
        """Topic names by id, learned from answers to clients: a client that uses an id has
        requested it."""

    def ready(self, cluster: Cluster, name: str, took_s: float) -> None:
        """Print the line with the addresses for clients."""
        if self._as_json:
            self._json(
                {
                    "ready": True,
                    "bootstrap": cluster.bootstrap,
                    "name": name,
                    "pid": os.getpid(),
                    "brokers": [
                        {
                            "id": broker.id,
                            "host": broker.host,
                            "port": broker.port,
                            "kafka_version": broker.kafka_version,
                        }
                        for broker in cluster.brokers()
                    ],
                }
            )
        else:
            brokers = len(cluster.broker_ids)
            count = "1 broker" if brokers == 1 else f"{brokers} brokers"
            topology = cluster.topology
            config = topology.broker_config(topology.brokers[0].id)
            replicas = config.default_replication_factor
            topics = f"new topics get {replicas} replica{'s' * (replicas != 1)}"
            print(
                f"ready: {cluster.bootstrap}  "
                f"({name}: {count}{_versions(cluster)}, profile {topology.profile}, {topics}; "
                f"up in {took_s:.2f} s, Ctrl-C stops)"
            )
        sys.stdout.flush()
        if cluster.topology.makes_any_certificate:
            certificates = cluster.certificates
            self._certificates(certificates.write_users(cluster.topology))
            certificates.add_jks_in_background()

    def _certificates(self, folder: Path) -> None:
        words = "ca.pem, truststore.p12 and each user's certificate; passwords: changeit"
        self._say({"certificates": str(folder)}, f"certificates: {folder}  ({words})")

    def page(self, url: str) -> None:
        """Print the address of the live page."""
        self._say({"page": url}, f"page: {url}")

    def saved(self, path: Path) -> None:
        """Print the path of the run directory."""
        self._say({"run": str(path)}, f"run directory: {path}  (kcluster explain {path})")

    def written(self, scenario: str) -> None:
        """Print the path of the scenario file."""
        line = f"scenario: {scenario}  (kcluster scenario run {scenario})"
        self._say({"scenario": scenario}, line)

    def _say(self, values: JsonObject, line: str) -> None:
        if self._as_json:
            self._json(values)
        else:
            print(line)
        sys.stdout.flush()

    def show(self, items: list[Note | Traced | str]) -> None:
        """Print notes (unless `--quiet`), traced requests and log lines, in order."""
        if self._is_quiet:
            items = [item for item in items if not isinstance(item, Note)]
        if self._as_json:
            for item in items:
                self._json(self._values(item))
        else:
            notes: list[Note] = []
            for item in items:
                if isinstance(item, Note):
                    notes.append(item)
                    continue
                self._show_notes(notes)
                print(self._line(item))
            self._show_notes(notes)
        sys.stdout.flush()

    def _show_notes(self, notes: list[Note]) -> None:
        for entry in fold(notes):
            print(folded_line(entry, self._origin_ms))
        notes.clear()

    def _line(self, item: Traced | str) -> str:
        if isinstance(item, str):
            return item
        request = item.reply.request
        self._learn(item.reply)
        return request_line(
            item.broker_id,
            request,
            item.reply.body,
            request.arrived_ms,
            item.at_ms,
            self.names,
            self._origin_ms,
        )

    def _values(self, item: Note | Traced | str) -> JsonObject:
        if isinstance(item, str):
            return {"log": item}
        if isinstance(item, Note):
            return {"event": note_values(item)}
        request = item.reply.request
        self._learn(item.reply)
        return {
            "request": request_values(
                item.broker_id, request, item.reply.body, request.arrived_ms, item.at_ms, self.names
            )
        }

    def _learn(self, reply: Reply) -> None:
        if reply.request.api_key in _NAMING_APIS and reply.body is not None:
            for topic in reply.body.topics:
                if topic.name and any(topic.topic_id):
                    self.names[topic.topic_id] = topic.name

    @staticmethod
    def _json(values: JsonObject) -> None:
        print(json.dumps(values, ensure_ascii=False))


def _write_run(cluster: Cluster, options: UpOptions) -> LiveRunWriter | None:
    """Write the run to a directory from now on, if `--out` asks for it."""
    if options.out is None:
        return None
    from kcluster.cli.run_directory import LiveRunWriter

    return LiveRunWriter(cluster, options.out)


def _listen(cluster: Cluster, inbox: SimpleQueue[object], trace_requests: bool) -> None:
    """Put events and traced requests into the inbox from now on."""

    def on_note(entry: NoteEntry) -> None:
        if not isinstance(entry.event, ECHOES):
            inbox.put(entry.note)

    cluster.subscribe(on_note)
    if trace_requests:
        dropped = 0

        def on_reply(broker_id: int, reply: Reply, now_ms: int) -> None:
            nonlocal dropped
            if inbox.qsize() >= TRACE_BACKLOG:
                dropped += 1
                return
            if dropped:
                inbox.put(f"{dropped} requests are not shown: the terminal is too slow")
                dropped = 0
            inbox.put(Traced(broker_id, reply, now_ms))

        cluster.driver.dispatcher.reply_sinks += (on_reply,)


def _print_until_stop(inbox: SimpleQueue[object], printer: Printer) -> None:
    while True:
        items = gather(inbox)
        stop = any(isinstance(item, StopWanted) for item in items)
        with surviving_output():
            printer.show([item for item in items if not isinstance(item, StopWanted)])
        if stop:
            return


def gather(inbox: SimpleQueue[object]) -> list[Any]:
    """Wait for the next item, and GATHER_S longer for further ones; take at most MAX_GATHERED. A
    thread that woke for each item would take time from the cluster's thread."""
    items = [inbox.get()]
    time.sleep(GATHER_S)
    while len(items) < MAX_GATHERED:
        try:
            items.append(inbox.get_nowait())
        except Empty:
            break
    return items


@contextmanager
def surviving_output() -> Iterator[None]:
    """Keep the cluster running when the reader of its output has closed the pipe, as in `kcluster
    up | head -1`, or when the disk with its output is full.  From then on nothing is printed, not
    even at exit."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        is_full = error.errno == errno.ENOSPC
        why = "no space for the output" if is_full else "nobody reads the output any more"
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        text = f"{why}; the cluster goes on (kcluster down stops it)"
        print(f"kcluster: {text}", file=sys.stderr)
