"""The nodes of a real Kafka as processes: one JVM per broker and controller.

Owns: their life (start, kill -9, SIGSTOP, SIGTERM), their directories, the reaper that removes
everything when this process ends, however it ends.  Never: speaks Kafka's protocol, or decides when
a node is ready.
Kafka: bin/kafka-server-start.sh, bin/kafka-server-stop.sh.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count, permutations
from pathlib import Path
from typing import Final

import gevent
import gevent.monkey

from kcluster.apache_kafka import reaper
from kcluster.apache_kafka.class_archive import LOG_CONFIG, java_options
from kcluster.apache_kafka.installation import Installation
from kcluster.apache_kafka.last_words import ended_with, error_in
from kcluster.apache_kafka.namespaces import NEEDED, NodeNetwork, check_possible
from kcluster.apache_kafka.properties import (
    INNER_LISTENER,
    INNER_USER,
    KEYSTORE,
    LOG_DIRS,
    TRUSTSTORE,
    ListenerAddress,
    NodeAddresses,
    inner_protocol,
    needs_inner_listener,
    server_properties,
    write_properties,
)
from kcluster.apache_kafka.storage import META, format_arguments, format_broker, new_uuid
from kcluster.config.topology.keys import DEFAULT_HOST
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import NetworkSpec, split_address
from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.drivers.tls.optional import require_stores, tls_of
from kcluster.network.shapes import LinkShape
from kcluster.node_ids import CONTROLLER_ID
from kcluster.operations.errors import ClusterError

_Popen: Final[type[subprocess.Popen[bytes]]] = gevent.monkey.get_original("subprocess", "Popen")
"""The standard library's class, even in a monkey-patched process: gevent's works in the main thread
alone."""
PROPERTIES: Final = "server.properties"
_POLL_S: Final = 0.02
_LIMIT_S: Final = 30.0
_TAIL_BYTES: Final = 200_000
FULL_BYTES: Final = 1 << 20
"""The free bytes of a disk on which a JVM can no longer write its error."""
_LOOPBACK: Final = ("127.0.0.1", "localhost")
_FIRST_PORT: Final = 9092
"""The first port of a node with an address of its own, unless the topology names one."""


class KafkaProcesses:
    """All nodes of a topology.  Everything but the constructor runs in one gevent hub.

    `directory`: where the nodes' directories are, to stay; without it, a temporary one.
    `with_network`: whether each node gets a network namespace of its own; None: where that is
    possible, and with True it is a ClusterError if it is not.  Without them `network` is None, and
    `no_network` has the reason.
    `is_behind_proxy`: whether clients reach the brokers through a proxy, so that these listen at
    free ports of this machine, and not at the addresses in the topology.
    `tls`: the TLS of the listeners for clients, if any has it.
    `on_exit(node_id, return_code)`: called in the hub whenever a process has ended.
    """

    def __init__(
        self,
        installation: Installation,
        topology: Topology,
        directory: Path | None = None,
        *,
        with_network: bool | None = None,
        is_behind_proxy: bool = False,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        require_stores(topology)
        self.installation: Final = installation
        self.topology: Final = topology
        self.cluster_id: Final = new_uuid()
        self.broker_ids: Final = tuple(sorted(spec.id for spec in topology.brokers))
        self.controller_ids: Final = tuple(
            range(CONTROLLER_ID, CONTROLLER_ID + topology.controllers)
        )
        self._is_behind_proxy = is_behind_proxy
        self.on_exit: Callable[[int, int], object] = lambda node_id, code: None
        self.tls: Final = tls_of(topology, {}, {}, names=tuple, fixed_size=False, log=log)
        self._ports: list[ReservedPort] = []
        self._taken: dict[int, set[int]] = {}
        """The ports of each node that has a namespace."""
        self._reaper: subprocess.Popen[bytes] | None = None
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._began_at: dict[int, int] = {}
        """The size of each node's output when its process started."""
        self._is_closed = False
        self.network: NodeNetwork | None = None
        self.no_network = "the nodes have no networks of their own (--network no)"
        if with_network is not False:
            self._open_network()
            if with_network and self.network is None:
                self.close()
                raise ClusterError(self.no_network)
        if topology.network != NetworkSpec() and self.no_latency:
            self.close()
            raise ClusterError(f"the topology's `network`: {self.no_latency}")
        self.addresses: Final = self._addresses()
        self._inner_password: Final = secrets.token_hex(16)
        self._wanted = directory
        self._root: Path | None = None
        self._formatting: set[int] = set()
        """Controllers whose directories are being formatted: their process is that of the tool."""

    # --------------------------------------------------------------------------- all nodes

    @property
    def inner_login(self) -> tuple[str, str] | None:
        """The user and password (PLAIN) with which this process may ask the controller, and the
        inner listeners of brokers, for everything; None: these ask for no login."""
        has_login = inner_protocol(self.topology).has_sasl
        return (INNER_USER, self._inner_password) if has_login else None

    @property
    def no_latency(self) -> str | None:
        """Why links cannot be slow or lossy; None if they can."""
        return self.no_network if self.network is None else self.network.reason

    def open(self) -> None:
        """Start every node; returns before they serve."""
        self._root = self._new_root()
        (self._root / "log4j2.properties").write_text(LOG_CONFIG)
        for node_id in (*self.broker_ids, *self.controller_ids):
            self._write_node(node_id)
        for port in self._ports:
            port.lend()
        gevent.spawn(self._watch)
        self._slow_links()
        for node_id in (*self.controller_ids, *self.broker_ids):
            self.wipe(node_id)
            self.start(node_id)

    def close(self) -> None:
        """End every process, and remove everything; twice is once."""
        self._is_closed = True
        if self._reaper is not None:
            self._tell("closed", "")
            beside, self._reaper = self._reaper, None
            assert beside.stdin is not None
            beside.stdin.close()
            _wait(beside)
            for process in self._running.values():
                _wait(process)
        for port in self._ports:
            port.release()
        if self.network is not None:
            self.network.close()
        if self.tls is not None:
            self.tls.close()

    # --------------------------------------------------------------------------- one node

    def is_running(self, node_id: int) -> bool:
        """Whether the process of a node lives, paused or not."""
        return node_id in self._running

    @property
    def pids(self) -> dict[int, int]:
        """The ids of the processes that live, by node."""
        return {node_id: process.pid for node_id, process in self._running.items()}

    def start(self, node_id: int) -> None:
        """Start the process of a node, in its directories as they are; a controller without any is
        formatted first."""
        if node_id in self._running:
            raise ClusterError(f"node {node_id} is running")
        properties = self._folder(node_id) / PROPERTIES
        if any((one / META).exists() for one in self.log_directories(node_id)):
            self._spawn(node_id, "kafka.Kafka", str(properties))
            return
        self._formatting.add(node_id)
        arguments = format_arguments(self.topology, self.cluster_id, properties)
        self._spawn(node_id, "kafka.tools.StorageTool", *arguments)

    def kill(self, node_id: int) -> None:
        """End a process as kill -9 does; returns when it is gone."""
        self._signal(node_id, signal.SIGKILL)
        process = self._running.get(node_id)
        if process is not None:
            _wait(process)
            self._note_exits()

    def pause(self, node_id: int) -> None:
        """SIGSTOP: the process stands still, and its connections stay open."""
        self._signal(node_id, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        """SIGCONT."""
        self._signal(node_id, signal.SIGCONT)

    def shut_down(self, node_id: int) -> None:
        """SIGTERM: a controlled shutdown, which moves leaders away; returns at once."""
        self._signal(node_id, signal.SIGTERM)

    def wipe(self, node_id: int) -> None:
        """Empty the directories of a node that is down, and format them: what it had is lost."""
        if node_id in self._running:
            raise ClusterError(f"node {node_id} is running; its directories are in use")
        directories = self.log_directories(node_id)
        if node_id not in self.controller_ids:
            format_broker(directories, node_id, self.cluster_id)
            return
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)

    def log_directories(self, node_id: int) -> list[Path]:
        """The directories of a node's logs."""
        texts = self._properties(node_id)[LOG_DIRS]
        return [Path(text) for text in texts.split(",")]

    def output(self, node_id: int) -> Path:
        """The file with everything that a node has printed: its log."""
        return self._folder(node_id) / "kafka.log"

    def why_ended(self, node_id: int, code: int) -> str:
        """The end of a process in one line: its return code, and the last error that it printed in
        its last life."""
        who = self._name(node_id)
        error = error_in(self._last_output(node_id))
        if error is None and shutil.disk_usage(self._folder(node_id)).free < FULL_BYTES:
            error = f"no space left in {self._folder(node_id)}"
        return f"{who} {ended_with(code)}: {error or 'it has logged no error'}"

    def _name(self, node_id: int) -> str:
        if node_id in self.broker_ids:
            return f"broker {node_id}"
        is_single = len(self.controller_ids) == 1
        return "the controller" if is_single else f"controller {node_id}"

    def _last_output(self, node_id: int) -> str:
        """The end of what a node has printed since its last start."""
        with self.output(node_id).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(self._began_at.get(node_id, 0), size - _TAIL_BYTES))
            return file.read().decode(errors="replace")

    # ---------------------------------------------------------------------------- the inside

    def _open_network(self) -> None:
        """Make the namespaces, if the topology lets its brokers have addresses of their own."""
        specs = (one for spec in self.topology.brokers for one in spec.all_listeners)
        is_fixed = self.topology.host not in _LOOPBACK or any(one.advertised for one in specs)
        if is_fixed and not self._is_behind_proxy:
            self.no_network = (
                f"{NEEDED}, and brokers without `advertised` that listen on {DEFAULT_HOST}: nodes"
                " get addresses of their own"
            )
            return
        try:
            check_possible()
        except ClusterError as error:
            self.no_network = str(error)
            return
        try:
            self.network = NodeNetwork((*self.controller_ids, *self.broker_ids), self._tell)
        except ClusterError as error:
            self.no_network = f"{NEEDED}: {error}"

    def _slow_links(self) -> None:
        """Give the links the latencies of the topology."""
        spec = self.topology.network
        for a, b in permutations((*self.controller_ids, *self.broker_ids), 2):
            latency_ms = next(
                (one.latency_ms for one in spec.links if {a, b} == set(one.between)),
                spec.default_latency_ms,
            )
            if latency_ms and self.network is not None:
                self.network.shape(a, b, LinkShape(latency_us=round(latency_ms * 1_000)))

    def _tell(self, kind: str, name: str) -> None:
        """Tell the reaper of a thing, before it exists."""
        if self._reaper is None:
            program = [sys.executable, "-I", "-S", reaper.__file__]
            self._reaper = _Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(json.dumps([kind, name]).encode() + b"\n")
        self._reaper.stdin.flush()

    def _host_of(self, node_id: int, host: str = DEFAULT_HOST) -> str:
        """Where a node listens: at an address of its own, or at `host`."""
        return host if self.network is None else self.network.address(node_id)

    def _addresses(self) -> dict[int, NodeAddresses]:
        """The addresses of all nodes.  Their ports stay reserved, also while a node is down."""
        topology = self.topology
        found: dict[int, NodeAddresses] = {}
        own_host = DEFAULT_HOST if self._is_behind_proxy else topology.host
        # Fixed ports first, so that none of them is chosen as a free port.
        wanted = [
            (0 if self._is_behind_proxy else listener.port, spec.id, listener.name)
            for spec in topology.brokers
            for listener in spec.all_listeners
        ]
        ports = {
            (id_, name): self._reserved(id_, port, own_host)
            for port, id_, name in sorted(wanted, reverse=True)
        }
        for spec in topology.brokers:
            host, listeners = self._host_of(spec.id, own_host), []
            for one in spec.all_listeners:
                port, told = ports[spec.id, one.name], None
                if one.advertised is not None:
                    named, at = split_address(one.advertised)
                    told = named, at or port
                listeners.append(ListenerAddress(one.name, one.protocol, host, port, told))
            inner = None
            if needs_inner_listener(topology):
                host, port = self._host_of(spec.id), self._reserved(spec.id, 0)
                inner = ListenerAddress(INNER_LISTENER, inner_protocol(topology), host, port)
            found[spec.id] = NodeAddresses(tuple(listeners), inner)
        for id_ in self.controller_ids:
            found[id_] = NodeAddresses(controller=(self._host_of(id_), self._reserved(id_, 0)))
        return found

    def _reserved(self, node_id: int, port: int, host: str = DEFAULT_HOST) -> int:
        """A port for a node, if it is 0 a free one.  In a namespace every port is free."""
        if self.network is not None:
            taken = self._taken.setdefault(node_id, set())
            port = port or next(one for one in count(_FIRST_PORT) if one not in taken)
            taken.add(port)
            return port
        try:
            reserved = ReservedPort(host, port)
        except OSError as error:
            self.close()
            whose, where = self._name(node_id), f"{host}:{port}"
            raise ClusterError(f"{whose} cannot listen on {where}: {error.strerror}") from error
        self._ports.append(reserved)
        return reserved.port

    def _new_root(self) -> Path:
        """The directory of the cluster, which the reaper knows before anything is in it."""
        if self._wanted is not None:
            self._wanted.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix="kcluster-kafka-", dir=self._wanted))
        self._tell("mark", f"{root}/")
        if self._wanted is None:
            self._tell("directory", str(root))
        return root

    def _folder(self, node_id: int) -> Path:
        if self._root is None:
            raise ClusterError("the cluster has not been started")
        return self._root / f"node-{node_id}"

    def _properties(self, node_id: int) -> Mapping[str, str]:
        directory = self._folder(node_id)
        return server_properties(
            self.topology, node_id, self.addresses, directory, self._inner_password
        )

    def _write_node(self, node_id: int) -> None:
        folder = self._folder(node_id)
        folder.mkdir()
        (folder / PROPERTIES).touch(mode=0o600)
        (folder / PROPERTIES).write_text(write_properties(self._properties(node_id)))
        if node_id in self.broker_ids and self.topology.makes_certificates(node_id):
            self._write_certificate(node_id, folder)

    def _write_certificate(self, node_id: int, folder: Path) -> None:
        if self.tls is None:
            return
        hosts = [one.told_host for one in self.addresses[node_id].listeners]
        for name, pem in zip((KEYSTORE, TRUSTSTORE), self.tls.pem_for(hosts), strict=True):
            (folder / name).touch(mode=0o600)
            (folder / name).write_bytes(pem)

    def _spawn(self, node_id: int, main: str, *arguments: str) -> None:
        assert self._root is not None
        options = java_options(self.installation.archive, self._root / "log4j2.properties")
        inside = [] if self.network is None else self.network.command(node_id)
        java = [str(self.installation.java), *options, "-cp", self.installation.class_path]
        with self.output(node_id).open("ab") as out:
            self._began_at[node_id] = out.tell()
            self._running[node_id] = _Popen(
                [*inside, *java, main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _signal(self, node_id: int, number: signal.Signals) -> None:
        process = self._running.get(node_id)
        if process is None:
            raise ClusterError(f"node {node_id} is not running")
        process.send_signal(number)

    def _watch(self) -> None:
        while not self._is_closed:
            self._note_exits()
            gevent.sleep(_POLL_S)

    def _note_exits(self) -> None:
        for node_id, process in list(self._running.items()):
            code = process.poll()
            if code is None or self._running.get(node_id) is not process:
                continue
            del self._running[node_id]
            was_formatting = node_id in self._formatting
            self._formatting.discard(node_id)
            if was_formatting and code == 0:
                self.start(node_id)
            else:
                self.on_exit(node_id, code)


def _wait(process: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: process.poll() is not None, _LIMIT_S)


def wait_until(holds: Callable[[], bool], limit_s: float) -> bool:
    """Wait, without holding up the hub, until a condition holds; False if it does not in time."""
    until_s = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        gevent.sleep(_POLL_S / 10)
    return True
