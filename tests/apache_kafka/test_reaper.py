"""Nothing is left when the process of a cluster ends, however that came about.  The nodes sleep."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kcluster.apache_kafka import reaper

PARENT = """
import json, subprocess, sys, time
reaper, mark, directory = sys.argv[1:]
beside = subprocess.Popen(
    [sys.executable, "-I", "-S", reaper], stdin=subprocess.PIPE, start_new_session=True
)
for thing in (["mark", mark], ["directory", directory]):
    beside.stdin.write(json.dumps(thing).encode() + b"\\n")
    beside.stdin.flush()
node = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", mark]
print(beside.pid, subprocess.Popen(node, start_new_session=True).pid, flush=True)
time.sleep(600)
"""


def ends(pid: int, limit_s: float = 30) -> bool:
    """Whether a process that is no child ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], limit_s)[0])
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone has pidfd_open")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_reaper__after_the_end_of_the_parent_nothing_is_left(
    tmp_path: Path, number: signal.Signals
) -> None:
    directory = tmp_path / "cluster"
    (directory / "node-1").mkdir(parents=True)
    mark = f"{directory}/"
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, reaper.__file__, mark, str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        beside, node = map(int, parent.stdout.readline().split())
        parent.send_signal(number)
        assert ends(beside)
        assert ends(node)
        assert not directory.exists()


def test_reaper__others_are_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "kept"
    directory.mkdir()
    words = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", f"{directory}/other"]
    with subprocess.Popen(words) as other:
        told = [["mark", f"{tmp_path}/mine/"], ["closed", ""]]
        text = "".join(f"{json.dumps(thing)}\n" for thing in told)
        program = [sys.executable, "-I", "-S", reaper.__file__]
        subprocess.run(program, input=text, text=True, check=True, timeout=30)
        assert other.poll() is None
        other.kill()
    assert directory.exists()
