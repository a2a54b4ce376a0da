"""Text as a YAML scalar, in files that are written for people.

Owns: the texts that need quotes.  Never: reads a scalar (tree.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

import json
import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z./][A-Za-z0-9._/-]*|-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_NULLS: Final = ("null", "Null", "NULL")


def scalar(text: str) -> str:
    """A YAML scalar that reads as exactly this text."""
    is_plain = _PLAIN.fullmatch(text) and text not in _NULLS
    return text if is_plain else json.dumps(text, ensure_ascii=True)
