"""Runs with many seeds, each in a forked child."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

from kcluster.world.seeds import SeedOutcome, SeedResult, run_seeds


def test_run_seeds__the_lowest_seed_that_fails_is_reported_whatever_ends_first() -> None:
    def run(seed: int) -> SeedResult:
        if seed == 3:
            time.sleep(0.05)  # seed 4 fails long before
        os.write(1, b"this is %d\n" % seed)
        return SeedResult(seed >= 3, b"report of %d" % seed)

    ended: list[SeedOutcome] = []
    outcome = run_seeds(range(1, 50), run, workers=4, on_outcome=ended.append)

    assert outcome.first_failed is not None
    assert outcome.first_failed.seed == 3
    assert outcome.first_failed.result == SeedResult(True, b"report of 3")
    assert outcome.first_failed.output == b"this is 3\n"
    assert outcome.passed == 2
    assert max(each.seed for each in ended) < 10, "no further seeds are begun"


def test_run_seeds__all_pass() -> None:
    outcome = run_seeds(range(5), lambda seed: SeedResult(False), workers=2)
    assert (outcome.first_failed, outcome.passed) == (None, 5)
    assert gc.get_freeze_count() > 0, "what this suite has frozen stays frozen"


def test_run_seeds__a_child_that_raises_dies_or_hangs_fails_with_the_reason() -> None:
    def run(seed: int) -> SeedResult:
        if seed == 1:
            raise ValueError("a bug of mine")
        if seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 3:
            os._exit(7)
        if seed == 4:
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        return SeedResult(False)

    def failed(seed: int) -> SeedOutcome:
        outcome = run_seeds([seed], run, limit_s=0.2 if seed == 4 else 60).first_failed
        assert outcome is not None
        return outcome

    raised = failed(1).result
    assert raised is not None
    assert b"a bug of mine" in raised.report
    assert failed(2).ended == "was ended by SIGKILL"
    assert failed(3).ended == "ended without a result, with exit code 7"
    hung = failed(4)
    assert hung.ended == "did nothing for 0.2 s"
    assert b"in run" in hung.output, "a child that hangs says where"


def compute_for(duration_s: float) -> None:
    until_s = time.process_time() + duration_s
    while time.process_time() < until_s:
        pass


def test_run_seeds__the_limit_is_of_cpu_time() -> None:
    """One seed gets little of a busy machine, and takes longer than the limit."""

    def run(seed: int) -> SeedResult:
        if seed == 1:
            for _ in range(8):
                compute_for(0.002)
                time.sleep(0.1)
        else:
            compute_for(60)
        return SeedResult(False)

    outcome = run_seeds([1, 2], run, limit_s=0.5)
    assert outcome.passed == 1
    assert outcome.first_failed is not None
    assert outcome.first_failed.seed == 2
    assert outcome.first_failed.ended == "did not end within 0.5 s of CPU time"
