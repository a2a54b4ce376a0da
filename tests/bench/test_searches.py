from __future__ import annotations

from bench.searches import CASES, cpu_ms, line_of


def test_searches__a_case_is_measured_and_compared_with_its_goal() -> None:
    (case,) = [case for case in CASES if case.name == "sweep"]
    average_ms, unit_us = cpu_ms(case, runs=1)
    assert average_ms > 0
    assert unit_us > 0
    assert line_of(case, 40.0) == f"| {case.what} | 40 | 25.0 | 48: met |"
    assert line_of(case, 50.0) == f"| {case.what} | 50 | 20.0 | 48: not met |"
