"""The door of a running proxy: its part of the HTTP API on a unix socket, for the verbs.

Owns: which requests a proxy answers: `status`, `events`, `fault` with rules and groups, `down`.
Never: passes a frame on, listens to a port.  Kafka: no counterpart; door.py is that of a cluster.

It runs in the proxy's hub.  A request that a cluster answers and a proxy cannot is refused in one
line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import gevent
import gevent.socket
import msgspec
from gevent.pywsgi import WSGIServer
from msgspec import structs
from werkzeug.wrappers import Request, Response

from kcluster import __version__
from kcluster.actions.groups import DeleteGroup, Evict, Rebalance, ResetOffsets
from kcluster.actions.network import Heal
from kcluster.actions.rules import ClearRules
from kcluster.cli.directory import check_name
from kcluster.cli.door import ClaimedName
from kcluster.cli.work.proxy_notes import ProxyNotes
from kcluster.cli.work.proxy_rules import rule_of
from kcluster.config.files.tree import from_yaml
from kcluster.contract import Note
from kcluster.events.render import note_line, note_values
from kcluster.events.words import effect_text, sentence_of
from kcluster.faults import reports
from kcluster.faults.rules import RuleError
from kcluster.json_types import JsonObject
from kcluster.operations.group_calls import GroupCallRefused
from kcluster.protocol.releases import latest
from kcluster.proxy.proxy import KafkaProxy
from kcluster.proxy.upstream import UpstreamError
from kcluster.scenario.language.loader import ScenarioError, parse_action, read_action
from kcluster.scenario.language.model import Step, StepOptions
from kcluster.scenario.language.words import moment
from kcluster.web.application import problem_response
from kcluster.web.problems import RefusedRequest, refusal_of
from kcluster.web.routes import JSON, NDJSON, PLAIN, VERSION_HEADER

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

GROUP_ACTIONS: Final = (Evict, Rebalance, DeleteGroup, ResetOffsets)
VERBS: Final = (
    *("rule", "clear_rules", "heal"),
    *("evict", "rebalance", "delete_group", "reset_offsets"),
)
_NO_WAIT: Final = {
    "brokers": [], "left_alone": [], "states": [], "alone": [], "is_clock_paused": False,
    "notice_s": 0, "waits_s": 0,
}  # fmt: skip
"""The part of an answer about an action that is the same for all rules."""
EXIT_LIMIT_S: Final = 60


class ProxyDoor:
    """Serves the name of a proxy, in its hub.  `stop`: stops the proxy."""

    def __init__(
        self,
        claimed: ClaimedName,
        proxy: KafkaProxy,
        *,
        notes: ProxyNotes,
        stop: Callable[[], object],
    ) -> None:
        self._name = check_name(claimed.name)
        self._proxy = proxy
        self._notes = notes
        self._stop = stop
        listener = gevent.socket.socket(fileno=claimed.listener.detach())
        self._server = WSGIServer(listener, self._serve, log=None, error_log=None)
        self._server.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.stop(timeout=0)

    def _serve(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        try:
            response = self._answer(request)
        except (RefusedRequest, ScenarioError) as error:
            response = problem_response(refusal_of(error))
        except (RuleError, UpstreamError, GroupCallRefused, ValueError) as error:
            response = problem_response(_refusal(HTTPStatus.CONFLICT, str(error)))
        return response(environ, start)

    def _answer(self, request: Request) -> Response:
        place = f"/v1/clusters/{self._name}"
        match request.method, request.path.removeprefix(place).strip("/"):
            case "GET", "":
                return _json(self._status(request.args.get("topic")))
            case "GET", "events":
                return self._events(request)
            case "POST", "actions":
                return self._act(request)
            case "DELETE", "":
                return Response(self._ended(), mimetype=JSON, headers=_headers(_ENDED))
        detail = (
            f"a proxy has no {request.path.removeprefix(place) or 'such request'}: it has status,"
            " events, fault with a rule, and down"
        )
        raise _refusal(HTTPStatus.NOT_FOUND, detail)

    # ------------------------------------------------------------------------------- status

    def _status(self, topic: str | None) -> JsonObject:
        """The cluster behind the proxy, in the form of a cluster's status.  What its brokers do
        not tell, such as the ends of logs, is null."""
        proxy = self._proxy
        metadata = proxy.upstream.metadata()
        ports = proxy.listeners.ports()
        listed = {each.node_id: each for each in metadata.brokers}
        brokers = [
            {
                "id": key,
                "host": proxy.settings.host,
                "port": ports[key],
                "rack": listed[key].rack if key in listed else None,
                "state": "up" if key in listed else "down",
                "fenced": False,
                "kafka_version": latest().name,
            }
            for key in sorted(ports)
        ]
        return {
            "id": self._name,
            "name": self._name,
            "bootstrap": f"{proxy.settings.host}:{proxy.listeners.bootstrap_port}",
            "at_ms": self._notes.now_ms(),
            "controller_id": metadata.controller_id,
            "brokers": brokers,
            "partitions": [
                {
                    "topic": found.name,
                    "partition": each.partition_index,
                    "leader": each.leader_id if each.leader_id >= 0 else None,
                    "leader_epoch": each.leader_epoch,
                    "replicas": each.replica_nodes,
                    "isr": each.isr_nodes,
                    "elr": [],
                    "high_watermark": None,
                    "log_end_offset": None,
                    "lag": {},
                }
                for found in sorted(metadata.topics, key=lambda found: found.name or "")
                if topic in (None, found.name)
                for each in sorted(found.partitions, key=lambda each: each.partition_index)
            ],
            "cuts": [],
            "sides": [],
            "shapes": [],
            "clients": {},
            "security": None,
            "connections": len(proxy.connections),
            "requests": [
                {"broker": broker, "api": api, "count": count}
                for (broker, api), count in sorted(proxy.recorder.counts.items())
            ],
            "rules": [
                {"name": x.name, "text": effect_text(x.effect), "calls": x.calls, "hits": x.hits}
                for x in reports.status(proxy.gate.book)
            ],
        }

    # ------------------------------------------------------------------------------- events

    def _events(self, request: Request) -> Response:
        kinds = tuple(filter(None, request.args.get("kind", "").split(",")))
        after = self._notes.after(request.args.get("since", ""))
        last = request.args.get("last")
        follows = request.args.get("follow") == "true"
        is_plain = request.headers.get("Accept", "").startswith(PLAIN)

        def text_of(note: Note) -> bytes:
            if is_plain:
                return (note_line(note, self._notes.began_ms) + "\n").encode()
            values = {
                "sequence": note.note_id[1],
                "sentence": sentence_of(note.event),
                **note_values(note),
            }
            return msgspec.json.encode(values) + b"\n"

        def lines() -> Iterator[bytes]:
            past = [x for x in self._notes.notes[after:] if not kinds or x.event.kind in kinds]
            if last is not None:
                past = past[max(0, len(past) - int(last)) :]
            yield b"".join(map(text_of, past)) or b"\n"
            seen = len(self._notes.notes)
            while follows:
                self._notes.wait()
                news, seen = self._notes.notes[seen:], len(self._notes.notes)
                yield b"".join(text_of(x) for x in news if not kinds or x.event.kind in kinds)

        media_type = f"{PLAIN}; charset=utf-8" if is_plain else NDJSON
        return Response(lines(), content_type=media_type, headers=_headers(None))

    # ------------------------------------------------------------------------------ actions

    def _act(self, request: Request) -> Response:
        step = _step_of(request)
        before = len(self._notes.notes)
        self._perform(step)
        notes = self._notes.notes[before:]
        answer = {"action": 0, "text": step.verb, **_NO_WAIT}
        answer["events"] = [note_values(note) for note in notes]
        if not request.headers.get("Accept", "").startswith(NDJSON):
            return _json(answer, HTTPStatus.CREATED)
        lines: list[JsonObject] = [{"line": note_line(x, self._notes.began_ms)} for x in notes]
        lines += [{"performed": answer}, {"answer": answer}]
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        return Response(text, content_type=NDJSON, headers=_headers(None))

    def _perform(self, step: Step) -> None:
        match step.action:
            case Evict(group=group, member=member):
                self._proxy.groups.evict(group, member)
            case Rebalance(group=group):
                self._proxy.groups.rebalance(group)
            case DeleteGroup(group=group):
                self._proxy.groups.delete_group(group)
            case ResetOffsets() as wanted:
                self._proxy.groups.reset_offsets(
                    wanted.group, wanted.topic, wanted.partition, wanted.spec
                )
            case ClearRules() | Heal():
                for name in tuple(self._proxy.gate.book.entries):
                    self._proxy.gate.remove(name)
            case _:
                name = self._proxy.gate.add(rule_of(structs.replace(step, options=StepOptions())))
                undone_after_ms = step.options.undone_after_ms
                if undone_after_ms is not None:
                    gevent.spawn_later(undone_after_ms / 1000, self._remove, name)

    def _remove(self, name: str) -> None:
        if name in self._proxy.gate.book.entries:
            self._proxy.gate.remove(name)

    # ---------------------------------------------------------------------------------- end

    def _ended(self) -> Iterator[bytes]:
        """The answer, then silence until the process has ended, which closes the connection."""
        yield _ENDED
        self._stop()
        gevent.sleep(EXIT_LIMIT_S)


_ENDED: Final = b'{"run":null}'


def _step_of(request: Request) -> Step:
    """The action in a body, with `for` of the query."""
    body = request.get_data()
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        value = body.decode(errors="replace")
    step = parse_action(value) if isinstance(value, str) else _read(body)
    if step.verb not in VERBS:
        detail = f"{step.verb} is an action on a simulated cluster; a proxy has {', '.join(VERBS)}"
        raise _refusal(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    duration = request.args.get("for")
    if duration is None:
        return step
    if isinstance(step.action, GROUP_ACTIONS):
        raise _refusal(HTTPStatus.UNPROCESSABLE_ENTITY, f"{step.verb} takes no for")
    options = structs.replace(step.options, for_=moment(duration))
    return structs.replace(step, options=options)


def _read(body: bytes) -> Step:
    node, problems = from_yaml(body.decode(errors="replace"), "", "action")
    if node is None or problems:
        raise ScenarioError(problems)
    return read_action(node, "")


def _refusal(status: HTTPStatus, detail: str) -> RefusedRequest:
    return RefusedRequest(status, detail)


def _headers(body: bytes | None) -> dict[str, str]:
    found = {VERSION_HEADER: __version__, "Connection": "close"}
    if body is not None:
        found["Content-Length"] = str(len(body))
    return found


def _json(value: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    body = msgspec.json.encode(value)
    return Response(body, status, _headers(body), content_type=JSON)
