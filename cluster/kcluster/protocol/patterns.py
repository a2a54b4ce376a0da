"""Regular expressions that clients send: RE2's syntax, as brokers use RE2/J.

Owns: compiling an expression, and the reasons why one is invalid.  Never: knows the texts that are
matched.  Kafka: com.google.re2j.Pattern in GroupMetadataManager (topics of a consumer group) and
TransactionStateManager (ListTransactions).

RE2 takes linear time for any expression, and has neither look-around nor back references: an
expression that Python's `re` takes may be invalid here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

_AS_RE2J: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""RE2's wording of an error -> RE2/J's wording, where they differ."""


class InvalidPattern(Struct, frozen=True):
    """The refusal of an expression, in the words of RE2/J."""

    reason: str


class Pattern:
    """A valid expression."""

    __slots__ = ("_fullmatch", "expression")

    def __init__(self, expression: str, fullmatch: Callable[[str], object]) -> None:
        self.expression = expression
        self._fullmatch = fullmatch

    def matches(self, text: str) -> bool:
        """Whether the whole of `text` matches."""
        return self._fullmatch(text) is not None


def compile_pattern(expression: str) -> Pattern | InvalidPattern:
    """The expression, ready to match."""
    import re2  # few clusters need it

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(expression, options)
    except re2.error as error:
        (text,) = error.args
        reason, _, _ = text.decode("utf-8", "replace").partition(": ")
        return InvalidPattern(_AS_RE2J.get(reason, reason))
    return Pattern(expression, compiled.fullmatch)
