"""Processes of the systems under test: start, inspect, end.

Owns: every process that a session starts, free ports, readings from /proc.  Never: ends a process
that it did not start.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import kcluster

ROOT: Final = Path(__file__).parents[1]
CODE_PATH: Final = os.pathsep.join((str(Path(kcluster.__file__).parents[1]), str(ROOT)))
"""PYTHONPATH of the processes: the same build of this cluster as here, and the bench itself."""
POLL_S: Final = 0.002
END_S: Final = 20.0
"""How long a process may take to end before it is killed."""
FIRST_PORT: Final = 31_092
LAST_PORT: Final = 32_500


class BenchError(Exception):
    """A figure cannot be measured, for the reason in the message."""


def spawn(command: Sequence[str], log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start a program in its own process group, with its output in `log`."""
    with log.open("wb") as out:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": CODE_PATH, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that `spawn` started, and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_to_end(
    what: str, command: Sequence[str], log: Path, timeout_s: float, **environment: str
) -> None:
    """Run a program to its end, with its output in `log`; BenchError, which names the program by
    `what`, if it fails or takes too long."""
    process = spawn(command, log, **environment)
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{what} took over {timeout_s:g} s") from None
    finally:
        if process.poll() is None:
            end(process)
    if code:
        raise BenchError(f"{what} failed: {last_line(log)}")


def last_line(log: Path) -> str:
    """The last line of a program's output."""
    return (log.read_text(errors="replace").strip().splitlines() or ["no output"])[-1]


def end_pids(pids: Iterable[int]) -> None:
    """Wait for processes that are ending; kill those that remain."""
    until_s = time.monotonic() + END_S
    left = list(pids)
    while left and time.monotonic() < until_s:
        left = [pid for pid in left if is_running(pid)]
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def end_on_sigterm() -> None:
    """Unwind on SIGTERM as on Ctrl-C, so that child processes are ended, too."""

    def unwind(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)


def client(module: str, *arguments: str, timeout_s: float, **environment: str) -> dict[str, Any]:
    """Run `python -m bench.clients.<module>`; returns the JSON object that it printed."""
    command = [sys.executable, "-P", "-m", f"bench.clients.{module}", *arguments]
    try:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": CODE_PATH, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{module} did not end within {timeout_s:g} s") from None
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        message = (ended.stderr.strip() or "nothing").splitlines()[-1]
        raise BenchError(f"{module} ended with exit code {ended.returncode}: {message[:200]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def free_ports(
    count: int, reserved: Sequence[int] = (), is_taken: Callable[[int], bool] = lambda _: False
) -> int:
    """The first of `count` consecutive free ports, for which also the ports at the offsets of
    `reserved` are free, and which `is_taken` does not exclude."""
    for base in range(FIRST_PORT, LAST_PORT, 10):
        wanted = [base + at for at in range(count)] + [base + at for at in reserved]
        if not is_taken(base) and all(map(_is_free, wanted)):
            return base
    raise BenchError(f"no {count} free ports in a row between {FIRST_PORT} and {LAST_PORT}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def allow_many_files() -> int:
    """Raise the limit of open files for this process and its children; returns the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


# ------------------------------------------------------------------------------------ /proc


def memory_mb(pids: Iterable[int]) -> float:
    """The resident memory of processes, in MB of 1,000,000 bytes.  Raises BenchError without
    /proc."""
    return sum(_memory_kb(pid) for pid in pids) * 1024 / 1e6


def _memory_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        raise BenchError(f"no /proc/{pid}: not Linux, or the process has ended") from None
    return status_value(status, "VmRSS")


def status_value(status: str, name: str) -> int:
    """A number from the text of /proc/PID/status."""
    for line in status.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise BenchError(f"no {name} in /proc/PID/status")


def cpu_s(pids: Iterable[int]) -> float:
    """The CPU time of processes in seconds: in nanoseconds if the kernel reports them, else in
    ticks."""
    return sum(_cpu_s(pid) for pid in pids)


def _cpu_s(pid: int) -> float:
    tasks = sorted(Path(f"/proc/{pid}/task").glob("*/schedstat"))
    total_ns = 0
    for task in tasks:
        with contextlib.suppress(OSError):  # a thread that ended meanwhile
            total_ns += int(task.read_text().split()[0])
    if total_ns:
        return total_ns / 1e9
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        raise BenchError(f"no /proc/{pid}: not Linux, or the process has ended") from None
    fields = stat.rpartition(")")[2].split()
    ticks: int = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks


def machine() -> dict[str, str]:
    """A general description of the machine."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": str(os.cpu_count()),
        "memory": f"{pages * page / 2**30:.0f} GB",
        "python": sys.version.split()[0],
        "load average at the start": f"{os.getloadavg()[0]:.1f}",
    }


def command_output(command: Sequence[str], **environment: str) -> str:
    """The output of a short command; "" if it fails."""
    try:
        return subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
