"""Numbers that people and strangers write, of any length."""

from __future__ import annotations

import pytest

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.numbers import MAX_DIGITS, whole_number
from kcluster.evidence.client_names import keeps_a_ledger
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario

LONG = "9" * 5_000
"""More digits than Python reads."""
BEGINNING = """\
topology: {brokers: 1, topics: {orders: {partitions: 1}}}
duration: 2s
"""


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("017", 17), ("9" * MAX_DIGITS, 10**MAX_DIGITS - 1), ("9" * (MAX_DIGITS + 1), None),
     ("", None), ("-1", None), ("1.0", None), (" 1", None), ("٣", None), ("²", None)],
    ids=lambda value: str(value)[:9],
)  # fmt: skip
def test_whole_number__is_of_few_enough_digits(text: str, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", [f"{LONG}ms", f"{'9' * 400}s"], ids=["5000", "400"])
def test_duration__of_any_length_is_too_long(text: str) -> None:
    with pytest.raises(ValueError, match="more than a year"):
        milliseconds(text)


@pytest.mark.parametrize(
    "step",
    [
        f"{{at: 1s, kill: {LONG}}}",
        f"{{at: {LONG}s, kill: 1}}",
        f"{{when: 'isr(orders-0) < {LONG}', kill: 1}}",
        f"{{at: 1s, add_broker: {{id: {LONG}}}}}",
        f"{{at: 1s, reset_offsets: {{group: g, topic: orders, to: {LONG}}}}}",
        f"{{at: 1s, rule: {{api: Produce, version: {LONG}, drop: reply}}}}",
        f"{{at: 1s, node_rule: {{from: {LONG}, drop: reply}}}}",
    ],
    ids=["kill", "at", "when", "add_broker", "reset_offsets", "rule", "node_rule"],
)
def test_scenario__a_number_of_any_length_has_a_place(step: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        Scenario.parse(f"{BEGINNING}steps:\n  - {step}\n")
    for problem in refused.value.problems:
        assert problem.line == 4
        assert len(problem.text) < 500
        assert "str_digits" not in problem.text


@pytest.mark.parametrize("number", [LONG, "²", "٣", ""], ids=["long", "square", "arabic", "none"])
def test_client_id__of_a_stranger_is_not_ours(number: str) -> None:
    assert not keeps_a_ledger(f"client-{number}")
