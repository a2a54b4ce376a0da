"""With Kafka's own times, links that are slow in proportion break no promise."""

from __future__ import annotations

from pathlib import Path

from compare.certified.__main__ import INCIDENTS
from compare.certified.played import Ground, play
from kcluster.scenario.language.scenario import Scenario


def test_links_of_500_ms__a_transaction_may_take_as_many_messages_longer(tmp_path: Path) -> None:
    scenario = Scenario.load(INCIDENTS / "markers_of_the_next_epoch.yaml")
    record = play(scenario, Ground.SIMULATED, "kafka", 1, tmp_path)
    assert record.failures == ()
