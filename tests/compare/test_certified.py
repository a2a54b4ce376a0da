"""The table of certified incidents, the files that carry its results, and random schedules."""

from __future__ import annotations

from msgspec.structs import replace

from compare.certified.__main__ import (
    INCIDENTS,
    PAGE,
    RANDOM_RECORDS,
    RECORDS,
    incidents,
    read_records,
)
from compare.certified.played import INCIDENT_TIMES, RANDOM_TIMES, Ground, Record
from compare.certified.reasons import DIFFERENCES, RANDOM_DIFFERENCES
from compare.certified.schedules import schedule, schedule_text
from compare.certified.table import (
    Row,
    anomalies,
    anomalies_of_ours,
    certified_of,
    has_difference,
    key_lines,
    outcome_text,
    page,
    rows_of,
    settings_of,
    with_key,
)
from compare.certified.windows import Windows
from kcluster.scenario.language.certified import Certified
from kcluster.scenario.language.scenario import Scenario

OURS = Record("story", Ground.SIMULATED, "0.1.0", "tenth", 1, "2026-11-24", 1.0, "valid")
KAFKA = Record(
    scenario="story",
    ground=Ground.KAFKA,
    version="4.4.0",
    times="tenth",
    seed=1,
    date="2026-11-24",
    load=1.0,
    outcome="valid",
    windows=Windows(detection_ms=880, writes_ms=1_200),
)


def row(ours: Record, *kafka: Record) -> Row:
    (found,) = rows_of([ours, *kafka], "tenth")
    return found


def all_rows() -> dict[str, Row]:
    records = read_records(RECORDS)
    return {found.name: found for found in rows_of(records, INCIDENT_TIMES)}


# ------------------------------------------------------------------------------ what is shipped


def test_page__is_made_from_the_records() -> None:
    made = page(read_records(RECORDS), read_records(RANDOM_RECORDS), incidents())
    assert PAGE.read_text(encoding="utf-8") == made, "out of date: make certify ARGS=--page"


def test_files__each_incident_has_what_the_records_show() -> None:
    rows = all_rows()
    for name, scenario in incidents().items():
        assert scenario.certified == (certified_of(rows[name]) if name in rows else None), name
        text = (INCIDENTS / f"{name}.yaml").read_text(encoding="utf-8")
        assert with_key(text, scenario.certified) == text, name


def test_reasons__each_difference_has_one_and_no_other_is_left() -> None:
    differing = {found.name for found in all_rows().values() if has_difference(found)}
    assert differing == set(DIFFERENCES)
    drawn = rows_of(read_records(RANDOM_RECORDS), RANDOM_TIMES)
    known = anomalies_of_ours(drawn)
    unknown = {settings_of(x) for x in drawn if anomalies(x.kafka) - known[settings_of(x)]}
    assert unknown == set(RANDOM_DIFFERENCES)


# --------------------------------------------------------------------------- what counts as equal


def test_row__equal_if_every_run_was_as_the_file_says() -> None:
    assert row(OURS, KAFKA).is_equal
    failed = replace(KAFKA, seed=2, failures=("the verdict is invalid, not valid",))
    assert not row(OURS, KAFKA, failed).is_equal
    assert not row(OURS, replace(KAFKA, crash="no end")).is_equal


def test_row__windows_are_compared_by_factor_and_the_start_of_a_jvm() -> None:
    ours = replace(OURS, windows=Windows(detection_ms=900, writes_ms=900))
    assert not has_difference(row(ours, KAFKA))
    slow = replace(KAFKA, windows=Windows(detection_ms=880, writes_ms=9_801))
    assert has_difference(row(ours, slow))
    assert row(ours, KAFKA).ratio("writes_ms") == 1_200 / 900


def test_row__windows_are_medians_and_a_run_without_one_does_not_count() -> None:
    others = [
        replace(KAFKA, seed=seed, windows=Windows(detection_ms=ms))
        for seed, ms in ((2, 1_000), (3, None))
    ]
    found = row(OURS, KAFKA, *others)
    assert found.kafka.window_ms("detection_ms") == 940
    assert found.kafka.window_ms("election_ms") is None


def test_rows__a_scenario_needs_both_grounds_in_the_same_times() -> None:
    assert rows_of([OURS, replace(KAFKA, times="kafka")], "tenth") == []


def test_outcome__has_the_names_of_the_anomalies() -> None:
    lossy = replace(KAFKA, outcome="invalid", anomalies={"lost-write": 7, "duplicate": 1})
    assert outcome_text(lossy) == "invalid: lost-write, duplicate"


# ------------------------------------------------------------------------- the key of the files

TEXT = "topology: {brokers: 1}\nchecks: {verdict: valid}\n"


def test_key__is_read_as_it_was_written() -> None:
    certified = certified_of(row(OURS, KAFKA))
    assert Scenario.parse(with_key(TEXT, certified)).certified == certified


def test_key__replaces_an_older_one_and_goes_when_kafka_differs() -> None:
    older = Certified(kafka="4.3.1", date="2026-01-01", runs=3, outcome="valid")
    newer = replace(older, kafka="4.4.0", anomalies=("lost-write",), outcome="invalid")
    text = with_key(with_key(TEXT, older), newer)
    assert text == TEXT + key_lines(newer)
    assert with_key(text, None) == TEXT
    assert certified_of(row(OURS, replace(KAFKA, failures=("sent: 3",)))) is None


# ------------------------------------------------------------------------------ random schedules


def test_schedule__equal_for_equal_seeds_and_a_sound_file() -> None:
    assert schedule_text(7) == schedule_text(7) != schedule_text(8)
    kinds = {step.verb for seed in range(1, 30) for step in schedule(seed).steps}
    assert kinds == {"kill", "pause", "restart", "isolate", "move"}
