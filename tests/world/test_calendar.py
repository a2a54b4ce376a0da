"""The calendar functions of time, which take the present time if they are given none."""

from __future__ import annotations

import time

import pytest

from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


def test_every_function_that_means_now_means_the_worlds_now() -> None:
    with empty_world():
        time.sleep(90)
        shown = (
            time.asctime(),
            time.ctime(),
            time.strftime("%a %b %e %H:%M:%S %Y"),
            time.asctime(time.localtime()),
        )
        utc = time.gmtime()
    assert len(set(shown)) == 1, shown
    assert (utc.tm_year, utc.tm_yday, utc.tm_min, utc.tm_sec) == (2026, 1, 1, 30)
