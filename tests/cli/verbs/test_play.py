"""`kcluster play`: a whole run on the page, until it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S

Verb = Callable[..., tuple[int, str, str]]

SCENARIO = """
topology: {brokers: 3, profile: fast, topics: {orders: {}}}
workload: {producers: {topic: orders, rate: 50/s}}
steps: [{at: 1s, kill: leader(orders-0)}]
duration: 3s
"""


def asked(page: str, path: str) -> Any:
    """What the server under a page answers."""
    address, _, token = page.partition("/page/play?token=")
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_play__the_whole_run_is_served_until_a_signal(tmp_path: Path) -> None:
    (tmp_path / "failover.yaml").write_text(SCENARIO)
    words = [sys.executable, "-m", "kcluster", "play", "failover.yaml", "--json"]
    with subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": CODE}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        try:
            assert (ready["scenario"], ready["outcome"]) == ("failover", "valid")
            with urllib.request.urlopen(ready["page"], timeout=10) as page:
                assert b"<html" in page.read()
            clock = asked(ready["page"], "/v1/clusters/play/clock")
            assert (clock["complete"], clock["paused"]) == (True, True)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_play__quiet_is_the_ready_line_alone(tmp_path: Path) -> None:
    (tmp_path / "failover.yaml").write_text(SCENARIO)
    words = [sys.executable, "-m", "kcluster", "play", "failover.yaml", "-q"]
    with subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": CODE}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready: http://")
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b""


def test_play__a_wrong_name_has_its_nearest(kcluster: Verb) -> None:
    code, _, err = kcluster("play", "zombie_leadr")
    assert (code, "zombie_leader" in err) == (2, True)
