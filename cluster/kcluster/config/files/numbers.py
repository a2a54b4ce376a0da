"""Whole numbers as people and strangers write them: `17`.

Owns: which texts are one.  Never: knows a number's range, or its place in a file.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

MAX_DIGITS: Final = 1_000
"""More than any number needs, and few enough for Python to read, which refuses long ones."""


def whole_number(text: str) -> int | None:
    """The number of a text that consists of digits 0 to 9; None for any other text, and for one
    with more than MAX_DIGITS of them."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if is_number else None
