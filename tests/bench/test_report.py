from __future__ import annotations

from pathlib import Path

import pytest

from bench import report, results
from bench.figures import BY_KEY, FIGURES, GROUPS, SERIES, SYSTEMS, chosen
from bench.results import Session


@pytest.fixture
def session() -> Session:
    made = Session("2026-11-21", runs=3, mb=200, machine={"cores": "2"}, versions={"kafka": "4.3"})
    for produced, acked in ((300.0, 0.2), (330.0, 0.1), (360.0, 0.3)):
        made.add("kcluster", {"produce_1k": produced, "ack_p50_ms": acked, "virtual_ms": 200.0})
        made.add("kafka", {"produce_1k": produced / 11, "ack_p50_ms": acked * 8})
    for count, cost in ((3, 2.0), (10, 2.5), (30, 3.5)):
        made.add("kcluster", {f"growth_brokers_{count}": cost})
    made.add_missing("kfake", "all", "it needs go")
    return made


def test_results__medians_and_spreads(session: Session) -> None:
    found = session.found("kcluster", "produce_1k")
    assert found is not None
    assert (found.median, found.spread) == (330.0, (300.0, 360.0))


def test_results__a_ratio_above_one_is_better_for_rates_and_for_times(session: Session) -> None:
    assert session.ratio(BY_KEY["produce_1k"], "kafka") == pytest.approx(11)
    assert session.ratio(BY_KEY["ack_p50_ms"], "kafka") == pytest.approx(8)


def test_results__no_ratio_without_both(session: Session) -> None:
    assert session.ratio(BY_KEY["consume"], "kafka") is None
    assert session.ratio(BY_KEY["produce_1k"], "kfake") is None


def test_results__survive_a_file(session: Session, tmp_path: Path) -> None:
    results.save(session, tmp_path / "results" / "latest.json")
    assert results.load(tmp_path / "results" / "latest.json") == session
    assert results.load(tmp_path / "nothing.json") is None


def test_results__a_later_session_replaces_only_what_it_measured(session: Session) -> None:
    later = Session("2026-11-22", runs=1, mb=200)
    later.add("kcluster", {"produce_1k": 400.0})
    later.add("kfake", {"produce_1k": 200.0})
    session.update(later)
    assert session.figures["kcluster"]["produce_1k"].values == [400.0]
    assert session.figures["kcluster"]["ack_p50_ms"].values == [0.2, 0.1, 0.3]


def test_report__ratios_come_first_with_their_goals(session: Session) -> None:
    text = report.render(session)
    assert "| produce 1 KB records | 11.0 × (goal 6: met) |" in text
    assert "| ack, one record at a time, p50 | 8.0 × (goal 10: not met) |" in text
    assert text.index("Compared with the peers") < text.index("Absolute figures")


def test_report__absolute_figures_show_median_and_spread(session: Session) -> None:
    text = report.render(session)
    assert "| produce 1 KB records, MB/s | 330.0 (300.0 to 360.0) | 30.0 (27.3 to 32.7) |" in text


def test_report__limits_and_growth_are_judged(session: Session) -> None:
    text = report.render(session)
    assert "| 200.0 (200.0 to 200.0) | 150: not met |" in text
    assert "| brokers | 3: 2.00, 10: 2.50, 30: 3.50 | 1.75 × (not met) |" in text


def test_report__the_secured_listener_has_tables_of_its_own(session: Session) -> None:
    for system, rate, cost in (("kcluster", 400.0, 2.0), ("kafka", 100.0, 12.5)):
        load = {"secured_consume": rate, "secured_handshakes": 2.5 * rate}
        sides = ("servers", "client")
        costs = {f"secured_consume_{side}_ms_mb": cost for side in sides}
        session.add(system, {**load, **costs})
    text = report.render(session)
    assert "| consume, MB/s | 400.0 | 100.0 | 4.0 × (goal 3: met) |" in text
    assert "per s | 1,000 (at least 1,000: met) | 250 | 4.0 × |" in text
    assert "| consume, SASL_SSL | kcluster | 400 | 2.00 | 2.00 | 0.80 | 0.80 |" in text


def test_report__missing_values_are_listed(session: Session) -> None:
    assert "- kfake, all: it needs go" in report.render(session)


def test_report__an_empty_session_makes_a_report() -> None:
    assert "No peer was available." in report.render(Session("2026-11-21", runs=1, mb=1))


def test_report__only_the_text_between_the_marks_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "benchmarks.md"
    report.write(path, "bench", "old tables")
    path.write_text(path.read_text() + "\n## Tried and dropped\n\nby hand\n")
    report.write(path, "micro", "small tables")
    report.write(path, "bench", "new tables")
    text = path.read_text()
    assert text.startswith("# Benchmarks")
    assert "old tables" not in text
    assert text.index("new tables") < text.index("by hand") < text.index("small tables")


def test_figures__names_select_groups_and_figures() -> None:
    assert chosen([]) == list(FIGURES)
    assert [figure.key for figure in chosen(["virtual", "consume"])] == ["consume", "virtual_ms"]
    with pytest.raises(ValueError, match="unknown figure or group 'speed'"):
        chosen(["speed"])


def test_figures__each_has_a_group_and_its_own_key() -> None:
    assert len(BY_KEY) == len(FIGURES)
    assert {figure.group for figure in FIGURES} == set(GROUPS)
    assert {peer for figure in FIGURES for peer in figure.goals} <= set(SYSTEMS)
    assert all(
        f"growth_{series}_{n}" in BY_KEY for series, counts in SERIES.items() for n in counts
    )
