"""The trace of a world: a line for each frame that passes between its clients and the brokers; two
traces compared, which shows whether a run is deterministic.

Owns: joining packets to frames, the form of the lines, the trace's hash; the first difference of
two traces, and the advice for it.  Never: decodes a body, runs anything. Kafka: tcpdump beside a
broker; FoundationDB's unseed.

Columns: `1234567` µs since the start, `>` to the broker or `<` from it, API and version, broker,
connection (they are counted), client.id, size of the frame with its length, hash of its bytes.  The
time is that of the frame's last packet.  Bytes that are not a frame are shown as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from struct import Struct as Packing
from typing import Final, Protocol

from msgspec import Struct

from kcluster.protocol.apis import APIS

_SIZE: Final = Packing(">i")
_HEADER: Final = Packing(">ihhi")
"""The layout of a request's size, API key, version, correlation id."""
_CORRELATION: Final = Packing(">ii")
"""The layout of a response's size, correlation id."""
MAX_FRAME_BYTES: Final = 1 << 28
_HASH_BYTES: Final = 6


class TracedConnection(Protocol):
    """A connection, with the facts that each line of a trace shows."""

    number: int
    broker_id: int
    client_id: str | None


class WireTrace:
    """Makes the lines of a trace.  Its `on_packet` must be in `driver.network.packet_sinks`.
    `origin_us`: the time from which times count.  `sink`: called with each line.  `count`: the
    number of lines so far."""

    def __init__(self, origin_us: int, sink: Callable[[str], object] | None = None) -> None:
        self.count = 0
        self._sink = sink
        self._hash = hashlib.blake2b(digest_size=8)
        self._origin_us = origin_us
        self._unfinished: dict[tuple[int, bool], bytearray] = {}
        self._asked: dict[tuple[int, int], str] = {}
        """API and version of each open request, by connection and correlation id."""

    @property
    def hash(self) -> str:
        """The hash of all lines; equal traces have equal hashes."""
        return self._hash.hexdigest()

    def on_packet(
        self, at_us: int, connection: TracedConnection, is_to_broker: bool, data: bytes
    ) -> None:
        """Add a packet that is being sent: a line for each frame that it completes."""
        key = (connection.number, is_to_broker)
        buffer = self._unfinished.setdefault(key, bytearray())
        buffer += data
        while len(buffer) >= _SIZE.size:
            size_bytes = _SIZE.unpack_from(buffer)[0] + _SIZE.size
            if not _SIZE.size <= size_bytes <= MAX_FRAME_BYTES:
                size_bytes = len(buffer)  # not a frame
            if len(buffer) < size_bytes:
                return
            frame = bytes(buffer[:size_bytes])
            del buffer[:size_bytes]
            name = self._asks(frame, key[0]) if is_to_broker else self._answers(frame, key[0])
            self._add(at_us, connection, is_to_broker, name, frame)

    def end(self, at_us: int, *facts: object) -> None:
        """The last line: facts about the whole run, such as the next random number."""
        for (number, is_to_broker), buffer in self._unfinished.items():
            if buffer:
                arrow = ">" if is_to_broker else "<"
                self._line(f"the end {arrow} connection {number} {_seen(bytes(buffer))}")
        self._line(f"{at_us - self._origin_us} end {' '.join(map(str, facts))}")

    def _asks(self, frame: bytes, number: int) -> str:
        if len(frame) < _HEADER.size:
            return "bytes"
        _, api_key, version, correlation_id = _HEADER.unpack_from(frame)
        if api_key not in APIS:
            return "bytes"
        name = f"{APIS[api_key].name} v{version}"
        self._asked[number, correlation_id] = name
        return name

    def _answers(self, frame: bytes, number: int) -> str:
        if len(frame) < _CORRELATION.size:
            return "bytes"
        return self._asked.pop((number, _CORRELATION.unpack_from(frame)[1]), "bytes")

    def _add(
        self, at_us: int, connection: TracedConnection, is_to_broker: bool, name: str, frame: bytes
    ) -> None:
        arrow = ">" if is_to_broker else "<"
        where = f"broker {connection.broker_id} connection {connection.number}"
        client = connection.client_id or "-"
        self._line(f"{at_us - self._origin_us} {arrow} {name} {where} {client} {_seen(frame)}")

    def _line(self, line: str) -> None:
        self.count += 1
        self._hash.update(f"{line}\n".encode())
        if self._sink is not None:
            self._sink(line)


def _seen(data: bytes) -> str:
    return f"{len(data)} bytes {hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()}"


AROUND: Final = 2
"""The number of lines shown before and after the first difference."""
_NOTHING: Final = "(the trace ends here)"


class Difference(Struct, frozen=True):
    """The first line that differs.  `index`: from 0; `before`: the lines before it; `first`,
    `second`: in each trace this line, and the lines after it."""

    index: int
    before: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]


def compare(first: Sequence[str], second: Sequence[str]) -> Difference | None:
    """The first difference of two traces; None if they are equal."""
    for index, (one, other) in enumerate(zip_longest(first, second)):
        if one != other:
            before = tuple(first[max(0, index - AROUND) : index])
            end = index + 1 + AROUND
            return Difference(index, before, tuple(first[index:end]), tuple(second[index:end]))
    return None


def difference_lines(difference: Difference) -> Iterator[str]:
    """The report of a difference for users."""
    yield f"not deterministic: the traces differ from line {difference.index + 1} on"
    yield from (f"    {line}" for line in difference.before)
    for number, lines in (("1", difference.first), ("2", difference.second)):
        yield from (f"  {number} {line}" for line in lines or (_NOTHING,))
    yield "what may differ from run to run:"
    yield "  the order of a set of objects that have no __hash__ of their own (it is by address)"
    yield "  id() or repr() of an object, in a value, a key or a name"
    yield "  a library in C that reads the clock or draws random numbers itself"
    yield "  files that the first run has changed, and the environment"
