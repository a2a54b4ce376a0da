"""Programs of a test in virtual time: functions that the test starts, kills and starts again.

Owns: App and Apps: their starts, their ends, what ended them.  Never: ends a thread itself (world/
does), runs a file (cli/simulate/).  Kafka: no counterpart; services of the user's, and what
supervises them.

    app = kafka_cluster.run(billing, bank)
    app.kill()
    app.restart()

An app is a function with its threads, its sockets and its exit functions.  What it makes itself
dies with it; what it is given, or closes over, survives it as a database does.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Protocol

from kcluster.actions.stage import Stage
from kcluster.events.programs import ProgramKilled, ProgramPaused, ProgramResumed, ProgramStarted
from kcluster.operations.errors import ClusterError
from kcluster.operations.programs import check_program
from kcluster.runtime.dispatch import Dispatcher
from kcluster.testing.thread_deaths import ThreadDeaths
from kcluster.world.errors import WorldEnded
from kcluster.world.world import World

JOIN_LIMIT_S: Final = 600.0
"""The virtual time for which `join` waits unless it is told another one."""


class AppCluster(Protocol):
    """The cluster of a test, as its apps see it."""

    deaths: ThreadDeaths

    @property
    def apps(self) -> Apps:
        """The apps of the test."""

    @property
    def stage(self) -> Stage:
        """The stage on which actions are performed."""

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher, for use in the driver's thread."""

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the driver's thread."""

    def wait_until(
        self, condition: Callable[[], bool], timeout_s: float, failure: str | None
    ) -> bool:
        """Wait for a condition, by the cluster's clock."""

    def kill(self, brokers: str, *, after: str | None = None, within: str | float = 0) -> object:
        """Kill an app, as `app NAME`."""

    def start(self, brokers: str) -> object:
        """Start an app, as `app NAME`."""

    def do(self, verb: str, short: object = None) -> object:
        """Perform an action of scenario files."""


class AppFailed(AssertionError):
    """The error for an app that an exception ended."""


class App:
    """One function that runs as a program of its own.  `name`: its name in targets and reports;
    `error`: the exception that ended its last life, None if there was none."""

    def __init__(
        self,
        cluster: AppCluster,
        name: str,
        function: Callable[..., object],
        arguments: Sequence[object],
        keywords: Mapping[str, object],
        restart_after_ms: int | None = None,
    ) -> None:
        self.name = name
        self.lives = 0
        """The number of its starts."""
        self.is_running = False
        self.was_killed = False
        """Whether it was killed, and not started again."""
        self.error: BaseException | None = None
        self._cluster = cluster
        self._function = function
        self._arguments = arguments
        self._keywords = keywords
        self._restart_after_ms = restart_after_ms

    def __repr__(self) -> str:
        return f"<app {self.name}, life {self.lives}, {'running' if self.is_running else 'over'}>"

    def kill(self, after: str | None = None, within: str | float = 0) -> None:
        """Kill the app as SIGKILL does: its connections are closed, its threads end where they
        stand, nothing that they do on their way out reaches a broker.  `after`, `within`: not now,
        but at a moment near an event, as `kafka_cluster.kill` takes it."""
        self._cluster.kill(f"app {self.name}", after=after, within=within)

    def start(self) -> None:
        """Start the app again, which does not run."""
        self._cluster.start(f"app {self.name}")

    def pause(self) -> None:
        """Let the app stand still, as SIGSTOP or a long garbage collection does: its connections
        stay open, it sends no heartbeats, its deadlines pass."""
        self._cluster.do("pause", f"app {self.name}")

    def resume(self) -> None:
        """Let a paused app go on."""
        self._cluster.do("resume", f"app {self.name}")

    def restart(self) -> None:
        """Kill the app if it runs, and start it again."""
        if self.is_running:
            self.kill()
        self.start()

    def join(self, timeout_s: float = JOIN_LIMIT_S) -> None:
        """Wait until the app's function has returned; AppFailed if an exception ended it, NotInTime
        if it still runs after this virtual time."""
        __tracebackhide__ = True
        self._cluster.wait_until(
            lambda: not self.is_running, timeout_s, f"app {self.name} did not end"
        )
        self.check()

    def check(self) -> None:
        """Raise AppFailed if an exception has ended the app; once."""
        __tracebackhide__ = True
        error, self.error = self.error, None
        if error is not None:
            text = f"app {self.name} ended with {type(error).__name__}: {error}"
            raise AppFailed(text) from error

    def begin(self) -> None:
        """Begin another life, in a thread of the world whose program is this one."""
        self.lives += 1
        self.is_running = True
        self.error = None
        live = threading.Thread(target=self._live, args=(self.lives,), name=self.name, daemon=True)
        live.start()

    def _live(self, life: int) -> None:
        with _AppLife(self, life):
            result = self._function(*self._arguments, **self._keywords)
            if inspect.iscoroutine(result):
                asyncio.run(result)

    def end(self, life: int, error: BaseException | None) -> None:
        """Take note of the end of a life."""
        if life != self.lives or not self.is_running:
            return  # it was killed
        self.is_running = False
        if error is None:
            return
        self._cluster.deaths.note(self.name, error)
        if self._restart_after_ms is None:
            self.error = error
        else:
            self._cluster.apps.start_later(self.name, self._restart_after_ms)


