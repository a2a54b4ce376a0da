"""The check that a test is deterministic: two runs with one seed, in two children, are compared.

Owns: the two runs, and the deliberate differences between their processes.  Never: compares traces
(world/trace.py does).  Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec
import pytest

from kcluster.testing.items import SEED_LIMIT_INI, TRACE
from kcluster.testing.seed_warnings import SeedWarning, WarningsOfSeeds, noting_warnings
from kcluster.testing.seeds import failed_with, reports_of, rows_of, run_as_child, run_in_children
from kcluster.world.seeds import SeedOutcome, SeedResult, run_seeds
from kcluster.world.trace import compare, difference_lines

RUNS: Final = (1, 2)
_SIZES_BYTES: Final = range(16 - 1, 512, 16)
"""Sizes of `bytes` objects without their overhead of 33 bytes: one for each size in which Python
allocates."""
_ALL_OF_A_SIZE_BYTES: Final = 400_000
"""The memory that the second process fills with objects of each size, and leaves as holes between
them, so that its later objects have other addresses, in another order."""


def run_twice(item: pytest.Item, nextitem: pytest.Item | None, seed: int) -> None:
    """Run an item twice; returns the reports of its first run, or the difference."""
    run_in_children(item, nextitem, lambda: (None, _run_twice(item, seed)))


def _run_twice(item: pytest.Item, seed: int) -> list[pytest.TestReport]:
    outcomes: dict[int, SeedOutcome] = {}

    def keep(outcome: SeedOutcome) -> None:
        outcomes[outcome.seed] = outcome

    limit_s = float(item.config.getini(SEED_LIMIT_INI))
    run_seeds(RUNS, _in_child(item, seed), limit_s=limit_s, on_outcome=keep)
    found: list[Any] = []
    for number in RUNS:
        outcome = outcomes.get(number)
        if outcome is None or outcome.result is None or outcome.failed:
            ended = "did not end" if outcome is None else outcome.ended or "failed"
            printed = "" if outcome is None else outcome.output.decode(errors="replace")
            return failed_with(
                item, f"run {number} with seed {seed}: the process {ended}\n{printed}"
            )
        found.append(msgspec.json.decode(outcome.result.report))
    warned = WarningsOfSeeds()
    warned.add(seed, msgspec.convert(found[0]["warnings"], list[SeedWarning]))
    warned.report(item)
    difference = compare(found[0]["trace"], found[1]["trace"])
    if difference is not None:
        return failed_with(item, "\n".join(difference_lines(difference)))
    return reports_of(item, found[0]["rows"])


def _in_child(item: pytest.Item, seed: int) -> Callable[[int], SeedResult]:
    def run(number: int) -> SeedResult:
        moved = _move_addresses() if number == RUNS[1] else []
        item.stash[TRACE] = []
        with noting_warnings() as noted:
            rows = rows_of(item, run_as_child(item, seed, f"run-{number}"))
        found = {"trace": item.stash[TRACE], "rows": rows, "warnings": noted}
        moved.clear()
        # The test's outcome is compared, too, so a failure of one run does not prevent the other.
        return SeedResult(False, msgspec.json.encode(found, enc_hook=str))

    return run


def _move_addresses() -> list[bytes]:
    """Move the addresses of later objects; returns objects to keep during the run."""
    rng = Random(1)
    objects = [
        bytes(size)
        for size in _SIZES_BYTES
        for _ in range(2 * _ALL_OF_A_SIZE_BYTES // sys.getsizeof(bytes(size)))
    ]
    rng.shuffle(objects)
    del objects[len(objects) // 2 :]
    return objects
