"""What work costs, without a clock.

Owns: the count.  Never: measures time (bench/ does).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions run, and generators go on, in `work`.  Compiled functions are not
    counted: mark the test as `pure_python`."""
    count = 0

    def count_call(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
