"""Signals of programs in a world, and of a test: their handlers, and sending one.

Owns: these handlers.  Never: receives a signal of the real process. Kafka: no counterpart; services
are ended by SIGTERM.

Python accepts handlers in a process' main thread only, and runs them there.  A program of a world
may set them in its first thread, which is its main thread.  DIFFERS: handlers run in a thread of
their own beside it; the handler of a signal that a program sends itself runs in the sending thread.

A test is a program without a name.  A signal that it sends itself and does not handle is real.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Final

from kcluster.world.active import thread_here
from kcluster.world.callers import is_tool
from kcluster.world.replacing import set_attribute
from kcluster.world.sockets import WorldSocket
from kcluster.world.world import World

Handler = Callable[[int, FrameType | None], object] | int | None
"""A handler in the form that signal.signal takes."""
IGNORED: Final = frozenset(
    number
    for name in ("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH")
    if (number := getattr(signal, name, None)) is not None
)
"""Signals that do not end a process that does not handle them."""


class EndedBySignal(SystemExit):
    """Raised when a program sends itself a signal that it does not handle."""

    def __init__(self, number: int) -> None:
        super().__init__(exit_code_of(number))
        self.name = next((x.name for x in signal.Signals if x == number), f"signal {number}")


def exit_code_of(number: int) -> int:
    """The exit code of a process that this signal has ended, as shells report it."""
    return 128 + number


def _ignore() -> None:
    pass


class ProgramSignals:
    """The handlers of all programs of a world.  `on_handler`: called when one is set.  `of_test`:
    whether threads of no program belong to a test."""

    def __init__(
        self, world: World, on_handler: Callable[[], None] = _ignore, *, of_test: bool = False
    ) -> None:
        self._world = world
        self._on_handler = on_handler
        self._of_test = of_test
        self._handlers: dict[tuple[str, int], Handler] = {}
        self._wakeups: dict[str, int] = {}
        """The sockets into which asyncio wants a byte for each signal, by program."""

    def _app_here(self) -> str | None:
        """The program of the calling thread; None for threads outside of the world, and for tools
        such as pytest."""
        thread = thread_here()
        if thread is None or is_tool(sys._getframe(2)):
            return None
        return thread.app if thread.app or self._of_test else None

    def replace(self, undo: ExitStack) -> None:
        """Let programs set handlers; `undo` ends that."""
        real = signal.signal, signal.getsignal, signal.set_wakeup_fd, signal.siginterrupt

        def handler_of(app: str, number: int) -> Handler:
            default = signal.SIG_DFL if app else real[1](number)
            return self._handlers.get((app, number), default)

        def set_handler(signalnum: int, handler: Handler) -> Handler:
            app = self._app_here()
            if app is None:
                return real[0](signalnum, handler)
            before = handler_of(app, int(signalnum))
            self._handlers[app, int(signalnum)] = handler
            self._on_handler()
            return before

        def get_handler(signalnum: int) -> Handler:
            app = self._app_here()
            return real[1](signalnum) if app is None else handler_of(app, int(signalnum))

        def set_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
            app = self._app_here()
            if app is None:
                return real[2](fd, warn_on_full_buffer=warn_on_full_buffer)
            before = self._wakeups.get(app, -1)
            self._wakeups[app] = fd
            return before

        def siginterrupt(signalnum: int, flag: bool) -> None:
            if self._app_here() is None:
                real[3](signalnum, flag)

        def raise_signal(signalnum: int) -> None:
            app = self._app_here()
            if app is None or not self._raise(app, int(signalnum)):
                real_raise(signalnum)

        def kill(pid: int, signalnum: int) -> None:
            app = self._app_here()
            is_own = pid == os.getpid() and signalnum
            if app is None or not is_own or not self._raise(app, int(signalnum)):
                real_kill(pid, signalnum)

        real_raise, real_kill = signal.raise_signal, os.kill
        for name, replacement in (
            ("signal", set_handler),
            ("getsignal", get_handler),
            ("set_wakeup_fd", set_wakeup_fd),
            ("siginterrupt", siginterrupt),
            ("raise_signal", raise_signal),
        ):
            set_attribute(undo, signal, name, replacement)
        set_attribute(undo, os, "kill", kill)

    @property
    def is_handled(self) -> bool:
        """Whether any program handles any signal."""
        return any(map(callable, self._handlers.values()))

    def forget(self, app: str) -> None:
        """Drop the handlers of a program that was killed."""
        self._handlers = {key: each for key, each in self._handlers.items() if key[0] != app}
        self._wakeups.pop(app, None)

    def handles(self, app: str, number: int) -> bool:
        """Whether a program handles a signal."""
        return callable(self._handlers.get((app, number)))

    def _raise(self, app: str, number: int) -> bool:
        """Send the calling program a signal; returns False if the real signal must be sent."""
        handler = self._handlers.get((app, number), signal.SIG_DFL)
        if callable(handler):
            self.deliver(app, number)
        elif handler is signal.SIG_IGN:
            return True
        elif not app:
            return False
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        elif number not in IGNORED:
            raise EndedBySignal(number)
        return True

    def deliver(self, app: str, number: int) -> None:
        """Run the handler of a program, in the calling thread."""
        handler = self._handlers[app, number]
        assert callable(handler), "only handled signals are delivered"
        handler(number, None)
        socket = self._world.sockets.by_descriptor.get(self._wakeups.get(app, -1))
        if isinstance(socket, WorldSocket):
            socket.send(bytes([number]))
