"""Ctrl-C at any moment of a start is quiet: no traceback, exit code 130.

The moments are imports: at the import of a module the process sends SIGINT to itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kcluster

CODE = str(Path(kcluster.__file__).parents[1])
INTERRUPTED_AT = """\
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            print("interrupted", flush=True)
            os.kill(os.getpid(), signal.SIGINT)

moment, *sys.argv[1:] = sys.argv[1:]
sys.meta_path.insert(0, Interrupting())
runpy.run_module("kcluster", run_name="__main__", alter_sys=True)
"""
MOMENTS = [
    ("kcluster.cli.main", "up"),
    ("kcluster.cli.foreground", "up"),
    ("gevent", "up"),
    ("kcluster.runtime.build", "up"),
    ("kcluster.cli.click_tools", "status"),
    ("click", "status"),
    ("click.parser", "--help"),
    ("kcluster.cli.verbs.status", "status"),
    ("kcluster.cli.verbs.up", "up -- x.yaml"),
    ("kcluster.cli.foreground", "up -- x.yaml"),
    ("kcluster.cli.work.demo", "demo"),
    ("gevent", "demo"),
    ("yaml", "scenario run x.yaml"),
    ("kcluster.scenario.language.scenario", "scenario check x.yaml"),
]


@pytest.mark.long
@pytest.mark.parametrize(("moment", "line"), MOMENTS)
def test_interrupt__while_the_command_loads_is_quiet(
    moment: str, line: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, moment, *line.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": CODE},
        capture_output=True,
        check=False,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "interrupted\n", "")


def test_interrupt__importing_the_command_line_changes_no_handler() -> None:
    script = (
        "import signal; own = signal.default_int_handler; signal.signal(signal.SIGINT, own)\n"
        "import kcluster.__main__, kcluster.cli.main, kcluster.cli.click_tools\n"
        "assert signal.getsignal(signal.SIGINT) is own\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=50)
