"""A separate runtime directory for each test, and clusters started from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kcluster import __file__ as kcluster_file
from tests.rig.patience import PATIENCE_S

CODE = str(Path(kcluster_file).parents[1])
"""The build under test: the source, or the modules compiled from it."""


class Up:
    """A `kcluster up` in its own process; `ready` is its first line."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kcluster", "up", *arguments],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": CODE, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()

    @property
    def bootstrap(self) -> str:
        if self.ready.startswith("{"):
            return str(json.loads(self.ready)["bootstrap"])
        return self.ready.split()[1]

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, the rest of stdout, stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """XDG_RUNTIME_DIR of this test; short, as a unix socket's path must be."""
    with tempfile.TemporaryDirectory(prefix="kc", dir="/tmp") as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        monkeypatch.delenv("KCLUSTER_NAME", raising=False)
        yield Path(directory)


@pytest.fixture
def start_up(base: Path, tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """`start_up("--brokers", "3")` starts a cluster; what still runs at the end is killed."""
    started: list[Up] = []

    def start(*arguments: str) -> Up:
        up = Up(tmp_path, *arguments)
        started.append(up)
        return up

    yield start
    for up in started:
        if up.process.poll() is None:
            up.process.kill()
        up.process.communicate()


@pytest.fixture
def kcluster(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`kcluster("kill", "1")` runs a verb in this process; returns exit code, stdout, stderr."""
    from kcluster.cli.main import main

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        code: Any = ended.value.code
        return int(code or 0), out, err

    return run
