"""A proxy between a client and a broker that both make things up, with its record and its rules.

Owns: the broker that answers what a step says, the steps, what must hold after them: nothing was
raised, a new connection is served, the record can be read and judged.
Never: makes up input (frames.py and values.py do).
"""

from __future__ import annotations

import contextlib
import io
import select
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from struct import Struct as Packer
from struct import pack
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.faults.rules import Rule, rule
from kcluster.judge.files import read_history
from kcluster.judge.parts import judge_history
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.framing import encode_request_frame, encode_response_frame
from kcluster.protocol.releases import latest
from kcluster.proxy.proxy import KafkaProxy, ProxySettings
from kcluster.proxy.run_files import RunFiles
from kcluster.proxy.running import RunningProxy
from kcluster.runs.directory import read_run
from tests.fuzz.episodes import Failure, Watch, of_traceback, packed, shorter, unpacked
from tests.fuzz.frames import BROKEN_SHARE, made_up_api
from tests.fuzz.mutations import mutated
from tests.fuzz.targets.brokers import topic_ids
from tests.fuzz.values import TOPIC, MadeUp

STEPS: Final = 150
ANSWER_S: Final = 20.0
"""On a busy machine; without load it is a millisecond."""
_HEADER: Final = Packer(">ihhi")

RULES: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "error": {"probability": 0.3, "answer": "UNKNOWN_SERVER_ERROR", "after": True},
    "refusal": {"api": "Produce", "probability": 0.5, "answer": "NOT_LEADER_OR_FOLLOWER"},
    "copy": {"api": "Produce", "duplicate": True},
    "crc": {"api": "Fetch", "corrupt": "crc"},
    "value": {"api": "Fetch", "corrupt": "value"},
    "empty": {"api": "Fetch", "empty": True},
    "capped": {"api": "Fetch", "max_version": 4},
    "close": {"probability": 0.2, "close": "after"},
}


class Passed(Struct, tag="passed"):
    """A client's frame, and what the broker answers to it (as `packed` writes them)."""

    request: str
    answer: str

    def smaller(self) -> Iterator[Passed]:
        """With fewer bytes in one of them."""
        for name in ("answer", "request"):
            data = unpacked(getattr(self, name))
            for size in shorter(len(data)):
                yield replace(self, **{name: packed(data[:size])})


class Ruled(Struct, tag="ruled"):
    """A rule from now on, in place of all others."""

    name: str


Step = Passed | Ruled


