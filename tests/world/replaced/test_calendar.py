"""The calendar functions of time, which take the present time if they are given none."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python


class Stamp(datetime.datetime):
    """A subclass, as libraries for dates have."""


@dataclasses.dataclass
class Order:
    at: datetime.datetime = dataclasses.field(default_factory=datetime.datetime.now)


def stamped(clock: Callable[[], datetime.date] = Stamp.utcnow) -> datetime.date:
    return clock()


NOW = datetime.datetime.now
TODAY = {"today": datetime.date.today}
IN_UTC = functools.partial(datetime.datetime.now, datetime.UTC)
"""Methods of a class that are taken once, before any world."""


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


def test_methods_that_were_taken_before_mean_the_worlds_now() -> None:
    with empty_world():
        shown = [NOW(), IN_UTC(), Order().at, stamped(), TODAY["today"]()]
        assert isinstance(stamped(), Stamp)
    assert [(day.year, day.month, day.day) for day in shown] == [(2026, 1, 1)] * len(shown), shown
    real = datetime.datetime.fromtimestamp(time.time()).year
    assert [NOW().year, IN_UTC().year, Order().at.year, TODAY["today"]().year] == [real] * 4
    now: Any = NOW  # mypy takes it for a plain function
    assert now.__self__ is datetime.datetime
