"""A proxy in a thread of its own: started, called from other threads, stopped.

Owns: the thread, its hub, calls into it.  Never: passes a frame on (proxy.py and below).
Kafka: no counterpart; drivers/live.py does it for simulated clusters.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, Protocol, TypeVar

import gevent
import gevent.event

from kcluster.contract import Event
from kcluster.faults.rules import RuleError
from kcluster.operations.group_calls import GroupCallRefused
from kcluster.proxy.listeners import PortTaken
from kcluster.proxy.proxy import KafkaProxy, ProxySettings
from kcluster.proxy.recording import Sink
from kcluster.proxy.upstream import UpstreamError

T = TypeVar("T")

STOP_LIMIT_S: Final = 10.0


class ProxyStopped(Exception):
    """The error for a call to a proxy that does not run any more."""


class _Alarm(Protocol):
    """A watcher of the hub that any thread may set off."""

    def send(self) -> None: ...


class RunningProxy:
    """A proxy that runs from the constructor's return until `stop`; a context manager.

    `log`, `note` and `sink` are called in the proxy's thread and must not block.  UpstreamError or
    PortTaken if it cannot start.
    """

    def __init__(
        self,
        settings: ProxySettings,
        log: Callable[[str], None] = lambda _line: None,
        note: Callable[[Event], None] = lambda _event: None,
        sink: Sink | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._commands: deque[Callable[[], None]] = deque()
        self._alarm: _Alarm | None = None
        self._accepts = False
        started: Future[KafkaProxy] = Future()
        self._stopping = gevent.event.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started, settings, log, note, sink), name="proxy", daemon=True
        )
        self._thread.start()
        try:
            self.proxy = started.result()
        except BaseException:
            self._thread.join(STOP_LIMIT_S)
            raise

    def __enter__(self) -> RunningProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        proxy = self.proxy
        return f"{proxy.settings.host}:{proxy.listeners.bootstrap_port}"

    def call(self, function: Callable[[KafkaProxy], T]) -> T:
        """Run a function in the proxy's thread and return its result; ProxyStopped if there is
        none any more."""
        future: Future[T] = Future()
        with self._lock:
            if not self._accepts:
                raise ProxyStopped("the proxy has stopped")
            self._order(partial(_carry_out, partial(function, self.proxy), future))
        return future.result()

    def stop(self) -> None:
        """Close all ports and connections, and end the thread."""
        with self._lock:
            if self._accepts:
                self._accepts = False
                self._order(self._stopping.set)
        self._thread.join(STOP_LIMIT_S)

    def _order(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        assert self._alarm is not None, "it exists while calls are accepted"
        self._alarm.send()

    # --------------------------------------------------------------------- in the proxy's thread

    def _run(
        self,
        started: Future[KafkaProxy],
        settings: ProxySettings,
        log: Callable[[str], None],
        note: Callable[[Event], None],
        sink: Sink | None,
    ) -> None:
        hub = gevent.get_hub()
        alarm = hub.loop.async_()
        alarm.start(self._run_commands)
        self._alarm = alarm
        try:
            self._serve(started, settings, log, note, sink)
        finally:
            alarm.close()
            hub.destroy(destroy_loop=True)

    def _serve(
        self,
        started: Future[KafkaProxy],
        settings: ProxySettings,
        log: Callable[[str], None],
        note: Callable[[Event], None],
        sink: Sink | None,
    ) -> None:
        proxy: KafkaProxy | None = None
        try:
            try:
                proxy = KafkaProxy(settings, log, note, sink)
                proxy.learn_brokers()
            except (PortTaken, UpstreamError) as error:
                started.set_exception(error)
                return
            self._accepts = True
            started.set_result(proxy)
            self._stopping.wait()
        finally:
            self._accepts = False
            if proxy is not None:
                proxy.close()
            if not started.done():
                started.cancel()

    def _run_commands(self) -> None:
        with self._lock:
            commands = list(self._commands)
            self._commands.clear()
        for command in commands:
            gevent.spawn(command)


def _carry_out(function: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(function())
    except (RuleError, UpstreamError, GroupCallRefused) as error:
        future.set_exception(error)
    finally:
        if not future.done():
            future.cancel()  # after a bug, whose traceback the hub prints
