"""Each client has a luck of its own, by its name: what others do does not change it."""

from __future__ import annotations

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario


def played(*producers: str, seed: int = 1) -> RunResult:
    each = ", ".join(
        f"{{topic: orders, name: {name}, rate: 100/s, config: {{batch.size: 60}}}}"
        for name in producers
    )
    text = f"""\
topology: {{brokers: 1, profile: fast, topics: {{orders: {{partitions: 8}}}}}}
workload: {{producers: [{each}]}}
duration: 2s
"""
    return run_scenario(Scenario.parse(text), "virtual", seed)


def partitions_of(result: RunResult, producer: str) -> list[int]:
    """The partition of each of its records: drawn anew after each batch."""
    return [sent.partition[1] for sent in result.ledger.sends if sent.producer == producer]


def test_luck__a_client_less_does_not_change_the_others() -> None:
    both, alone = played("desk", "shop"), played("shop")
    assert len(partitions_of(alone, "shop")) > 100
    assert partitions_of(both, "shop") == partitions_of(alone, "shop")


def test_luck__differs_by_name_and_by_seed() -> None:
    both, other = played("desk", "shop"), played("shop", seed=2)
    assert partitions_of(both, "shop") != partitions_of(both, "desk")
    assert partitions_of(both, "shop") != partitions_of(other, "shop")
