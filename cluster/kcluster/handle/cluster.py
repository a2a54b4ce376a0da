"""Cluster: the handle of a live cluster, for Python, the command line and tests.

Owns: the life of a cluster on the live driver: its ports, its thread.  Never: defines a verb
(verbs.py).  Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Self, TypeVar

import gevent
from gevent.event import Event as GeventEvent

from kcluster.config.topology.model import Topology
from kcluster.drivers.live import LiveDriver
from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.drivers.tls.optional import require_stores
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.runtime.build import Plan, build

T = TypeVar("T")

START_TIMEOUT_S: Final = 30.0
NO_DESCRIPTOR: Final = (errno.EMFILE, errno.ENFILE)
ADVISED_DESCRIPTORS: Final = 10_000


class Cluster(ClusterVerbs):
    """A cluster on the live driver: `with Cluster(Topology.load("topology.yaml")) as cluster: …`.

    `seed`: the seed of all randomness in the cluster; drawn if None.  `log`: called with lines for
    an operator.  `record`: whether the run is recorded, for `verdict` and `save`.  `bootstrap`:
    `host:port,host:port`, for clients.
    """

    driver: LiveDriver
    start_timeout_s = START_TIMEOUT_S

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int | None = None,
        log: Callable[[str], None] | None = None,
        record: bool = True,
    ) -> None:
        drawn = int.from_bytes(os.urandom(6)) if seed is None else seed
        self._ports: dict[int, tuple[ReservedPort, ...]] = {}
        super().__init__(topology, drawn, *self._built(topology, drawn, log))
        self._thread: threading.Thread | None = None
        self._is_recorded = record

    def _built(
        self, topology: Topology, seed: int, log: Callable[[str], None] | None
    ) -> tuple[Plan, LiveDriver]:
        """The plan of the cluster, and its driver."""
        require_stores(topology)
        self._ports = reserve_ports(topology)
        ports = {id_: [port.port for port in own] for id_, own in self._ports.items()}
        plan = build(topology, seed, ports)
        return plan, LiveDriver(plan, self._ports, log)

    @property
    def real_version(self) -> str:
        """The version of the real Kafka that runs; empty if the brokers are simulated."""
        return ""

    # ------------------------------------------------------------------------------- life

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close()
        if error is None and self.driver.bugs:
            raise ClusterError(
                f"a bug in the simulator: {self.driver.bugs[0]!r}; the traceback is above"
            ) from self.driver.bugs[0]

    def open(self, timeout_s: float | None = None) -> None:
        """Start the cluster in its own thread; returns when all brokers serve clients and every
        topic of the topology exists.  Raises ClusterError if that is impossible; then nothing
        runs."""
        assert self._thread is None, "a Cluster can be opened only once"
        ready: Future[None] = Future()

        def on_ready() -> None:
            if self._is_recorded:
                self.record.begin()  # before the hub reads the first byte of a client
            ready.set_result(None)

        def serve() -> None:
            try:
                self.driver.run(on_ready)
            except OSError as error:
                if ready.done() or error.errno not in NO_DESCRIPTOR:
                    raise
                ready.set_exception(ClusterError(too_few_descriptors(len(self.broker_ids))))
            except ClusterError as error:
                if ready.done():
                    raise
                ready.set_exception(error)
            finally:
                if not ready.done():
                    ready.set_exception(ClusterError("the cluster did not start"))

        self._thread = threading.Thread(
            target=_in_thread, args=([serve],), name="kcluster", daemon=True
        )
        self._thread.start()
        try:
            ready.result()
            limit_s = self.start_timeout_s if timeout_s is None else timeout_s
            self.wait_until(self.verbs.settled.has_started, limit_s, "not all brokers started")
        except ClusterError:
            self.close()
            raise

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve in the calling thread until `close` is called from another thread or greenlet."""
        self.driver.run(on_ready)
        self._release()

    def close(self) -> None:
        """Stop everything at once."""
        self.driver.stop()
        if self._thread is None:
            self._release()
        elif self._thread is not threading.current_thread():
            self._thread.join()
            self._release()

    def _release(self) -> None:
        if self.driver.tls is not None:
            self.driver.tls.close()
        self._release_ports()

    def _release_ports(self) -> None:
        for ports in self._ports.values():
            for port in ports:
                port.release()

    # ---------------------------------------------------------------- the driver's thread

    def result(self, future: Future[T], timeout_s: float | None, failure: str) -> T:
        thread_id = threading.get_ident()
        is_greenlet = isinstance(gevent.getcurrent(), gevent.Greenlet)
        if not is_greenlet and thread_id != self.driver.thread_id:
            return super().result(future, timeout_s, failure)
        # Only the greenlet waits: its thread, the driver's or another one, goes on.
        done, loop = GeventEvent(), gevent.get_hub().loop

        def wake(_: Future[T]) -> None:
            if threading.get_ident() == thread_id:
                done.set()
                return
            with suppress(ValueError):  # the loop has ended, and the waiting callers with it
                loop.run_callback_threadsafe(done.set)

        future.add_done_callback(wake)
        if not done.wait(timeout_s):
            raise NotInTime(f"{failure} within {timeout_s:g} s")
        return future.result(0)


def _in_thread(todo: list[Callable[[], None]]) -> None:
    """A cluster's thread.  gevent keeps the frames that destroy a hub; they must not refer to the
    cluster, or its logs would stay in memory."""
    todo.pop()()
    gevent.get_hub().destroy(destroy_loop=True)


def too_few_descriptors(brokers: int) -> str:
    """The reason why a cluster cannot start in this process, with the remedy."""
    may_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"{brokers} brokers need more files than the {may_open} that this process may open: two per"
        f" broker, one per client; allow more, as by: ulimit -n {ADVISED_DESCRIPTORS}"
    )


def reserve_ports(topology: Topology) -> dict[int, tuple[ReservedPort, ...]]:
    """Reserve the ports of the brokers' listeners, by broker id; all of them or none."""
    ports: dict[tuple[int, int], ReservedPort] = {}
    wanted = [
        (not listener.port, spec.id, at, listener.port)
        for spec in topology.brokers
        for at, listener in enumerate(spec.all_listeners)
    ]
    # Fixed ports first, so that none of them is chosen as a free port.
    for _, broker_id, at, number in sorted(wanted):
        try:
            ports[broker_id, at] = ReservedPort(topology.host, number)
        except OSError as error:
            for port in ports.values():
                port.release()
            if error.errno in NO_DESCRIPTOR:
                raise ClusterError(too_few_descriptors(len(topology.brokers))) from error
            where = f"{topology.host}:{number}"
            raise ClusterError(
                f"broker {broker_id} cannot listen on {where}: {error.strerror}"
            ) from error
    return {
        spec.id: tuple(ports[spec.id, at] for at in range(len(spec.all_listeners)))
        for spec in sorted(topology.brokers, key=lambda spec: spec.id)
    }
