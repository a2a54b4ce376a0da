"""Types of JSON values as Python has them.

Owns: their names.  Never: reads or writes JSON (msgspec does).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
"""An object: its values are strings, numbers, booleans, null, lists and objects."""
