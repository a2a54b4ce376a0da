"""The control protocol: requests, answers, and the handler of each verb.

Owns: ControlRequest, ControlError, ChangeResult, the registry of handlers, the lines on the wire.
Never: opens a socket (client.py and server.py do), knows a verb by name, imports msgspec: that
would add a third to the time that `kcluster kill` takes to start.  Kafka: none; a cluster of
processes is reached through its listeners, this one through its socket.

Newline-delimited JSON over a unix stream socket, one request per connection:
    -> {"verb": "kill", "broker": "1", "how": "kill"}
    <- {"ok": true, "result": …}    or    {"ok": false, "error": "…", "exit_code": 1}
A request with `"follow": true` joins the event feed: after the answer come {"event": {…}} lines
until either side closes.  A request with `"stream": true` is answered by {"line": "…"} for each
thing that happens meanwhile, and then as above.

    class KillRequest(ControlRequest, verb="kill"):
        broker: str

    @handles(KillRequest)
    def handle(session: ControlSession, request: KillRequest) -> ChangeResult: …
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, dataclass_transform


class ControlError(Exception):
    """A command cannot be carried out; the text says why, for the person who typed it.

    `exit_code`: 1 if the cluster cannot do it in its present state, or no cluster runs; 2 if the
    command itself is wrong.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass_transform(frozen_default=True)
class ControlRequest:
    """A command's request to the running cluster; a subclass per verb.

    Its annotations are the keys of the request, as in a dataclass.  It is not one, because
    generating eight dataclasses would add a tenth to the time of `kcluster --help`.
    """

    VERB: ClassVar[str]

    def __init_subclass__(cls, *, verb: str) -> None:
        cls.VERB = verb

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self.__class__.__annotations__
        by_name = dict(zip(names, values, strict=False)) | named
        for name in names:
            if name not in by_name and not hasattr(self.__class__, name):
                raise TypeError(f"{name} is missing")
            vars(self)[name] = by_name[name] if name in by_name else getattr(self, name)

    def to_json(self, **more: bool) -> bytes:
        """The request as one line; `more`: what the protocol itself adds, such as `stream`."""
        return json.dumps({"verb": self.VERB, **vars(self), **more}).encode() + b"\n"


class ChangeResult(NamedTuple):
    """The answer of a verb that changes the cluster.

    `cluster`: its name.  `lines`: to print; a request with `"stream": true` has been sent them
    before.  `events`: what happened until the cluster had settled; none with `"stream": true`, as
    the death of a broker may have 50,000 of them.  `broker`, `brokers`: the state of the one or the
    several that were acted on.
    """

    cluster: str
    changed: bool
    lines: list[str]
    events: list[dict[str, Any]]
    broker: dict[str, Any] | None = None
    brokers: list[dict[str, Any]] | None = None

    def to_values(self) -> dict[str, Any]:
        """The fields that are set, for JSON."""
        return {key: value for key, value in self._asdict().items() if value is not None}


class Handler(NamedTuple):
    """`handle(session, request)` answers a request with a ChangeResult or with a value for JSON.
    `stays_open`: see server.ControlAnswer."""

    request: type[ControlRequest]
    handle: Callable[[Any, Any], Any]
    stays_open: bool


_HANDLERS: Final[dict[str, Handler]] = {}

R = TypeVar("R", bound=ControlRequest)
HandlerFunction = Callable[[Any, R], Any]
"""(session, request) -> answer"""


def handles(
    request: type[R], *, stays_open: bool = False
) -> Callable[[HandlerFunction[R]], HandlerFunction[R]]:
    """Register the function that answers a kind of request."""

    def register(function: HandlerFunction[R]) -> HandlerFunction[R]:
        assert request.VERB not in _HANDLERS, request.VERB
        _HANDLERS[request.VERB] = Handler(request, function, stays_open)
        return function

    return register


def handler_of(verb: str) -> Handler | None:
    """The handler registered for a verb, if the verb's module is imported and has one."""
    return _HANDLERS.get(verb)


def parse_request(line: bytes) -> Mapping[str, Any]:
    """A request's line as an object with a `verb`; ControlError for anything else."""
    try:
        request = json.loads(line)
        # JSON can name half a character (\ud800), which no answer and no file can repeat.
        json.dumps(request, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ControlError("the request has half of a surrogate pair: not text", 2) from None
    except ValueError as error:
        raise ControlError("the request is not JSON", 2) from error
    except RecursionError:
        raise ControlError("the request is nested too deeply", 2) from None
    if not isinstance(request, dict) or not isinstance(request.get("verb"), str):
        raise ControlError("a request is an object with a verb", 2)
    return request
