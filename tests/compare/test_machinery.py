"""The comparison itself: repeating, and finding differences."""

from __future__ import annotations

import pytest

from compare.checking import repeated
from compare.differences import differences


def test_differences__are_reported_once_with_versions_and_unexplained_at_first() -> None:
    kafka = {"answer": {"topics": [{"error_code": "A"}, {"error_code": "A"}], "same": 1}}
    ours = {"answer": {"topics": [{"error_code": "B"}, {"error_code": "B"}], "same": 1}}
    pairs = {3: (kafka, ours), 4: (kafka, ours), 6: (ours, ours)}
    found = differences("4.4.0", "family: case", pairs)
    assert [str(one) for one in found] == [
        'family: case v3-4: answer.topics#0.error_code: Kafka 4.4.0 "A", ours "B"'
    ]
    assert found[0].reason is None


def test_differences__lists_of_different_length_are_compared_by_name() -> None:
    pair = ([{"name": "a", "x": 1}, {"name": "b"}], [{"name": "a", "x": 2}])
    found = differences("4.4.0", "family: case", {0: pair})
    assert [(one.path, one.ours is not None) for one in found] == [("a.x", True), ("b", True)]


@pytest.mark.parametrize(
    ("answers", "asked", "recorded"),
    [
        (["a"], 1, "a"),
        (["b", "a"], 2, "a"),
        (["b", "b"], 2, "b"),
        (["b", "c", "b"], 3, "b"),
        (["b", "c", "d"], 3, "d"),
    ],
)
def test_recording__an_answer_that_differs_from_the_known_one_must_come_twice(
    answers: list[str], asked: int, recorded: str
) -> None:
    left = iter(answers)
    assert repeated(lambda: next(left), "a") == recorded
    assert len(answers) - len(list(left)) == asked
