"""`kcluster up --ground kafka`, with a program in place of Java: its start, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kcluster.cli.door import ClaimedName
from tests.apache_kafka.test_reaper import ends
from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone has pidfd_open")

JAVA = f"""#!{sys.executable} -IS
import os, sys, time
words = sys.argv[1:]
if "-version" in words:
    sys.exit(print('openjdk version "21.0.1"', file=sys.stderr))
if any(word.startswith("-XX:ArchiveClassesAtExit") for word in words):
    sys.exit(0)
if "kafka.tools.StorageTool" in words:
    lines = open(words[words.index("-c" if "-c" in words else "--config") + 1]).read().splitlines()
    logs = next(line.partition("=")[2] for line in lines if line.startswith("log.dirs="))
    os.makedirs(logs)
    open(logs + "/meta.properties", "w").close()
    sys.exit(0)
with open(os.environ["STARTED"], "w") as started:
    started.write(f"{{os.getpid()}}\\n")
time.sleep(600)
"""
VERSION = "4.4.0"


@pytest.fixture
def environment(tmp_path: Path, base: Path) -> dict[str, str]:
    """A machine with this Java, and jars that nobody opens.  Nodes write their ids to a pipe."""
    java, jars = tmp_path / "java/bin/java", tmp_path / f"cache/kafka-{VERSION}"
    for folder in (java.parent, jars, tmp_path / "temporary"):
        folder.mkdir(parents=True)
    java.write_text(JAVA)
    java.chmod(0o755)
    (jars / f"kafka_2.13-{VERSION}.jar").touch()
    os.mkfifo(tmp_path / "started")
    return {
        **os.environ,
        "JAVA_HOME": str(tmp_path / "java"),
        "KCLUSTER_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": CODE,
        "STARTED": str(tmp_path / "started"),
        "TMPDIR": str(tmp_path / "temporary"),
    }


@contextmanager
def up(environment: dict[str, str], *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kcluster", "up", "--brokers", "1", "--base-port", "0"]
    with subprocess.Popen(
        [*command, "--ground", "kafka", *words], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def reaper_of(process: subprocess.Popen[str]) -> int:
    """The child that removes what a cluster leaves."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = (line for line in found.stdout.splitlines() if "reaper.py" in line)
    return int(line.split()[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_up__ended_during_the_start_leaves_nothing(
    environment: dict[str, str], number: signal.Signals
) -> None:
    started = os.open(environment["STARTED"], os.O_RDWR)  # it does not end with the first writer
    with up(environment, "--network", "no") as cluster, open(started) as lines:
        nodes = [int(lines.readline()) for _ in ("controller", "broker")]
        reaper = reaper_of(cluster)
        cluster.send_signal(number)
        cluster.wait(PATIENCE_S)
        assert all(map(ends, (reaper, *nodes)))
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


def test_up__of_a_name_that_is_taken_starts_nothing(environment: dict[str, str]) -> None:
    taken = ClaimedName("taken")
    with up(environment, "--name", "taken") as cluster:
        _, problem = cluster.communicate(timeout=PATIENCE_S)
    taken.listener.close()
    taken.release()
    assert problem.startswith("kcluster: a cluster called taken is already running")
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


@pytest.mark.parametrize("words", [("--no-proxy",), ("--network", "no")])
def test_up__options_of_a_real_kafka_without_one(base: Path, words: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "kcluster", "up", *words],
        env={**os.environ, "PYTHONPATH": CODE},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"kcluster: {words[0]} goes with --ground kafka\n"
