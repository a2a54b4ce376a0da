"""Worlds begin with a collection of garbage, which is short if little is there to look at."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.garbage import collect_silently


@pytest.fixture(autouse=True, scope="module")
def garbage_of_libraries() -> Iterator[None]:
    """What clients and the tests before have left open is collected here, silently: aiokafka leaves
    a connection's writer when its loop ends.  A worker has the heap of thousands of tests."""
    collect_silently()
    gc.freeze()
    yield
    collect_silently()
