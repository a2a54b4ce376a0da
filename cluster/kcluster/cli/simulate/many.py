"""Many seeds of a simulation, and two runs of one to compare.

Owns: what is printed of them, their exit codes.  Never: forks (world/seeds.py), compares traces
(world/check.py).
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

from kcluster.cli.simulate.simulation import Simulated
from kcluster.world.check import compare, difference_lines
from kcluster.world.seeds import SeedOutcome, SeedResult, run_seeds

CHECK_OPTION: Final = "--check-determinism"


def run_many(seeds: range, simulate: Callable[[int], Simulated]) -> int:
    """Simulate each seed in a child of its own, until one fails; returns the exit code."""
    began_s = time.perf_counter()

    def run(seed: int) -> SeedResult:
        simulated = simulate(seed)
        return SeedResult(bool(simulated.exit_code), bytes([simulated.exit_code & 0xFF]))

    outcome = run_seeds(seeds, run)
    took = f"in {time.perf_counter() - began_s:.1f} s"
    failed = outcome.first_failed
    if failed is None:
        print(f"seeds {seeds[0]} to {seeds[-1]}: none failed ({took})")
        return 0
    return _report(failed, len(seeds), took)


def _report(failed: SeedOutcome, count: int, took: str) -> int:
    sys.stdout.write(failed.output.decode(errors="backslashreplace"))
    if failed.result is None:
        print(f"seed {failed.seed} of {count} {failed.ended} ({took})")
        return 1
    if len(failed.result.report) == 1:
        print(f"seed {failed.seed} of {count} failed ({took})")
        return failed.result.report[0]
    sys.stdout.write(failed.result.report.decode(errors="backslashreplace"))
    print(f"seed {failed.seed} of {count} crashed ({took}): this is a bug in kcluster")
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
