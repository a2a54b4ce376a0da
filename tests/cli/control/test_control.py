"""The control socket: rights, names, stale sockets, the protocol from both ends."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kcluster.cli.control import directory as control
from kcluster.cli.control.client import Conversation, ask
from kcluster.cli.control.directory import running_clusters
from kcluster.cli.control.protocol import ControlError, ControlRequest
from kcluster.cli.control.server import MAX_REQUEST_BYTES, ControlAnswer, ControlServer, EventFeed
from kcluster.cli.control.session import find_handler, read_request
from kcluster.cli.verbs.events import EventsRequest
from kcluster.cli.verbs.kill import KillRequest

Make = Callable[..., ControlServer]


class EchoRequest(ControlRequest, verb="echo"):
    word: str = "x"


class RefusedRequest(ControlRequest, verb="refuse"):
    pass


class Verbs:
    """A service of functions by the verb's name."""

    def __init__(self, verbs: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> None:
        self._verbs = verbs

    def answer(self, request: Mapping[str, Any], show: Callable[[str], None]) -> ControlAnswer:
        for line in request.get("lines", ()):
            show(line)
        return ControlAnswer(self._verbs[request["verb"]](request))

    def event_values(self, event: Any) -> Any:
        return event


@pytest.fixture
def make_server(base: Path) -> Iterator[Make]:
    servers: list[ControlServer] = []

    def make(name: str = "test", feed: EventFeed | None = None, **verbs: Any) -> ControlServer:
        server = ControlServer(name, Verbs(verbs), feed or EventFeed())
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.close()


def echo(request: Mapping[str, Any]) -> Any:
    return request["word"]


def refuse(request: Mapping[str, Any]) -> Any:
    raise ControlError("there is no broker 9", 2)


def test_ask__passes_arguments_to_the_verb_and_returns_its_result(make_server: Make) -> None:
    make_server(echo=echo)
    assert ask(EchoRequest("żółw")) == "żółw"


def test_ask__a_refusal_raises_its_message_and_exit_code(make_server: Make) -> None:
    make_server(refuse=refuse)
    with pytest.raises(ControlError, match="there is no broker 9") as caught:
        ask(RefusedRequest())
    assert caught.value.exit_code == 2


def test_ask__without_a_running_cluster_is_refused(make_server: Make) -> None:
    with pytest.raises(ControlError, match="no cluster is running; start one: kcluster up"):
        ask(EchoRequest())


def test_ask__several_clusters_are_listed(make_server: Make) -> None:
    make_server("one", echo=echo)
    make_server("two", echo=echo)
    with pytest.raises(
        ControlError, match="several clusters are running: one, two; choose one: --name"
    ):
        ask(EchoRequest("x"))
    assert ask(EchoRequest("x"), "two") == "x"


def test_ask__an_unknown_name_lists_the_running_clusters(make_server: Make) -> None:
    make_server("one", echo=echo)
    with pytest.raises(ControlError, match=r"no cluster called two is running \(running: one\)"):
        ask(EchoRequest("x"), "two")


def test_server__a_name_in_use_is_refused_and_its_owner_keeps_serving(make_server: Make) -> None:
    make_server("one", echo=echo)
    with pytest.raises(ControlError, match="a cluster called one is already running"):
        make_server("one", echo=echo)
    assert ask(EchoRequest("x")) == "x"


def test_server__removes_a_stale_socket(make_server: Make) -> None:
    directory = control.make_runtime_directory()
    path = control.socket_path(directory, "dead")
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(path)
    assert running_clusters() == []
    assert not os.path.lexists(path)


def test_server__a_stale_socket_does_not_block_its_name(make_server: Make) -> None:
    path = control.socket_path(control.make_runtime_directory(), "test")
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(path)
    make_server(echo=echo)
    assert ask(EchoRequest("x")) == "x"


def test_server__closing_releases_the_name(make_server: Make) -> None:
    make_server(echo=echo).close()
    assert running_clusters() == []
    make_server(echo=echo)


def test_server__directory_and_socket_are_for_their_owner_only(make_server: Make) -> None:
    server = make_server(echo=echo)
    assert os.stat(os.path.dirname(server.path)).st_mode & 0o777 == 0o700
    assert os.stat(server.path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["open to others", "a link"])
def test_directory__writable_by_others_is_not_used(
    make_server: Make, base: Path, damage: str
) -> None:
    path = base / "kcluster"
    if damage == "a link":
        (base / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(base / "elsewhere")
    else:
        path.mkdir()
        path.chmod(0o770)
    for attempt in (lambda: make_server(echo=echo), lambda: ask(EchoRequest("x"))):
        with pytest.raises(ControlError, match=r"chmod 700|not a directory that you own"):
            attempt()


def test_directory__a_long_base_falls_back_to_tmp(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("d" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert control.runtime_directory() == f"/tmp/kcluster-{os.getuid()}"


@pytest.mark.parametrize("name", ["", "../evil", "a/b", ".hidden", "x" * 41, "a b"])
def test_name__an_invalid_file_name_is_refused(name: str) -> None:
    with pytest.raises(ControlError, match="cannot name a cluster"):
        control.check_name(name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"not json\n", "not JSON"),
        (b"[]\n", "an object with a verb"),
        (b'{"verb": 3}\n', "an object with a verb"),
        (b"\xff\xfe\n", "not JSON"),
        (b'{"verb": "echo", "x": ' + b"9" * 5_000 + b"}\n", "not JSON"),
        (b'{"verb": "\\ud800"}\n', "not text"),
        (b'{"verb": "echo", "\\udfff\\ud800": 1}\n', "not text"),
        (b"[" * 60_000 + b"\n", "nested too deeply"),
    ],
)
def test_protocol__bad_requests_are_answered_with_an_error(
    make_server: Make, line: bytes, words: str
) -> None:
    server = make_server(echo=echo)
    with closing(socket.socket(socket.AF_UNIX)) as raw:
        raw.connect(server.path)
        raw.sendall(line)
        assert words in raw.makefile("r").readline()


@pytest.mark.parametrize("verb", ["nope", "scenario", "kill.x", "../kill", "", "__init__"])
def test_find_handler__an_unknown_verb_is_refused(verb: str) -> None:
    with pytest.raises(ControlError, match="is not a verb of this cluster") as caught:
        find_handler(verb)
    assert caught.value.exit_code == 2


def test_find_handler__imports_the_verbs_module() -> None:
    assert find_handler("resume").request.VERB == "resume"


def test_request__survives_a_json_round_trip() -> None:
    sent = json.loads(KillRequest("1", how="wipe").to_json())
    assert sent == {"verb": "kill", "broker": "1", "how": "wipe", "wait": True}
    assert vars(read_request(sent, KillRequest)) == {"broker": "1", "how": "wipe", "wait": True}
    by_default = {"broker": 1, "how": "kill", "wait": True}
    assert vars(read_request({"broker": 1}, KillRequest)) == by_default


@pytest.mark.parametrize(
    ("fields", "words"),
    [({}, "kill: broker is missing"), ({"broker": [1]}, "kill: broker: Expected `int | str`")],
)
def test_request__a_wrong_one_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ControlError, match=re.escape(words)):
        read_request(fields, KillRequest)


def test_protocol__a_request_that_is_too_long_is_rejected(make_server: Make) -> None:
    server = make_server(echo=echo)
    with closing(socket.socket(socket.AF_UNIX)) as raw:
        raw.connect(server.path)
        try:
            raw.sendall(b"x" * (2 * MAX_REQUEST_BYTES))
            answer = raw.recv(1)
        except ConnectionError:
            answer = b""
        assert answer == b""
    assert ask(EchoRequest("x")) == "x"


def test_follow__streams_past_events_then_new_ones(make_server: Make) -> None:
    feed = EventFeed()
    make_server(feed=feed, events=lambda request: ["first"])
    with Conversation() as conversation:
        assert conversation.ask(EventsRequest(follow=True)) == ["first"]
        feed.publish("second")
        feed.publish("third")
        events = conversation.follow()
        assert [next(events), next(events)] == ["second", "third"]