class Proxied:
    """The target."""

    name = "proxied"
    step = Step

    def draw(self, rng: Random) -> list[Step]:
        """Requests with answers of their APIs, and now and then another rule."""
        made_up = MadeUp(rng, known_ids(), old_formats=False)
        steps: list[Step] = []
        for number in range(STEPS):
            if rng.random() < 0.04:
                steps.append(Ruled(rng.choice(tuple(RULES))))
            steps.append(made_up_exchange(made_up, number))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Do them to a fresh proxy before a fresh broker."""
        watch = Watch()
        printed = io.StringIO()
        with (
            tempfile.TemporaryDirectory(prefix="kc") as parent,
            contextlib.redirect_stderr(printed),
            Answering() as broker,
        ):
            with watch:
                played(broker, Path(parent), steps)
            if "Traceback" in printed.getvalue():
                return of_traceback(printed.getvalue())
        return watch.failure


@cache
def known_ids() -> tuple[bytes, ...]:
    """The ids of topics, made once."""
    return topic_ids()


def made_up_exchange(made_up: MadeUp, number: int) -> Passed:
    """A request and an answer, each broken in many cases."""
    rng = made_up.rng
    key, version = made_up_api(rng, latest())
    name = APIS[key].name
    body = made_up.message(f"{name}Request", version)
    asked = b"".join(encode_request_frame(key, version, number, "made up", body))
    if rng.random() < BROKEN_SHARE:
        # The header stays, so that the request passes and has an answer.
        at = len(asked) - rng.randint(0, max(0, len(asked) - 20))
        inside = asked[4:at] + mutated(rng, asked[at:])
        asked = pack(">i", len(inside)) + inside
    reply = made_up.message(f"{name}Response", version)
    answered = b"".join(encode_response_frame(key, version, number, reply))
    if rng.random() < BROKEN_SHARE:
        inside = answered[4:8] + mutated(rng, answered[8:])
        answered = pack(">i", len(inside)) + inside
    return Passed(packed(asked), packed(answered))


class Answering:
    """A broker that answers each request with the bytes of its step, by correlation id; a context
    manager."""

    def __init__(self) -> None:
        self.answers: dict[int, bytes] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.settimeout(None)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept() is not woken up by close() alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError, EOFError):
            while True:
                head = exactly(sock, _HEADER.size)
                size, key, version, number = _HEADER.unpack(head)
                exactly(sock, size - (_HEADER.size - 4))
                answer = self.answers.get(number) or self._sane(key, version, number)
                sock.sendall(answer)

    def _sane(self, key: int, version: int, number: int) -> bytes:
        """The answer to the proxy's own Metadata, and to the ApiVersions at the end; of another
        request, of which the step knows nothing, no more than a header."""
        body: Any = m.ApiVersionsResponse()
        if key == ApiKey.METADATA:
            kind = m.MetadataResponse
            body = kind(
                brokers=[kind.MetadataResponseBroker(1, "127.0.0.1", self.port)],
                topics=[kind.MetadataResponseTopic(0, TOPIC, known_ids()[0], partitions=[])],
            )
        elif key != ApiKey.API_VERSIONS:
            return pack(">ii", 4, number)
        return b"".join(encode_response_frame(key, version, number, body))


def exactly(sock: socket.socket, count: int) -> bytes:
    """So many bytes; EOFError if there are fewer."""
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def played(broker: Answering, parent: Path, steps: Sequence[Step]) -> None:
    """Do the steps, and use the record; raises what went wrong."""
    files = RunFiles(parent, "fuzzed", "0", lambda _line: None)
    settings = ProxySettings((("127.0.0.1", broker.port),), base_port=0)
    with RunningProxy(settings, sink=files) as running:
        host, _, port = running.bootstrap.rpartition(":")
        place = host, int(port)
        client: socket.socket | None = None
        for step in steps:
            if isinstance(step, Ruled):
                running.call(partial(only_rule, RULES[step.name]))
                continue
            request = unpacked(step.request)
            broker.answers[correlation_id_of(request)] = unpacked(step.answer)
            client = client or socket.create_connection(place, timeout=ANSWER_S)
            if not sent(client, request):
                client.close()
                client = None
        if client is not None:
            client.close()
        running.call(partial(only_rule, {}))
        broker.answers.clear()
        request = b"".join(
            encode_request_frame(ApiKey.API_VERSIONS, 0, 7, "sane", m.ApiVersionsRequest())
        )
        with socket.create_connection(place, timeout=ANSWER_S) as last:
            last.sendall(request)
            assert last.recv(8)[4:] == pack(">i", 7), "no answer to ApiVersions"
    files.flush()
    _, problems = read_run(files.path)
    assert not problems, problems
    judge_history(read_history([files.path]))


def correlation_id_of(request: bytes) -> int:
    """The correlation id of a request with its length."""
    return int.from_bytes(request[8:12], "big", signed=True)


def sent(client: socket.socket, request: bytes) -> bool:
    """Send a request and read what has come; returns whether the connection is open."""
    try:
        client.sendall(request)
        while select.select([client], [], [], 0.002)[0]:
            if not client.recv(1 << 20):
                return False
    except OSError:
        return False
    return True


def only_rule(keys: dict[str, Any], proxy: KafkaProxy) -> None:
    """Replace all rules by this one; by none if it has no keys."""
    for name in tuple(proxy.gate.book.entries):
        proxy.gate.remove(name)
    if keys:
        made: Rule = rule(**keys)
        proxy.gate.add(made)
