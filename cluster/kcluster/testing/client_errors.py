"""Exceptions that left the calls of client libraries, for the story of a failed test.

Owns: LeftError, noting them.  Never: changes the effect of a call, sees what a library met and
dealt with itself.  Kafka: no counterpart; a client's own log.

Brokers know nothing of a client's time-outs.  So the public methods of the clients' classes are
wrapped while a test runs, and an exception that reaches the user's code is noted with its line.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Final

from msgspec import Struct

from kcluster.events.render import event_line
from kcluster.testing.callers import is_library, place_of
from kcluster.world.active import is_dying
from kcluster.world.errors import WorldEnded
from kcluster.world.replacing import set_attribute

CLIENTS: Final = (
    ("kafka", ("KafkaConsumer", "KafkaProducer", "KafkaAdminClient")),
    ("kafka.producer.future", ("FutureRecordMetadata",)),
    ("aiokafka", ("AIOKafkaConsumer", "AIOKafkaProducer")),
)
"""The classes whose methods are wrapped, by the module that has them."""
_NO_ERRORS: Final = (StopIteration, StopAsyncIteration, GeneratorExit, WorldEnded)


class LeftError(Struct):
    """An exception that left a client's call.  `call`: `KafkaConsumer.commit`; `place`: the line of
    the test's own code that called; `times`: how often in a row, until `last_ms`."""

    at_ms: int
    call: str
    error: str
    place: str
    times: int = 1
    last_ms: int = -1


class ClientErrors:
    """The exceptions that have left clients' calls while this was attached, in order."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self.found: list[LeftError] = []
        self._clock_ms = clock_ms
        self._inside = threading.local()

    def attach(self, undo: ExitStack) -> None:
        """Wrap the clients of the libraries that are imported, until `undo` ends."""
        for module, names in CLIENTS:
            for name in names:
                cls = getattr(sys.modules.get(module), name, None)
                if cls is not None:
                    self._wrap(cls, undo)

    def _wrap(self, cls: type, undo: ExitStack) -> None:
        for name, method in tuple(vars(cls).items()):
            is_wanted = not name.startswith("_") or name == "__next__"
            if is_wanted and inspect.isfunction(method):
                call = f"{cls.__name__}.{name}"
                wrap = self._of_coroutine if inspect.iscoroutinefunction(method) else self._of
                set_attribute(undo, cls, name, wrap(method, call))

    def _of(self, method: Callable[..., object], call: str) -> Callable[..., object]:
        @functools.wraps(method)
        def noted(*arguments: object, **keys: object) -> object:
            if getattr(self._inside, "depth", 0):
                return method(*arguments, **keys)
            with _NotedCall(self, call, self._inside, sys._getframe(1)):
                return method(*arguments, **keys)

        return noted

    def _of_coroutine(self, method: Callable[..., object], call: str) -> Callable[..., object]:
        @functools.wraps(method)
        async def noted(*arguments: object, **keys: object) -> object:
            # Coroutines take turns in one thread, so no depth is counted.
            with _NotedCall(self, call, None, sys._getframe(1)):
                made = method(*arguments, **keys)
                assert inspect.isawaitable(made)
                return await made

        return noted

    def note(self, call: str, error: BaseException, caller: FrameType | None) -> None:
        """Note an exception that leaves a call to the test's own code."""
        while caller is not None and is_library(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is None or is_dying():
            return
        text = traceback.format_exception_only(error)[-1].strip()
        place = place_of(caller.f_code.co_filename, caller.f_lineno)
        now_ms = self._clock_ms()
        last = self.found[-1] if self.found else None
        if last is not None and (last.call, last.error, last.place) == (call, text, place):
            last.times += 1
            last.last_ms = now_ms
        else:
            self.found.append(LeftError(now_ms, call, text, place, last_ms=now_ms))


class _NotedCall:
    """One call of a client's method.  `inside`: counts the depth of calls in this thread."""

    def __init__(
        self,
        errors: ClientErrors,
        call: str,
        inside: threading.local | None,
        caller: FrameType | None,
    ) -> None:
        self._errors = errors
        self._call = call
        self._inside = inside
        self._caller = caller

    def __enter__(self) -> None:
        if self._inside is not None:
            self._inside.depth = 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._inside is not None:
            self._inside.depth = 0
        if error is not None and not isinstance(error, _NO_ERRORS):
            self._errors.note(self._call, error, self._caller)
        self._caller = None


def client_error_lines(errors: Iterable[LeftError], began_ms: int) -> Iterator[tuple[int, str]]:
    """The exceptions as lines of a timeline, each with its time."""
    for each in errors:
        if each.at_ms < began_ms:
            continue
        text = f"{each.call} raised {each.error}"
        if each.times > 1:
            text += f" ({each.times} times until {each.last_ms - began_ms:+} ms)"
        yield each.at_ms, event_line(each.at_ms, began_ms, "client_error", each.place, text)
