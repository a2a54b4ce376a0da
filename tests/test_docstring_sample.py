"""tools/docstring_sample.py: which docstrings there are, and a draw that a seed repeats."""

from __future__ import annotations

from tools.docstring_sample import all_docstrings, docstrings_of, drawn

MODULE = '''"""A module."""

LIMIT: int = 3
"""The limit."""


class Clock:
    """A clock."""

    def now(self) -> int:
        """The time."""
        return "not a docstring"
'''


def test_docstrings__have_the_names_of_what_they_describe() -> None:
    found = [(each.line, each.name, each.text) for each in docstrings_of("clock.py", MODULE)]
    assert found == [
        (1, "", "A module."),
        (4, "LIMIT", "The limit."),
        (8, "Clock", "A clock."),
        (11, "now", "The time."),
    ]


def test_draw__equal_for_equal_seeds() -> None:
    docstrings = all_docstrings("network")
    assert len(docstrings) > 50
    draw = drawn(docstrings, 7, 20)
    assert len(draw) == 20
    assert draw == drawn(docstrings, 7, 20) != drawn(docstrings, 8, 20)
    assert draw == sorted(draw)
    assert drawn(docstrings, 7, 10_000) == docstrings
