"""`kcluster fork`: both futures, side by side, of the running cluster and of a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcluster.cli.table import side_by_side
from kcluster.cli.verbs.fork import shown

Verb = Callable[..., tuple[int, str, str]]

SCENARIO = """
topology: {brokers: 3, profile: fast, topics: {orders: {config: {min.insync.replicas: 1}}}}
workload: {producers: {topic: orders, rate: 50/s, acks: 1}}
steps: [{at: 1s, slow: {nodes: followers(orders-0), latency: 20ms}}]
duration: 3s
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    file = tmp_path / "acks.yaml"
    file.write_text(SCENARIO)
    return str(file)


def test_fork__of_a_scenario_shows_both_verdicts(scenario: str, kcluster: Verb) -> None:
    words = ("--play", scenario, "--at", "1500ms", "--for", "500ms", "kill: leader(orders-0)")
    code, out, _ = kcluster("fork", *words, "--json")
    answer = json.loads(out)
    outcomes = [answer[future]["verdict"]["outcome"] for future in ("here", "there")]
    assert (code, outcomes, answer["assumptions"]) == (0, ["valid", "invalid"], [])
    assert answer["difference"].startswith("With acks=1, 1 acknowledged record is lost")
    assert shown(answer, 160)[0] == answer["difference"]
    left, right = (" ".join(part.split()) for part in shown(answer, 160)[2].split("|"))
    assert (left, right) == ("with nothing more done:", "with kill: leader(orders-0):")
    assert shown(answer, 80)[2] == left, "a narrow terminal shows one after the other"
    code, out, _ = kcluster("fork", *words, "--quiet")
    _, here, there = out.splitlines()
    assert here.startswith("with nothing more done: valid: ")
    assert there.startswith("with kill: leader(orders-0): invalid: ")


def test_fork__wrong_words(scenario: str, kcluster: Verb) -> None:
    for words, problem in (
        (("--at", "9s", "heal"), "9000 ms is not a moment of this run, in which clients run"),
        (("--at", "soon", "heal"), "--at soon: "),
        (("kil: 1",), "did you mean kill?"),
    ):
        code, _, err = kcluster("fork", "--play", scenario, *words)
        assert code in (1, 2)
        assert problem in err


def test_fork__of_the_running_cluster(start_up: Any, kcluster: Verb) -> None:
    start_up("--profile", "fast", "--quiet")
    assert kcluster("topic", "create", "orders")[0] == 0
    kcluster("client", "start", "producer", "orders", "--rate", "100/s")
    assert kcluster("wait", "high_watermark(orders-0) >= 10")[0] == 0
    code, out, _ = kcluster("fork", "--for", "1s", "kill: leader(orders-0)", "--json")
    answer = json.loads(out)
    assert (code, answer["here"]["verdict"]["outcome"]) == (0, "valid")
    assert answer["there"]["verdict"]["outcome"] == "valid"
    assert answer["there"]["problems"] == []


def test_side_by_side__long_lines_continue_below() -> None:
    assert side_by_side(["one", "  two words"], ["three"], 21) == [
        "one       | three",
        "  two     |",
        "    words |",
    ]
