"""Many seeds of a simulation, and two runs of one to compare.

Owns: their output, their exit codes.  Never: forks (world/seeds.py), compares traces
(world/trace.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kcluster.plain_output import styled
from kcluster.world.seeds import SeedOutcome, SeedResult, run_seeds
from kcluster.world.trace import compare, difference_lines

CHECK_OPTION: Final = "--check-determinism"
_NOT_AGAIN: Final = (
    "it did not fail when it was run again: the program is not deterministic; "
    f"{CHECK_OPTION} --seed {{}} shows why"
)


def run_many(
    seeds: range, simulate: Callable[[int], int], repeat: Callable[[int], int] | None
) -> int:
    """Simulate each seed in a child of its own, until one fails; returns the exit code, as
    `simulate` does.  `repeat`: called with the seed that failed, in another child whose output is
    shown; None: show the output of the first child."""
    began_s = time.perf_counter()
    outcome = run_seeds(seeds, _in_child(simulate))
    took = f"in {time.perf_counter() - began_s:.1f} s"
    failed = outcome.first_failed
    if failed is None:
        print(f"seeds {seeds[0]} to {seeds[-1]}: none failed ({took})")
        return 0
    if repeat is not None and failed.result is not None:
        again = run_seeds([failed.seed], _in_child(repeat)).first_failed
        if again is None:
            print(f"seed {failed.seed} failed ({took}); {_NOT_AGAIN.format(failed.seed)}")
            return 1
        failed = again
    return _report(failed, f"seed {failed.seed} of {seeds[0]} to {seeds[-1]}", took)


def _in_child(simulate: Callable[[int], int]) -> Callable[[int], SeedResult]:
    def run(seed: int) -> SeedResult:
        exit_code = simulate(seed)
        return SeedResult(exit_code != 0, bytes([exit_code & 0xFF]))

    return run


def _report(failed: SeedOutcome, which: str, took: str) -> int:
    styled(sys.stdout).write(failed.output.decode(errors="backslashreplace"))
    if failed.result is None:
        print(f"{which} {failed.ended} ({took})")
        return 1
    if len(failed.result.report) == 1:
        print(f"{which} failed ({took})")
        return failed.result.report[0]
    styled(sys.stdout).write(failed.result.report.decode(errors="backslashreplace"))
    print(f"{which} crashed ({took}): this is a bug in kcluster")
    return 1


def check_determinism() -> int:
    """Run this command twice, each time in a fresh process, and compare the traces; returns the
    exit code."""
    words = [word for word in sys.orig_argv[1:] if word != CHECK_OPTION]
    traces = []
    with tempfile.TemporaryDirectory(prefix="kcluster-") as directory:
        for number in (1, 2):
            file = Path(directory, f"trace{number}")
            code = _run_traced(words, file)
            if not file.exists():
                print(f"kcluster: run {number} wrote no trace; its exit code is {code}")
                return code or 1
            traces.append(file.read_text().splitlines())
    difference = compare(*traces)
    if difference is None:
        print(f"deterministic: two runs, in fresh processes, with the same {len(traces[0])} lines")
        return 0
    print("\n".join(difference_lines(difference)))
    return 1


def _run_traced(words: list[str], file: Path) -> int:
    """Run the command with --trace, which goes before the program's own arguments."""
    at = words.index("simulate") + 1
    command = [sys.executable, *words[:at], "--trace", str(file), *words[at:]]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
