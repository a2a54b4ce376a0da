"""The door of a running cluster: rights, names, stale sockets, what its client is told and what
strangers may cost."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from kcluster.cli import directory
from kcluster.cli.directory import running_clusters
from kcluster.cli.door import ClaimedName, Door
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.web.held import HeldCluster
from tests.rig.patience import PATIENCE_S

Claim = Callable[..., ClaimedName]
WAITS = 256


@pytest.fixture
def claim(base: Path) -> Iterator[Claim]:
    claimed: list[ClaimedName] = []

    def make(name: str = "test") -> ClaimedName:
        claimed.append(ClaimedName(name))
        return claimed[-1]

    yield make
    for each in claimed:
        each.release()
        each.listener.close()


# -------------------------------------------------------------------------------------- names


def test_remote__without_a_running_cluster_is_refused(base: Path) -> None:
    with pytest.raises(CommandError, match="no cluster is running; start one: kcluster up"):
        Remote()


def test_remote__several_clusters_are_listed(claim: Claim) -> None:
    claim("one")
    claim("two")
    with pytest.raises(
        CommandError, match="several clusters are running: one, two; choose one: --name"
    ):
        Remote()
    assert Remote("two").name == "two"


def test_remote__an_unknown_name_lists_the_running_clusters(claim: Claim) -> None:
    claim("one")
    with pytest.raises(CommandError, match=r"no cluster called two is running \(running: one\)"):
        Remote("two")


def test_claim__a_name_in_use_is_refused_and_its_owner_keeps_it(claim: Claim) -> None:
    claim("one")
    with pytest.raises(CommandError, match="a cluster called one is already running"):
        claim("one")
    assert running_clusters() == ["one"]


def test_claim__a_stale_socket_is_removed_and_does_not_block_its_name(claim: Claim) -> None:
    path = directory.socket_path(directory.make_runtime_directory(), "test")
    for _ in range(2):
        with closing(socket.socket(socket.AF_UNIX)) as dead:
            dead.bind(path)
        assert running_clusters() == []
        assert not os.path.lexists(path)
    with closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(path)
    claim()
    assert running_clusters() == ["test"]


def test_claim__is_released(claim: Claim) -> None:
    claim().release()
    assert running_clusters() == []
    claim()


def test_claim__directory_and_socket_are_for_their_owner_only(claim: Claim) -> None:
    path = claim().path
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["open to others", "a link"])
def test_directory__writable_by_others_is_not_used(claim: Claim, base: Path, damage: str) -> None:
    path = base / "kcluster"
    if damage == "a link":
        (base / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(base / "elsewhere")
    else:
        path.mkdir()
        path.chmod(0o770)
    for attempt in (claim, Remote):
        with pytest.raises(CommandError, match=r"chmod 700|not a directory that you own"):
            attempt()


def test_directory__a_long_base_falls_back_to_tmp(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("d" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert directory.runtime_directory() == f"/tmp/kcluster-{os.getuid()}"


@pytest.mark.parametrize("name", ["", "../evil", "a/b", ".hidden", "x" * 41, "a b"])
def test_name__an_invalid_file_name_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="cannot name a cluster"):
        directory.check_name(name)


# --------------------------------------------------------------------------------- the client


@contextmanager
def answering(claimed: ClaimedName, answer: bytes) -> Iterator[None]:
    """Something that listens under the name and answers one request, whatever it is."""

    def serve() -> None:
        while True:
            connection, _ = claimed.listener.accept()
            with connection:
                if connection.recv(1 << 16):  # else somebody looks whether it lives
                    connection.sendall(answer)
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    thread.join(PATIENCE_S)


PROBLEM = json.dumps(
    {
        "status": 422,
        "detail": "within: 1: 1 what?; until: no condition",
        "problems": [
            {"path": "within", "text": "1: 1 what?"},
            {"path": "until", "text": "no condition"},
            {"path": "other", "text": "wrong"},
        ],
    }
).encode()


def head(status: str, length: int, *fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {length}", *fields, "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("answer", "message", "exit_code"),
    [
        (b"", "the cluster stopped before it answered", 1),
        (head("200 OK", 20) + b'{"half"', "the cluster stopped before it answered", 1),
        (
            b'{"ok": false, "error": "the request is not JSON", "exit_code": 2}\n',
            "the cluster runs another version of kcluster, which this one cannot talk to; stop it"
            " with the kcluster that started it",
            1,
        ),
        (
            head("422 Unprocessable Entity", len(PROBLEM)) + PROBLEM,
            "--within 1: 1 what?; no condition; other: wrong",
            2,
        ),
        (
            head("409 Conflict", 31, "Kcluster-Version: 9.9") + b'{"status":409,"detail":"is up"}',
            "is up (the cluster runs kcluster 9.9, this is ",
            1,
        ),
    ],
)
def test_remote__what_is_no_answer_is_one_clear_line(
    claim: Claim, answer: bytes, message: str, exit_code: int
) -> None:
    with answering(claim(), answer), pytest.raises(CommandError) as caught:
        Remote().post("wait", {}, options={"within": "--within", "until": ""})
    assert (str(caught.value).startswith(message), caught.value.exit_code) == (True, exit_code)


def test_remote__a_stream_that_breaks_off_ends_at_its_last_whole_line(claim: Claim) -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nfirst\n\nsecond\nthi"
    with answering(claim(), answer), Remote().asked("GET", "events") as stream:
        assert list(stream.lines()) == [b"first\n", b"second\n"]


# ----------------------------------------------------------------------------------- the door


@pytest.fixture
def held() -> Iterator[HeldCluster]:
    topics = {"orders": {"replication_factor": 1}}
    with Cluster(Topology.of(brokers=1, profile="fast", topics=topics)) as cluster:
        yield HeldCluster("lab", cluster, lease_s=1e9, stop=lambda: None)


@pytest.fixture
def door(claim: Claim, held: HeldCluster) -> Iterator[ClaimedName]:
    claimed = claim("lab")
    opened = Door(claimed, lambda: held)
    yield claimed
    opened.close()


def web_threads() -> int:
    return sum(thread.name == "web" for thread in threading.enumerate())


def test_door__the_server_is_loaded_by_the_first_request(door: ClaimedName) -> None:
    before = web_threads()
    assert running_clusters() == ["lab"]
    assert web_threads() == before, "a look at whether it lives is no request"
    assert Remote().get()["name"] == "kcluster"
    assert web_threads() == before + 1
    answer = Remote().post("page", {})
    assert answer == Remote().post("page", {}), "it is served once"
    assert answer["page"].startswith("http://127.0.0.1:")


def request_bytes(path: str, body: bytes, length: int | None = None) -> bytes:
    lines = (
        f"POST /v1/clusters/lab/{path} HTTP/1.0",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


@contextmanager
def asked(door: ClaimedName, request: bytes) -> Iterator[socket.socket]:
    with closing(socket.socket(socket.AF_UNIX)) as raw:
        raw.connect(door.path)
        raw.settimeout(PATIENCE_S)
        raw.sendall(request)
        yield raw


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x00\x01 nonsense\r\n\r\n", b"400"),
        (request_bytes("wait", b"{not json"), b"400"),
        (request_bytes("wait", b'{"until": "\\ud800"}'), b"400"),
        (request_bytes("wait", b"[" * 60_000), b"400"),
        (request_bytes("wait", b"{}", length=8 << 20), b"413"),
        (request_bytes("nothing", b"{}"), b"404"),
    ],
)
def test_door__a_wrong_request_is_answered_with_its_problem(
    door: ClaimedName, request_: bytes, status: bytes
) -> None:
    with asked(door, request_) as raw:
        assert raw.makefile("rb").readline().split()[1] == status
    assert Remote().get()["name"] == "kcluster"


def test_door__waits_hold_up_nobody_and_end_with_their_clients(
    door: ClaimedName, held: HeldCluster
) -> None:
    wait = request_bytes("wait", b'{"until": "isr(orders-0) = 9", "within": "60s"}')
    with ExitStack() as stack:
        for _ in range(WAITS):
            stack.enter_context(asked(door, wait))
        stack.enter_context(asked(door, wait[:-3]))  # half of one
        assert Remote().get()["name"] == "kcluster"
        assert not held.has_expired(float("inf")), "the waits use the cluster"
    until_s = time.monotonic() + PATIENCE_S
    while not held.has_expired(float("inf")):
        assert time.monotonic() < until_s, "a wait goes on without its client"
        threading.Event().wait(0.01)


def test_act__its_wait_ends_with_its_client(door: ClaimedName, held: HeldCluster) -> None:
    remote = Remote()
    with remote.asked("POST", "actions", {"wait": "isr(orders-0) = 9"}, {"pause": 1}) as answer:
        parts = (json.loads(line) for line in answer.lines())
        assert next(part["performed"] for part in parts if "performed" in part)["brokers"] == [1]
    until_s = time.monotonic() + PATIENCE_S
    while not held.has_expired(float("inf")):
        assert time.monotonic() < until_s
        threading.Event().wait(0.01)
    assert Remote().get()["brokers"][0]["state"] == "paused", "what is done stays done"
