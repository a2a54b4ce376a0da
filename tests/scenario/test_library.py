"""The files that ship with kcluster: found by name, titled, and listed in scenarios/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.profiles import find_profile
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import (
    LibraryFile,
    LibraryKind,
    library_files,
    library_name,
    library_path,
    nearest_name,
)
from kcluster.scenario.play.phases import replay_command

SCENARIOS = Path(__file__).parents[2] / "scenarios"
ALL = [each for kind in LibraryKind for each in library_files(kind)]


def test_library__it_has_every_yaml_file_of_the_repository() -> None:
    assert {each.path for each in ALL} == set(SCENARIOS.rglob("*.yaml"))
    assert len({each.name for each in ALL}) == len(ALL), "a name is enough to find a file"


@pytest.mark.parametrize("file", ALL, ids=lambda each: each.name)
def test_library__the_first_line_of_a_file_is_its_title(file: LibraryFile) -> None:
    first = file.path.read_text("utf-8").splitlines()[0]
    assert first == f"# {file.title}."
    assert 20 < len(file.title) < 90


@pytest.mark.parametrize("file", ALL, ids=lambda each: each.name)
def test_library__the_readme_lists_it(file: LibraryFile) -> None:
    row = f"| [{file.name}]({file.path.relative_to(SCENARIOS)}) | {file.title} |"
    assert row in (SCENARIOS / "README.md").read_text("utf-8").splitlines()


def test_library__a_scenario_is_found_by_its_name_with_or_without_suffix() -> None:
    path = SCENARIOS / "incidents" / "acks_one_crash.yaml"
    for name in ("acks_one_crash", "acks-one-crash", "acks_one_crash.yaml"):
        assert library_path(LibraryKind.SCENARIO, name) == path
    assert Scenario.load(path).name == "acks_one_crash"
    assert library_path(LibraryKind.SCENARIO, "../README") is None
    assert library_path(LibraryKind.SWEEP, "acks_one_crash") is None


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (LibraryKind.SCENARIO, "ack_one_crash", "acks_one_crash"),
        (LibraryKind.SCENARIO, "Rolling-Restarts.yaml", "rolling_restart"),
        (LibraryKind.PROFILE, "one_failure_at_time", "one_failure_at_a_time"),
        (LibraryKind.SWEEP, "rack", "racks"),
        (LibraryKind.SWEEP, "acks_one_crash", None),
    ],
)
def test_library__the_nearest_name_for_a_wrong_one(
    kind: LibraryKind, wrong: str, right: str | None
) -> None:
    assert nearest_name(kind, wrong) == right


def test_library__a_profile_is_found_from_anywhere_but_the_users_own_comes_first(
    tmp_path: Path,
) -> None:
    (shipped,) = (SCENARIOS / "profiles").glob("one_failure_at_a_time.yaml")
    assert find_profile("one_failure_at_a_time", str(tmp_path)) == str(shipped)
    own = tmp_path / "one_failure_at_a_time.yaml"
    own.write_text("kinds: [{kill: any broker}]\n")
    assert find_profile("one_failure_at_a_time", str(tmp_path)) == str(own)


def test_library__a_wrong_profile_is_answered_with_the_near_one() -> None:
    text = """\
topology: {brokers: 3, topics: {orders: {}}}
duration: 5s
steps:
  - {at: 1s, faults: {profile: one_failure_at_time}}
"""
    with pytest.raises(ScenarioError, match="did you mean one_failure_at_a_time, which ships"):
        Scenario.parse(text)


def test_library__a_file_of_it_is_replayed_by_its_name() -> None:
    path = library_path(LibraryKind.SCENARIO, "zombie_leader")
    assert library_name(str(path)) == "zombie_leader"
    assert replay_command(Scenario.load(str(path)), "live", 7) == (
        "kcluster scenario run zombie_leader --clock live --seed 7"
    )
    assert library_name("scenarios/incidents/zombie_leader.yaml") is None
    assert library_name("/elsewhere/zombie_leader.yaml") is None
