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


def test_serve__a_port_that_is_taken() -> None:
    with serving() as (_, api):
        command = [*COMMAND[:4], "--port", str(api.port)]
        done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("kcluster: cannot listen on 127.0.0.1:")
