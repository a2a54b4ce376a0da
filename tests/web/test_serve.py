"""`kcluster serve` as a process: its first line, its end, and that crashed tests leave nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kcluster.operations.errors import ClusterError
from kcluster.web.server import WebServer
from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S
from tests.web.api_client import Api, serving

COMMAND = [sys.executable, "-m", "kcluster", "serve", "--port", "0", "--json"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": CODE}
CRASHING_TEST = """
import json, os, signal, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(json.dumps({**json.loads(server.stdout.readline()), "pid": server.pid}), flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


@contextmanager
def connected(api: Api, cluster: str) -> Iterator[socket.socket]:
    """A connection to a broker, which ends with the cluster."""
    host, _, port = api.ok("GET", cluster)["bootstrap"].split(",")[0].partition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        yield connection


def ready(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def api_of(line: dict[str, Any]) -> Api:
    return Api(int(line["url"].rpartition(":")[2]), line["token"])


def test_serve__stops_by_a_signal_with_its_clusters() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        api = api_of(ready(process))
        with connected(api, api.cluster()) as connection:
            process.send_signal(signal.SIGTERM)
            assert connection.recv(1) == b""
        assert process.wait(PATIENCE_S) == 0


def test_serve__a_killed_test_leaves_nothing() -> None:
    """It owned the server's standard input, which ends with it."""
    command = [sys.executable, "-c", CRASHING_TEST, *COMMAND, "--exit-with-stdin"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as crashing:
        line = ready(crashing)
        api = api_of(line)
        with connected(api, api.cluster()) as connection:
            server = os.pidfd_open(line["pid"])
            assert crashing.stdin is not None
            crashing.stdin.write(b"now\n")
            crashing.stdin.flush()
            assert crashing.wait(PATIENCE_S) == -signal.SIGKILL
            assert connection.recv(1) == b""
            assert select.select([server], [], [], PATIENCE_S)[0]
            os.close(server)


def test_serve__a_lease_that_nobody_renews_ends_the_cluster() -> None:
    with serving() as (server, api):
        cluster = api.cluster(lease="1s")
        with connected(api, cluster) as connection:
            assert connection.recv(1) == b""
        assert api.ask("GET", cluster).status == 404
        assert server.clusters.all() == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "class.example"])
def test_serve__other_machines_are_let_in_by_tls_or_on_purpose(host: str) -> None:
    """Whoever sees a plain request has its token."""
    with pytest.raises(ClusterError) as refused:
        WebServer(can_create=True, host=host)
    assert f"--host {host} lets other machines in" in str(refused.value)
    assert "--tls-cert FILE, or --plain-http" in str(refused.value)


def test_serve__plain_http_on_purpose_needs_the_token_and_says_who_has_it() -> None:
    command = [*COMMAND, "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert b"--plain-http if only this machine reaches the port" in done.stderr
    with subprocess.Popen(
        [*command, "--plain-http"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | {"KCLUSTER_TOKEN": ""},
    ) as process:
        api = api_of(ready(process))
        assert len(api.token) > 20  # drawn: an empty one would be none
        assert api.ask("GET", "/v1/clusters").status == 200
        assert Api(api.port, "").ask("GET", "/v1/clusters").status == 401
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert b"whoever sees its traffic has the token" in errors


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_serve__this_machine_needs_no_tls(host: str) -> None:
    with serving(host=host) as (server, _):
        assert server.url.startswith("http://")


def test_serve__a_port_that_is_taken() -> None:
    with serving() as (_, api):
        command = [*COMMAND[:4], "--port", str(api.port)]
        done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("kcluster: cannot listen on 127.0.0.1:")