class _AppLife:
    """Turns whatever ends an app into its end."""

    def __init__(self, app: App, life: int) -> None:
        self._app = app
        self._life = life

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, WorldEnded):
            return False
        has_failed = error is not None and not (isinstance(error, SystemExit) and not error.code)
        self._app.end(self._life, error if has_failed else None)
        return True


class Apps:
    """The apps of one test, for actions that take programs (operations/programs.py)."""

    def __init__(self, cluster: AppCluster, world: World) -> None:
        self.all: dict[str, App] = {}
        self._cluster = cluster
        self._world = world

    @property
    def names(self) -> Sequence[str]:
        return tuple(self.all)

    def run(
        self,
        function: Callable[..., object],
        name: str,
        arguments: Sequence[object],
        keywords: Mapping[str, object],
        restart_after_ms: int | None,
    ) -> App:
        """Start a function as an app.  Called by a thread of the world."""
        if not callable(function):
            raise ClusterError(f"{function!r} is no function")
        name = self._free_name(function, name)
        app = App(self._cluster, name, function, arguments, keywords, restart_after_ms)
        self.all[app.name] = app
        self._begin(app)
        return app

    def _free_name(self, function: Callable[..., object], name: str) -> str:
        if name and name in self.all:
            raise ClusterError(f"app {name}: this name is taken")
        stem = name or getattr(function, "__name__", "app").strip("<>")
        numbers = (f"{stem}-{number}" for number in range(2, len(self.all) + 3))
        return stem if stem not in self.all else next(x for x in numbers if x not in self.all)

    def _begin(self, app: App) -> None:
        app.is_running, app.was_killed = True, False
        self._world.scheduler.spawn(app.begin, (), {}, app=app.name)

    def is_running(self, name: str) -> bool:
        check_program(name, self.names)
        return self.all[name].is_running

    def kill(self, name: str) -> None:
        check_program(name, self.names)
        app = self.all[name]
        app.is_running, app.was_killed = False, True
        self._world.kill(name)
        self._cluster.dispatcher.note(ProgramKilled(name))

    def start(self, name: str) -> None:
        check_program(name, self.names)
        if self._world.is_over:
            return
        app = self.all[name]
        self._cluster.dispatcher.note(ProgramStarted(name, app.lives + 1))
        self._begin(app)

    def pause(self, name: str) -> None:
        check_program(name, self.names)
        self._world.scheduler.pause(name)
        self._cluster.dispatcher.note(ProgramPaused(name))

    def resume(self, name: str) -> None:
        check_program(name, self.names)
        if name in self._world.scheduler.paused:
            self._world.scheduler.resume(name)
            self._cluster.dispatcher.note(ProgramResumed(name))

    def start_later(self, name: str, after_ms: int) -> None:
        """End what is left of an app that an exception has ended, and start it again, as a
        supervisor does.  Called by a thread of the app."""
        stage = self._cluster.stage

        def start() -> None:
            app = self.all[name]
            if not (app.is_running or app.was_killed):
                self.start(name)

        def end() -> None:
            self._world.kill(name)
            stage.at(stage.now_ms + after_ms, start)

        self._cluster.call(lambda: stage.at(stage.now_ms, end))

    def stall(self, name: str, share: float, longest_ms: int, line: str = "") -> None:
        if name and self.all:  # before the first one, it is unknown which there will be
            check_program(name, self.names)
        self._world.stall(name, share, longest_ms * 1000, line)

    def when_line(self, line: str, number: int, callback: Callable[[], None]) -> Callable[[], None]:
        return self._world.when_line(line, number, callback)

    def collect_quietly(self) -> None:
        """Collect what killed apps have left.  Their finalizers would complain, later and in
        another test, of connections that nothing has closed."""
        hook = sys.unraisablehook
        sys.unraisablehook = _ignore
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gc.collect()
        finally:
            sys.unraisablehook = hook

    def check(self) -> None:
        """Raise AppFailed if an exception has ended an app, and `join` has not raised it."""
        for app in self.all.values():
            app.check()

    def await_killed(self) -> None:
        """Let the threads of killed apps end; called by a thread of the test."""
        self._world.scheduler.await_forced_ends()


def _ignore(_unraisable: object) -> None:
    pass
