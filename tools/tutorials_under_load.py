"""`python -m tools.tutorials_under_load`: the tutorials, again and again, on a busy machine.

Owns: the load, the runs, the count of those that went as their page shows.  Never: decides what a
page promises (tests/test_docs.py does).

A run is the whole session of one tutorial in a directory of its own, each command in a new process,
as a reader types it.  Beside the runs, `--busy` processes do nothing but compute, at the same
priority.  A failed run leaves its story in `--stories`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from tests.docs_pages import ROOT, documents, fenced
from tests.test_docs import Shown, missing, session, write_named_files

TUTORIALS: Final = tuple(one for one in documents() if one.startswith("docs/tutorials/"))
BUSY: Final = "while True: pass"
NICE: Final = 15
COMMAND_TIMEOUT_S: Final = 300
REPORTED: Final = 10
COMMANDS: Final = ("kcluster", "pytest")


class Run(NamedTuple):
    """One run of a tutorial.  `story`: what was typed and printed until it failed; empty if it did
    not."""

    took_s: float
    story: str


@contextmanager
def busy_machine(processes: int) -> Iterator[None]:
    """That many processes compute meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
        for process in busy:
            process.wait()


def environment_in(directory: Path) -> dict[str, str]:
    """Commands of this checkout, and nothing of other clusters."""
    (directory / "bin").mkdir()
    for name in COMMANDS:
        shim = directory / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {name} "$@"\n')
        shim.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "cluster"),
        "PYTHONUNBUFFERED": "1",
        "XDG_RUNTIME_DIR": str(directory / "run"),
    }
    (directory / "run").mkdir()
    environment.pop("KCLUSTER_NAME", None)
    return environment


def play(document: str) -> Run:
    """One run, in a new directory."""
    shown = session("".join(one.text for one in fenced(document) if one.language == "console"))
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kc", dir="/tmp") as name:
        directory = Path(name)
        environment = environment_in(directory)
        write_named_files(document, directory)
        story = _play(shown, directory, environment)
    return Run(time.monotonic() - began_s, story)


def _play(shown: Sequence[Shown], directory: Path, environment: dict[str, str]) -> str:
    background: list[subprocess.Popen[str]] = []
    story: list[str] = []
    try:
        for (command, output), following in zip(shown, [*shown[1:], None], strict=True):
            story.append(f"$ {command}")
            if command == "echo $?":
                continue
            words = shlex.split(command.removesuffix("&"))
            process = subprocess.Popen(
                words,
                cwd=directory,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert process.stdout is not None
            if command.endswith("&"):
                background.append(process)
                printed, code = [process.stdout.readline()], 0
            else:
                printed = process.communicate(timeout=COMMAND_TIMEOUT_S)[0].splitlines()
                code = process.returncode
            story += printed
            asks_for_code = following is not None and following.command == "echo $?"
            wanted = following.output[0] if following is not None and asks_for_code else "0"
            if str(code) != wanted:
                return "\n".join((*story, f"exit code {code}, not {wanted}"))
            if lacking := missing(output, printed):
                return "\n".join((*story, f"lacks: {lacking[0]}"))
    except subprocess.TimeoutExpired as error:
        return "\n".join((*story, str(error)))
    finally:
        for process in background:
            process.terminate()
            process.communicate()
    return ""


def main() -> int:
    """Play every tutorial, print a line for each; 1 if a run failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="of each tutorial")
    parser.add_argument("--busy", type=int, default=12, help="processes that compute meanwhile")
    parser.add_argument("--at-once", type=int, default=2, help="runs at the same time")
    parser.add_argument("--stories", type=Path, help="where the stories of failed runs go")
    parser.add_argument("only", nargs="*", help="parts of the tutorials' names")
    options = parser.parse_args()
    os.nice(NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = [one for one in TUTORIALS if not options.only or _is_named(one, options.only)]
    failed = 0
    pool = ThreadPoolExecutor(options.at_once)
    with busy_machine(options.busy):
        try:
            for document in chosen:
                failed += _play_often(document, pool, options)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return 1 if failed else 0


def _is_named(document: str, words: Sequence[str]) -> bool:
    return any(re.search(word, document) for word in words)


def _play_often(document: str, pool: Executor, options: argparse.Namespace) -> int:
    """The runs of one tutorial; a line for every tenth, and one for each that failed."""
    times_s: list[float] = []
    failed = 0
    for run in pool.map(play, [document] * options.runs):
        times_s.append(run.took_s)
        if run.story:
            failed += 1
            print(f"{document}: run {len(times_s)}: {run.story.splitlines()[-1]}", flush=True)
            if options.stories is not None:
                options.stories.mkdir(parents=True, exist_ok=True)
                name = f"{Path(document).stem}-{len(times_s)}.txt"
                (options.stories / name).write_text(run.story, encoding="utf-8")
        if len(times_s) % REPORTED == 0 or len(times_s) == options.runs:
            load = " ".join(f"{one:.0f}" for one in os.getloadavg())
            print(
                f"{document}: {len(times_s) - failed} of {len(times_s)} runs as shown; "
                f"median {median(times_s):.0f} s, longest {max(times_s):.0f} s, load {load}",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
