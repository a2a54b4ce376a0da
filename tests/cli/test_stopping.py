"""A cluster in the foreground stops when it is asked to, whatever holds it up; what follows it ends
when nobody reads any more."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S

Start = Callable[..., Any]
COMMAND = [sys.executable, "-m", "kcluster"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": CODE}
SMALL = ("--brokers", "1", "--base-port", "0")


@contextmanager
def spawn(*words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """`kcluster` in this test's runtime directory, killed if it still runs at the end."""
    environment = {**ENVIRONMENT, "XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"]}
    with subprocess.Popen([*COMMAND, *words], env=environment, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def fill(writing: int) -> None:
    """Fill a pipe."""
    os.set_blocking(writing, False)
    try:
        while os.write(writing, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writing, True)


def test_up__stops_though_nobody_reads_even_its_first_line(base: Path) -> None:
    reading, writing = os.pipe()
    fill(writing)
    with spawn("up", *SMALL, "--name", "unread", stdout=writing) as up:
        wait_for(base / "kcluster" / "unread.sock")
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 128 + signal.SIGTERM
    os.close(reading)
    os.close(writing)


def test_up__stops_though_nobody_reads_its_output(base: Path, tmp_path: Path) -> None:
    """The pipe is full, and the thread that prints is stuck in it."""
    reading, writing = os.pipe()
    with spawn(
        "up", *SMALL, "--out", str(tmp_path), stdout=writing,
        stderr=subprocess.PIPE,
    ) as up:  # fmt: skip
        with open(reading, "rb", buffering=0, closefd=False) as output:
            assert output.readline().startswith(b"ready:")
        fill(writing)
        with spawn("kill", "1", "--no-wait", stdout=subprocess.DEVNULL) as kill:
            assert kill.wait(PATIENCE_S) == 0  # an event, to be printed
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0
    os.close(reading)
    os.close(writing)
    assert (tmp_path / "latest" / "verdict.json").exists()


def test_up__a_signal_before_it_is_started_ends_it_at_once(base: Path) -> None:
    with spawn("up", "--brokers", "100", "--base-port", "0", stdout=subprocess.PIPE) as up:
        until_blocked(up.pid, signal.SIGTERM)
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) in (128 + signal.SIGTERM, 0)


def until_blocked(pid: int, number: int) -> None:
    """Until the process waits for this signal in its own way."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigBlk:") and int(line.split()[1], 16) >> (number - 1) & 1:
                return
    raise AssertionError(f"signal {number} is not blocked")


def test_up__with_its_output_closed_serves(base: Path) -> None:
    command = "exec {} -m kcluster up --brokers 1 --base-port 0 --name quiet >&-"
    with subprocess.Popen(
        command.format(sys.executable), shell=True, stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "XDG_RUNTIME_DIR": str(base)},
    ) as up:  # fmt: skip
        wait_for(base / "kcluster" / "quiet.sock")
        with spawn("status", "--name", "quiet", stdout=subprocess.PIPE) as status:
            out, _ = status.communicate(timeout=PATIENCE_S)
            assert b"up" in out
        up.send_signal(signal.SIGTERM)
        _, err = up.communicate(timeout=PATIENCE_S)
        assert (up.returncode, err) == (0, b"")


def wait_for(path: Path) -> None:
    """Wait until it exists."""
    end_s = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < end_s


def test_up__too_few_descriptors_are_explained_in_one_line(base: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with spawn(
        "up", "--brokers", "40", "--base-port", "0", preexec_fn=limit,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as up:  # fmt: skip
        _, err = up.communicate(timeout=PATIENCE_S)
    assert up.returncode == 1
    assert err.decode() == (
        "kcluster: 40 brokers need more files than the 64 that this process may open: two per"
        " broker, one per client; allow more, as by: ulimit -n 10000\n"
    )


def test_follow__ends_with_its_reader(start_up: Start) -> None:
    """`kcluster events --follow | head -1`, and nothing happens any more."""
    start_up(*SMALL)
    for words in (("events", "--follow", "--since", "1"), ("status", "--watch")):
        with spawn(*words, stdout=subprocess.PIPE) as following:
            assert following.stdout is not None
            assert following.stdout.readline()
            following.stdout.close()
            assert following.wait(PATIENCE_S) == 0


def test_serve__a_signal_ends_it_though_its_input_stays_open(base: Path) -> None:
    with spawn(
        "serve", "--port", "0", "--exit-with-stdin", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as serve:  # fmt: skip
        assert serve.stdout is not None
        assert serve.stderr is not None
        assert serve.stdout.readline().startswith(b"ready:")
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(PATIENCE_S) == 0
        assert serve.stderr.read() == b""
