"""One test with many seeds, in forked children; and the hash seed of the session."""

from __future__ import annotations

import re

import pytest

import kcluster.testing.world_handle  # noqa: F401  # one copy of it for all sessions in here

pytest_plugins = ["pytester"]

ARGUMENTS = ("-p", "no:cacheprovider", "-W", "default::FutureWarning")

SEEDS = """
import ctypes, os, time, warnings
import pytest

made = []

@pytest.fixture(scope="module")
def shared():
    made.append(os.getpid())
    yield made
    assert made == [os.getpid()], "no child ends it"

@pytest.fixture
def own(kafka_cluster):
    yield time.time()
    assert 1_767_225_600 <= time.time() < 1_767_300_000

@pytest.mark.kafka_cluster(clock="virtual", seeds=12)
@pytest.mark.parametrize("how", ["pass", "fail", "die", "outside"])
def test_it(shared, own, kafka_cluster, how, tmp_path):
    assert tmp_path.parent.name in (f"seed-{kafka_cluster.seed}", "base")
    print("this is", kafka_cluster.seed)
    is_later = kafka_cluster.seed >= 4
    if how == "fail" and is_later:
        kafka_cluster.kill(1)
        assert not is_later
    if how == "die" and is_later:
        os.kill(os.getpid(), 9)
    if how == "pass" and is_later:
        warnings.warn("late", FutureWarning)
    if how == "outside":
        raise SystemExit(3)
    assert shared == [os.getppid()] or os.getpid() == shared[0]

def test_beside(shared):
    assert shared == [os.getpid()]
"""


def test_seeds__the_first_that_fails_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    base = pytester.path / "base"
    result = pytester.runpytest_inprocess(*ARGUMENTS, "--basetemp", str(base))
    assert {each.name for each in base.iterdir()} >= {"seed-1", "seed-2", "seed-3", "seed-4"}
    kept = {each.name for each in (pytester.path / ".kcluster" / "runs").iterdir()}
    named = sorted(name.rsplit("-", 1)[0] for name in kept - {"latest"})
    # Of the seeds that failed beside the one that is reported, no directory is left.
    assert named == ["test_it-fail--virtual-4", "test_it-outside--virtual-1"], kept
    assert f".kcluster/runs/{named[0]}" in result.stdout.str()
    result.assert_outcomes(passed=2, failed=3)
    file = "test_it.py"
    result.stdout.fnmatch_lines(
        [
            ">*assert not is_later",
            "this is 4",
            f"*{file}:* kafka_cluster.kill(1)",
            "seed: 4",
            f"replay: pytest '{file}::test_it[[]fail]' --kcluster-seed 4",
            "seed 4, number 4 of 12, is the first that fails",
            "seed 4, number 4 of 12: the process was ended by SIGKILL",
            f"replay: pytest '{file}::test_it[[]die]' --kcluster-seed 4",
            f"{file}::test_it[[]pass] (seed 4)",
            f"  *{file}:*: FutureWarning: late",
            '    warnings.warn("late", FutureWarning)',
            f"FAILED {file}::test_it[[]fail] - seed 4, number 4 of 12: a*",
        ]
    )
    assert result.stdout.str().count("FutureWarning: late") == 1
    assert "this is 3" not in result.stdout.str()
    assert not re.search(r"seed (5|6|7)", result.stdout.str())


def test_seeds__one_is_run_again_here(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SEEDS)
    arguments = (*ARGUMENTS, "-k", "fail or pass", "-s")
    base = ("--basetemp", str(pytester.path / "base"))
    result = pytester.runpytest_inprocess(*arguments, *base, "--kcluster-seed", "4")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*this is 4"])
    assert "number" not in result.stdout.str()


def test_check_determinism__shows_the_first_difference_of_two_runs(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest, warnings
        from kafka import KafkaProducer

        class Order:
            pass

        @pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
        @pytest.mark.parametrize("by_address", [False, True])
        def test_it(kafka_cluster, by_address):
            orders = {Order(): b"%d" % number for number in range(20)}
            if not by_address:
                warnings.warn("twenty", FutureWarning)
            servers = kafka_cluster.bootstrap.split(",")
            with KafkaProducer(bootstrap_servers=servers, client_id="shop") as producer:
                for order in set(orders) if by_address else orders:
                    producer.send("orders", orders[order])
        """
    )
    result = pytester.runpytest_inprocess(*ARGUMENTS, "--kcluster-check-determinism")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "not deterministic: the traces differ from line *",
            "  1 * > Produce * shop *",
            "  2 * > Produce * shop *",
            "  the order of a set of objects *",
            "test_it.py::test_it[[]False] (seed 1)",
            "*FutureWarning: twenty",
        ]
    )


def test_hash_seed__pytest_starts_again_with_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONHASHSEED", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(
        """
        import sys
        import pytest

        @pytest.mark.kafka_cluster(clock="virtual")
        def test_it(kafka_cluster):
            assert not sys.flags.hash_randomization
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "kcluster: pytest starts again with PYTHONHASHSEED=0",
            "kcluster: PYTHONHASHSEED=0, for tests in virtual time",
        ]
    )
    result = pytester.runpytest_subprocess()  # the cache knows
    result.assert_outcomes(passed=1)
    assert "starts again" not in result.stdout.str()
