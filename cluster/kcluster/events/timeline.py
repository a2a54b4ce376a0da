"""A timeline as text: moments with their time in ms since the first.

Owns: the layout of a timeline.  Never: chooses the moments (demo, tests and reports do).
Kafka: no counterpart.

Columns: `+1234 ms` since the origin; a short label; the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kcluster.events.render import one_line


class Moment(Struct, frozen=True):
    """One line of a timeline.  `at_ms`: None if it did not happen; its time is then a dash."""

    at_ms: int | None
    label: str
    text: str


def timeline_lines(moments: Iterable[Moment], origin_ms: int | None = None) -> list[str]:
    """The lines, in the given order.  Times count from `origin_ms`, by default from the first
    moment."""
    shown = list(moments)
    times = [moment.at_ms for moment in shown if moment.at_ms is not None]
    origin = origin_ms if origin_ms is not None else (times[0] if times else 0)
    label_width = max((len(moment.label) for moment in shown), default=0)
    lines = []
    for moment in shown:
        time = "       -   " if moment.at_ms is None else f"{moment.at_ms - origin:>+8d} ms"
        lines.append(one_line(f"{time}  {moment.label:<{label_width}}  {moment.text}"))
    return lines


def in_order(moments: Iterable[Moment]) -> list[Moment]:
    """The moments in order of time, stable; moments that did not happen come last."""
    shown = list(moments)
    happened = [moment for moment in shown if moment.at_ms is not None]
    happened.sort(key=lambda moment: moment.at_ms or 0)
    return happened + [moment for moment in shown if moment.at_ms is None]
