"""Worlds begin with a collection of garbage, which is short if little is there to look at."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def freeze_what_other_tests_left() -> None:
    """A worker has the heap of thousands of tests."""
    gc.collect()
    gc.freeze()
