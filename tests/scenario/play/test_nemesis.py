"""Bounds of random faults: a kind of fault is left out at moments at which its condition fails."""

from __future__ import annotations

import pytest

from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.writing import text_of_scenario
from kcluster.scenario.play.nemesis import Profile
from kcluster.scenario.play.running import run_scenario
from kcluster.search.schedule import draw, scenario_of, space_of

DISKS_ARE_LOST = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config: {broker.session.timeout.ms: 1000, broker.heartbeat.interval.ms: 200}
workload:
  producers: {topic: orders, rate: 20/s, in_flight: 1, config: {request.timeout.ms: 3000}}
duration: 6s
steps:
  - at: 500ms
    faults:
      profile:
        every: 50ms..500ms
        repair: 100ms..1s
        at_once: 3
        waits_for_sync: false
        kinds:
          - {kill: {brokers: any broker, how: wipe}}
"""
NO_FAULTS = Profile(kinds=())
BOUNDED = DISKS_ARE_LOST.replace("{kill:", "{only_if: fewest_copies > 2, kill:")


def test_nemesis__one_disk_at_a_time_and_never_the_last_copy() -> None:
    assert not run_scenario(Scenario.parse(DISKS_ARE_LOST), "virtual", 1).verdict
    kept = run_scenario(Scenario.parse(BOUNDED), "virtual", 1)
    assert not kept.failures
    deaths = [note.event.how for note in kept.notes if isinstance(note.event, BrokerDown)]
    assert deaths.count(DeathKind.WIPE) > 1


def test_nemesis__a_search_keeps_the_bound_in_every_schedule() -> None:
    space = space_of(Scenario.parse(BOUNDED), NO_FAULTS)
    drawn = scenario_of(space, draw(space, 1))
    assert {str(step.options.only_if) for step in drawn.steps} == {"fewest_copies > 2"}
    text = text_of_scenario(Scenario.parse(BOUNDED))
    assert text_of_scenario(Scenario.parse(text)) == text


def test_nemesis__a_mistake_in_a_bound_is_named_with_its_place() -> None:
    wrong = BOUNDED.replace("fewest_copies", "fewest_copys")
    with pytest.raises(ValueError, match=r"s\.yaml:17.*did you mean fewest_copies"):
        Scenario.parse(wrong, "s.yaml")
