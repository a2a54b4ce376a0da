"""Regular expressions of clients: RE2's, with RE2/J's words for what is wrong."""

from __future__ import annotations

import pytest

from kcluster.protocol.patterns import InvalidPattern, Pattern, compile_pattern


def test_pattern__the_whole_text_must_match() -> None:
    pattern = compile_pattern("ord.*")
    assert isinstance(pattern, Pattern)
    assert [pattern.matches(one) for one in ("orders", "ord", "my-orders", "")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a\\", "trailing backslash at end of expression"),
        ("*a", "missing argument to repetition operator"),
        ("a{2000}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("\\1", "invalid escape sequence"),
    ],
)
def test_pattern__what_is_wrong_is_said_as_by_kafka(expression: str, reason: str) -> None:
    assert compile_pattern(expression) == InvalidPattern(reason)


def test_pattern__takes_linear_time() -> None:
    pattern = compile_pattern("(a*)*b")
    assert isinstance(pattern, Pattern)
    assert not pattern.matches("a" * 10_000)
