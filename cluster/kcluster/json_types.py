"""Python's types of JSON values.

Owns: their names.  Never: reads or writes JSON (msgspec does).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
"""A JSON object: its values are strings, numbers, booleans, null, lists and objects."""
