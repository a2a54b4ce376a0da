from __future__ import annotations

from kcluster.events.timeline import Moment, in_order, timeline_lines


def test_timeline__times_count_from_the_first_moment_and_labels_line_up() -> None:
    lines = timeline_lines([Moment(1_000, "killed", "broker 1"), Moment(1_093, "elected", "2")])
    assert lines == ["      +0 ms  killed   broker 1", "     +93 ms  elected  2"]


def test_timeline__a_missing_event_has_no_time() -> None:
    lines = timeline_lines([Moment(5, "killed", "x"), Moment(None, "refused", "not seen")])
    assert lines[1] == "       -     refused  not seen"


def test_in_order__equal_times_keep_their_order_and_missing_ones_come_last() -> None:
    a, b, c, d = (Moment(2, "a", ""), Moment(None, "b", ""), Moment(1, "c", ""), Moment(2, "d", ""))
    assert in_order([a, b, c, d]) == [c, a, d, b]
