"""Histories of Jepsen's Kafka workload, each with the verdict that Jepsen's checker gives it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
from kcluster.judge.judgment import Judgment
from kcluster.judge.parts import judge_history
from tests.judge.jepsen_histories import CASES, JepsenCase, edn_lines

pytest.importorskip("edn_format")


def judged(path: Path, text: str) -> Judgment:
    path = path / "history.edn"
    path.write_text(text)
    return judge_history(read_history([path]))


CLOCK = count(1)


def op(end: str, kind: str, value: str, process: int = 0) -> str:
    times = f":process {process}, :time {next(CLOCK) * 1_000_000}"
    return f"{{:type :{end}, :f :{kind}, :value {value}, {times}}}"


def names(judgment: Judgment) -> list[str]:
    found = [each.anomaly.name for each in judgment.proven]
    return found + [str(cycle.name) for cycle in judgment.cycles]


SENT = op("ok", "send", "[[:send 0 [0 1]]]") + "\n" + op("ok", "send", "[[:send 0 [1 2]]]")
THIRD = op("ok", "send", "[[:send 0 [2 3]]]")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([SENT, op("ok", "poll", "[[:poll {0 [[0 1] [1 2]]}]]", 1)], []),
        ([SENT, THIRD, op("ok", "poll", "[[:poll {0 [[0 1] [2 3]]}]]", 1)], ["lost-write"]),
        ([SENT, op("ok", "poll", "[[:poll {0 [[0 1] [1 2] [2 1]]}]]", 1)], ["duplicate"]),
        (
            [SENT, op("ok", "poll", "[[:poll {0 [[0 1]]}] [:poll {0 [[1 2] [0 1]]}]]", 1)],
            ["nonmonotonic-poll"],
        ),
        (
            [
                SENT,
                op("ok", "poll", "[[:poll {0 [[0 1] [1 2]]}]]", 1),
                op("ok", "assign", "[1]", 1),
                op("ok", "poll", "[[:poll {0 [[0 1] [1 2]]}]]", 1),
            ],
            [],
        ),
        (
            [
                op("ok", "poll", "[[:poll {0 [[0 1]]}]]", 1),
                op("ok", "poll", "[[:poll {0 [[0 2]]}]]", 2),
            ],
            ["inconsistent-offsets"],
        ),
        (
            [op("fail", "txn", "[[:send 0 1]]"), op("ok", "txn", "[[:poll {0 [[0 1]]}]]", 1)],
            ["aborted-read"],
        ),
        (
            [
                op("ok", "txn", "[[:send 0 [0 1]] [:poll {1 [[0 2]]}]]"),
                op("ok", "txn", "[[:send 1 [0 2]] [:poll {0 [[0 1]]}]]", 1),
            ],
            ["G1c"],
        ),
    ],
)
def test_jepsen__verdicts(tmp_path: Path, lines: list[str], expected: list[str]) -> None:
    judgment = judged(tmp_path, "\n".join(lines))
    assert names(judgment) == expected
    assert judgment.outcome == ("invalid" if expected else "valid")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_jepsen__the_histories_of_its_own_tests(tmp_path: Path, case: JepsenCase) -> None:
    """Where the names differ, docs/reference/histories.md says why."""
    judgment = judged(tmp_path, "\n".join(edn_lines(case.lines)))
    assert sorted({*names(judgment)}) == sorted(case.ours)
    if case.ours == ["G0"]:
        assert judgment.outcome == "valid"
    else:
        assert (judgment.outcome == "invalid") == bool(case.ours)


def test_jepsen__the_page_has_each_of_its_tests() -> None:
    """The table of the page: a history, Jepsen's names, ours, and the reason for a difference."""
    page = Path("docs/reference/histories.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|") and line.count("|") == 5
    ]
    reasons = {name: (jepsen, ours, reason) for name, jepsen, ours, reason in rows}
    for case in CASES:
        jepsen, ours, reason = reasons[case.name]
        assert jepsen == (", ".join(case.jepsen) or "none"), case.name
        assert ours == (", ".join(case.ours) or "none"), case.name
        assert reason or jepsen == ours, case.name


