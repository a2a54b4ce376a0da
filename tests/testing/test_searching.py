"""`pytest --kcluster-search`, `--kcluster-keep-going`, `--kcluster-trace`, `--kcluster-steps`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import kcluster.testing.world_handle  # noqa: F401  # a world outlives the sessions in this process

pytest_plugins = ["pytester"]

BUGS = Path(__file__).parents[2] / "tools" / "program_bugs" / "programs"
PROGRAMS = ("dead_letter", "pool", "tasks")
"""Three of tools/program_bugs; `make program-bugs` searches all."""
FOUND_WITHIN = 50
SOUND_FOR = 25
LIMIT_S = 1800


@pytest.fixture(autouse=True)
def _same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka keeps broker ids in sets: other hashes are other runs."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


def search(pytester: pytest.Pytester, program: str, kind: str, runs: int) -> pytest.RunResult:
    """A search over one of the programs, "bug" or "fixed"."""
    for name in ("shop", program):
        shutil.copy(BUGS / f"{name}.py", pytester.path)
    return pytester.runpytest_subprocess(
        "-q", "-p", "no:cacheprovider", f"{program}.py", "-k", kind, "--kcluster-search", str(runs)
    )


@pytest.mark.long
@pytest.mark.timeout_s(900)
def test_search__finds_shrinks_and_repeats(pytester: pytest.Pytester) -> None:
    result = search(pytester, "tasks", "bug", 20)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "AssertionError: an order was not charged.\n" in text
    assert "Without faults, the test passes. It needs one step: kill app billing" in text
    assert re.search(r"found in run [0-9]+, shrunk from [0-9] to 1 steps in [0-9]+ runs", text)
    assert re.search(r"[0-4] of 4 other seeds show it", text)
    replay = re.search(r"replay: pytest (.* --kcluster-steps \S+)", text)
    assert replay is not None
    words = ["-q", "-p", "no:cacheprovider", *replay[1].replace("'", "").split()]
    again = pytester.runpytest_subprocess(*words)
    again.assert_outcomes(failed=1)
    pasted = re.search(r"^kafka_cluster.at_moment.*$", text, re.MULTILINE)
    assert pasted is not None
    program = (pytester.path / "tasks.py").read_text()
    begin = "    charged: set[bytes] = set()\n"
    (pytester.path / "tasks.py").write_text(program.replace(begin, f"    {pasted[0]}\n{begin}"))
    seed = words[words.index("--kcluster-seed") + 1]
    only = pytester.runpytest_subprocess("-q", "tasks.py", "-k", "bug", "--kcluster-seed", seed)
    only.assert_outcomes(failed=1)


@pytest.mark.long
@pytest.mark.timeout_s(900)
def test_search__a_sound_program_passes(pytester: pytest.Pytester) -> None:
    result = search(pytester, "tasks", "fixed", 8)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["tasks.py::*: 8 runs with faults, none failed"])


@pytest.mark.slow
@pytest.mark.timeout_s(LIMIT_S)
@pytest.mark.parametrize("program", PROGRAMS)
def test_search__finds_the_bug_of_a_program(pytester: pytest.Pytester, program: str) -> None:
    result = search(pytester, program, "bug", FOUND_WITHIN)
    result.assert_outcomes(failed=1)
    assert "Without faults, the test passes." in result.stdout.str()


@pytest.mark.slow
@pytest.mark.timeout_s(LIMIT_S)
@pytest.mark.parametrize("program", PROGRAMS)
def test_search__raises_no_alarm_without_the_bug(pytester: pytest.Pytester, program: str) -> None:
    result = search(pytester, program, "fixed", SOUND_FOR)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*: {SOUND_FOR} runs with faults, none failed"])


SEEDS = """
import socket, pytest

@pytest.mark.kafka_cluster(clock="virtual", seeds=12)
def test_it(kafka_cluster):
    number = kafka_cluster.seed
    assert number % 4, "price %d is wrong" % number
    if number > 9:
        raise ValueError("no price")
"""


KILLS = """
import time
import pytest
from kafka import KafkaProducer

@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
def test_it(kafka_cluster):
    producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap.split(","))
    for number in range(20):
        producer.send("orders", b"order %d" % number)
        time.sleep(1)
        if number == 10:
            kafka_cluster.kill("leader(orders-0)", wait=False)
    producer.close()
    kafka_cluster.calm()
    assert kafka_cluster.verdict()
"""


@pytest.mark.timeout_s(300)
def test_search__a_kill_of_the_test_may_come_too_late(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=KILLS)
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore", "--kcluster-search", "12")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)


LIVE = """
def test_it(kafka_cluster):
    assert kafka_cluster.bootstrap
"""


def test_search__says_that_a_live_test_is_run_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=LIVE)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--kcluster-search", "9s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["kcluster: no search in 1 of the tests, whose cluster is live;*"])


def test_keep_going__counts_seeds_by_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    trace = pytester.path / "trace"
    options = ("-q", "-p", "no:cacheprovider", "--kcluster-trace", str(trace))
    result = pytester.runpytest_inprocess(*options, "--kcluster-keep-going")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "seed 4, number 4 of 12, is the first that fails",
            "5 of 12 seeds fail",
            "  3 (first seed 4): AssertionError: price 4 is wrong",
            "  2 (first seed 10): ValueError: no price",
        ]
    )
    lines = trace.read_text().splitlines()
    assert lines[0] == "# test_it.py::test_it, seed 4"
    assert len(lines) > 1


def test_trace__has_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    result = pytester.runpytest_inprocess(
        "-q", "-p", "no:cacheprovider", "--kcluster-trace", "frames", "--kcluster-seed", "1"
    )
    result.assert_outcomes(passed=1)
    assert (pytester.path / "frames").read_text().startswith("# test_it.py::test_it, seed 1\n")


INTERRUPTED = """
import os, signal, time, pytest

@pytest.mark.kafka_cluster(clock="virtual", seeds=300)
def test_it(kafka_cluster):
    if kafka_cluster.seed == 5:
        os.kill(os.getppid(), signal.SIGINT)
"""


def test_seeds__ctrl_c_says_how_many_had_passed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=INTERRUPTED)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    assert re.search(r"test_it: interrupted: [0-9]+ of 300 seeds had passed", result.stdout.str())
