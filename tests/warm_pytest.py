"""pytest for many small sessions, each in a child forked from a process that has imported it all:

    python -m tests.warm_pytest

Owns: this process, and what a session begins with.  Never: judges a session.

A start of pytest takes half a second, most of it imports.  A child begins as `python -m pytest`
does, with a directory, an environment, and a file for what it prints.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
IMPORTED = ("pytest", "aiokafka", "kafka", "kcluster.testing.handles", "kcluster.testing.seeds")
"""What examples import, as far as it is installed."""

LIMIT_S = 160
"""A session that takes longer is ended by SIGALRM, after the stacks of its threads."""


class WarmPytest:
    """The first session starts the process, `close` ends it."""

    @cached_property
    def _process(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "cluster"), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        if "_process" in vars(self):
            self._process.communicate(timeout=10)

    def run(
        self, arguments: list[str], directory: Path, environment: dict[str, str]
    ) -> tuple[int, str]:
        """The exit code of a session (minus the signal that ended it), and what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        printed = directory / ".printed"
        wanted = (arguments, str(directory), environment, str(printed))
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return code, printed.read_text(encoding="utf-8")


def _serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _begin(*json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _begin(
    arguments: list[str], directory: str, environment: dict[str, str], printed: str
) -> NoReturn:
    import pytest

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = directory
    sys.argv = ["pytest", *arguments]
    signal.alarm(LIMIT_S)
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.register(signal.SIGALRM, file=output, chain=True)
    code = 1
    try:
        code = int(pytest.main())
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    import gc
    from contextlib import suppress
    from importlib import import_module

    for name in IMPORTED:
        with suppress(ModuleNotFoundError):
            import_module(name)
    gc.freeze()
    _serve()