def test_jepsen__keys_and_values_of_any_kind(tmp_path: Path) -> None:
    lines = [
        op("ok", "send", '[[:send "orders" [0 "first"]]]'),
        op("ok", "send", "[[:send :x [0 :a]]]"),
        op("ok", "poll", '[[:poll {"orders" [[0 "first"]], :x [[0 :a]]}]]', 1),
    ]
    assert judged(tmp_path, "\n".join(lines)).outcome == "valid"


def test_jepsen__the_last_phase_of_a_test_reads_to_the_end(tmp_path: Path) -> None:
    seek = ":seek-to-beginning? true"
    last = f"{{:type :ok, :f :assign, :value [0], :process 1, {seek}, :time 9000000}}"
    lines = [SENT, last, op("ok", "poll", "[[:poll {0 [[0 1]]}]]", 1)]
    assert names(judged(tmp_path, "\n".join(lines))) == ["unseen"]


def test_jepsen__a_poll_whose_end_is_unknown_is_no_skip(tmp_path: Path) -> None:
    """The records of the transaction in the middle are not in the history."""
    lines = [
        SENT,
        THIRD,
        op("ok", "poll", "[[:poll {0 [[0 1]]}]]", 1),
        op("info", "txn", "[[:poll]]", 1),
        op("ok", "poll", "[[:poll {0 [[2 3]]}]]", 1),
        op("ok", "poll", "[[:poll {0 [[0 1] [1 2] [2 3]]}]]", 2),
    ]
    assert judged(tmp_path, "\n".join(lines)).outcome == "valid"


def test_jepsen__all_forms_of_a_file(tmp_path: Path) -> None:
    """Tags, comments, operations over several lines, a vector around all, other operations."""
    text = """; store/kafka/20261123
    [#jepsen.history.Op{:type :invoke, :f :send, :value [[:send 0 1]], :process 0, :time 0}
     #jepsen.history.Op{:type :ok, :f :send,
                        :value [[:send 0 [0 1]]], :process 0, :time 5000000}
     {:type :info, :f :start-partition, :value [:isolated {"n1" #{"n2"}}], :process :nemesis}
     {:type :info, :f :debug-topic-partitions, :value {0 #object[Foo 0x1 "a ] b"]}, :process 3}
     {:type :ok, :f :crash, :value nil, :process 1, :error "it said \\"}\\" ; so"}
     {:type :info, :f :subscribe, :value [0], :process 2, :exception #error {:via [{:at [a/b]}]}}
     {:type :info, :f :send, :value [[:send 0 [nil 2]]], :process 4, :time 5000000}
     {:type :ok, :f :poll, :value [[:poll {0 [[0 1]]}]], :process 2, :time #inst "2026-11-23"}
     {:type :ok, :f :poll, :value [[:poll {}]], :process 2, :time 1}]
    """
    path = tmp_path / "history.edn"
    path.write_text(text)
    with pytest.raises(ProblemsError) as raised:
        read_history([tmp_path])
    assert str(raised.value) == f"{path}:10:1: not an operation of Jepsen's Kafka workload"
    path.write_text(text.replace('#inst "2026-11-23"', "9000000"))
    judgment = judge_history(read_history([tmp_path]))
    assert (judgment.outcome, judgment.sent, judgment.read) == ("valid", 2, 1)


def test_jepsen__its_results_are_no_history(tmp_path: Path) -> None:
    path = tmp_path / "results.edn"
    path.write_text("{:valid? false, :workload {:valid? false, :error-types #{:lost-write}}}\n")
    with pytest.raises(ProblemsError, match=r"results.edn:1:1: Jepsen's own results"):
        read_history([path])
