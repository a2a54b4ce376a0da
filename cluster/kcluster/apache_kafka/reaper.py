"""Removes everything that a real Kafka leaves: processes, network namespaces, directories.

Owns: this program, which runs beside a cluster in a session of its own, and ends with it.  Never:
imports anything of ours, so that it starts in a few milliseconds; removes what it was not told of.
Kafka: no counterpart.

Standard input is a pipe of the cluster's process, with a line of JSON for each thing: [kind, name].
`mark`: the text that every process of the cluster has in its command line; `namespace`, `link`;
`directory`.  When the pipe ends, however that came about, all of it goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

PARENT_CHECK_S = 0.5
"""How often the parent is looked for: the pipe stays open while a fork of it lives."""
LIMIT_S = 20.0
SETTLED_S = 0.1
"""A process that was being started when its parent died is seen after this time."""


def main() -> None:
    """Read until the pipe ends; then remove."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    told: list[list[str]] = [json.loads(line) for line in lines(os.getppid())]
    marks = [name for kind, name in told if kind == "mark"]
    end_processes(marks, settled_s=0 if ["closed", ""] in told else SETTLED_S)
    for kind, name in told:
        if kind == "namespace":
            run("ip", "netns", "delete", name)
        elif kind == "link":
            run("ip", "link", "delete", name)
    for kind, name in told:
        if kind == "directory":
            shutil.rmtree(name, ignore_errors=True)


def lines(parent: int) -> Iterator[bytes]:
    """The lines of standard input, until it ends or the parent is gone."""
    rest = b""
    while True:
        ready, _, _ = select.select([0], [], [], PARENT_CHECK_S)
        data = os.read(0, 65_536) if ready else b""
        if not data and (ready or os.getppid() != parent):
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from whole


def end_processes(marks: list[str], settled_s: float) -> None:
    """Kill every process with one of the marks, until there has been none for a while."""
    until_s = time.monotonic() + LIMIT_S
    quiet_since_s: float | None = None
    while time.monotonic() < until_s:
        found = [pid for pid, words in processes() if any(mark in words for mark in marks)]
        for pid in found:
            with contextlib.suppress(OSError):  # gone meanwhile
                os.kill(pid, signal.SIGKILL)
        now_s = time.monotonic()
        if found:
            quiet_since_s = None
        elif now_s - (quiet_since_s or now_s) >= settled_s:
            return
        else:
            quiet_since_s = quiet_since_s or now_s
        time.sleep(0.01)


def processes() -> Iterator[tuple[int, str]]:
    """Every other process, with its command line."""
    if os.path.isdir("/proc/self"):
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                    yield int(name), file.read().decode(errors="replace")
        return
    listed = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        pid, _, words = line.strip().partition(" ")
        if pid.isdigit() and int(pid) != os.getpid():
            yield int(pid), words


def run(*words: str) -> None:
    """Run a command; it may fail, since the thing may be gone already."""
    subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
