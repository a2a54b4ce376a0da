"""The work of `kcluster proxy`: start it, print what it does, stop it.

Owns: the checks of its options, its output, its end.  Never: passes a frame on (proxy/).
Kafka: no counterpart.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from msgspec import Struct

from kcluster import __version__
from kcluster.cli.door import ClaimedName
from kcluster.cli.errors import CommandError
from kcluster.cli.stop_signals import leaving_within, on_stop_signals
from kcluster.cli.work.command_config import read_command_config
from kcluster.cli.work.proxy_door import ProxyDoor
from kcluster.cli.work.proxy_notes import ProxyNotes
from kcluster.cli.work.proxy_options import allow_many_connections, bootstrap_of, client_tls
from kcluster.cli.work.proxy_page import REDRAWN_AFTER_S, PageDrawer
from kcluster.cli.work.proxy_rules import read_rules
from kcluster.contract import Note
from kcluster.events.render import note_line, note_values
from kcluster.faults.rules import Rule, RuleError
from kcluster.proxy.addresses import Address
from kcluster.proxy.listeners import PortTaken
from kcluster.proxy.proxy import KafkaProxy, ProxySettings
from kcluster.proxy.run_files import RunFiles
from kcluster.proxy.running import RunningProxy
from kcluster.proxy.upstream import UpstreamError, UpstreamSecurity
from kcluster.runs.directory import RunError
from kcluster.scenario.language.loader import ScenarioError

MAX_LINES: Final = 10_000
"""The lines that may wait for a slow terminal; further ones are dropped."""


class ProxyOptions(Struct, frozen=True):
    """The command line of `kcluster proxy`."""

    bootstrap: str
    rules: Path | None
    out: Path | None
    listen: str
    base_port: int
    allow: tuple[str, ...]
    command_config: Path | None
    tls: tuple[Path, Path] | None
    name: str
    as_json: bool
    page: bool


def run_proxy(options: ProxyOptions) -> int:
    """Run until a signal; returns the exit code.  Problems go to stderr."""
    try:
        return _run(options)
    except UpstreamError as error:
        problem, exit_code = str(error), 1
    except PortTaken as error:
        hint = "; --base-port chooses another port" if error.is_used else ""
        problem, exit_code = f"{error}{hint}", 1
    except CommandError as error:
        problem, exit_code = str(error), error.exit_code
    except (ScenarioError, RuleError) as error:
        print(error, file=sys.stderr)
        return 2
    line = json.dumps({"error": problem}) if options.as_json else f"kcluster: {problem}"
    print(line, file=sys.stderr)
    return exit_code


def _run(options: ProxyOptions) -> int:
    bootstrap = bootstrap_of(options.bootstrap)
    rules = [] if options.rules is None else read_rules(options.rules)
    security = UpstreamSecurity()
    if options.command_config is not None:
        security = read_command_config(options.command_config)
    settings = ProxySettings(
        bootstrap,
        options.listen,
        options.base_port,
        security,
        client_tls(options.tls),
        allowed=options.allow,
    )
    allow_many_connections()
    claimed = ClaimedName(options.name)
    stopping = threading.Event()
    on_stop_signals(stopping.set)
    printer = ProxyPrinter(options.as_json)
    files = drawer = None
    if options.out is not None:
        files = RunFiles(options.out, options.name, __version__, printer.log)
    notes = ProxyNotes(printer.note, *([] if files is None else [files.note]))
    try:
        with RunningProxy(settings, printer.log, notes.add, files) as running:
            for rule in rules:
                running.call(partial(_add_rule, rule))
            door = running.call(partial(ProxyDoor, claimed, notes=notes, stop=stopping.set))
            printer.ready(running.proxy, options)
            describe(running.proxy, printer, files)
            if files is not None and options.page:
                drawer = PageDrawer(files, partial(printer.drawn_at, files.page), printer.log)
            stopping.wait()
            with leaving_within():
                running.call(lambda _proxy: door.close())
                running.stop()
        if drawer is not None:
            drawer.stop()
        if files is not None:
            finish(files, printer, is_drawn=options.page)
    finally:
        claimed.release()
        printer.finish()
    return 0


def describe(proxy: KafkaProxy, printer: ProxyPrinter, files: RunFiles | None) -> None:
    """Print and record the brokers, those that come later too."""

    def on_new(broker_id: int, address: Address, port: int) -> None:
        printer.broker(broker_id, address, port)
        if files is not None:
            files.describe(proxy.settings.host, proxy.listeners.ports())

    proxy.on_new_broker = on_new
    if files is not None:
        files.describe(proxy.settings.host, proxy.listeners.ports())
        printer.saved(files.path)


def finish(files: RunFiles, printer: ProxyPrinter, *, is_drawn: bool) -> None:
    """Draw the page of the whole record, and print what the record lacks."""
    if files.dropped_rows:
        printer.log(f"{files.path}: {files.dropped_rows} rows of the record were dropped")
    if not is_drawn:
        return
    try:
        if not files.draw():
            printer.log("the record has become too large for a page, which has its beginning")
    except (OSError, RunError) as error:
        printer.log(f"the page is not drawn: {error}")


def _add_rule(rule: Rule, proxy: KafkaProxy) -> str:
    return proxy.gate.add(rule)


class ProxyPrinter:
    """Prints from a thread of its own, so that a blocked terminal does not stop the proxy."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._began_ms = time.time_ns() // 1_000_000
        self._early: list[str] | None = []
        """The lines that come after the ready line; None once it is printed."""
        self._thread = threading.Thread(target=self._work, name="prints", daemon=True)
        self._thread.start()

    def ready(self, proxy: KafkaProxy, options: ProxyOptions) -> None:
        """Print the address for clients, and the address of each broker."""
        ports = proxy.listeners.ports()
        address = f"{options.listen}:{proxy.listeners.bootstrap_port}"
        early, self._early = self._early, None
        if self._as_json:
            brokers = [{"id": key, "host": options.listen, "port": ports[key]} for key in ports]
            self._put(json.dumps({"ready": True, "bootstrap": address, "brokers": brokers}))
        else:
            self._put_words(proxy, options, address, ports)
        for line in early or ():
            self._put(line)

    def _put_words(
        self, proxy: KafkaProxy, options: ProxyOptions, address: str, ports: dict[int, int]
    ) -> None:
        count = "1 broker" if len(ports) == 1 else f"{len(ports)} brokers"
        self._put(f"ready: {address}  (before {options.bootstrap}: {count}; Ctrl-C stops)")
        for key, (host, port) in sorted(proxy.listeners.brokers.items()):
            self._put(f"broker {key}: {options.listen}:{ports[key]}  ({host}:{port})")

    def broker(self, broker_id: int, address: Address, port: int) -> None:
        """Print a broker that has come, or that has another address."""
        host, its_port = address
        if self._as_json:
            values = {"id": broker_id, "port": port, "upstream": f"{host}:{its_port}"}
            self._put(json.dumps({"broker": values}))
        else:
            self._put(f"broker {broker_id}: port {port}  ({host}:{its_port})")

    def saved(self, path: Path) -> None:
        """Print the path of the run directory."""
        text = json.dumps({"run": str(path)}) if self._as_json else f"run directory: {path}"
        self._put(text)

    def drawn_at(self, path: Path) -> None:
        """Print the address of the page, for a browser on this machine."""
        address = path.resolve().as_uri()
        text = f"page: {address}  (drawn every {REDRAWN_AFTER_S:g} s; reload it)"
        self._put(json.dumps({"page": address}) if self._as_json else text)

    def note(self, note: Note) -> None:
        """Print an event."""
        if self._as_json:
            self._put(json.dumps({"event": note_values(note)}, ensure_ascii=False))
        else:
            self._put(note_line(note, self._began_ms))

    def log(self, line: str) -> None:
        """Print a line of the log."""
        self._put(json.dumps({"log": line}, ensure_ascii=False) if self._as_json else line)

    def finish(self) -> None:
        """Print what is left, unless the terminal is blocked."""
        for line in self._early or ():
            self._lines.put(line)
        self._lines.put(None)
        self._thread.join(1)

    def _put(self, line: str) -> None:
        if self._early is not None:
            self._early.append(line)
        elif self._lines.qsize() < MAX_LINES:
            self._lines.put(line)

    def _work(self) -> None:
        while (line := self._lines.get()) is not None:
            print(line, flush=True)
