"""The same cluster on either driver: `world` is the one under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from tests.rig.cluster import LiveRig, MemoryRig, SettledRig

ORDERS = {
    "orders": {"partitions": 2, "replication_factor": 3, "assignment": [[1, 2, 3], [2, 3, 1]]}
}
KINDS: dict[str, Callable[[Topology], Any]] = {
    "live": LiveRig,
    "memory": MemoryRig,
    "virtual": SettledRig,
}


@pytest.fixture(params=KINDS)
def make_world(request: pytest.FixtureRequest) -> Iterator[Callable[[Topology], Any]]:
    made: list[Any] = []

    def make(topology: Topology) -> Any:
        made.append(KINDS[request.param](topology))
        return made[-1]

    yield make
    for world in made:
        world.finish()


@pytest.fixture
def world(make_world: Callable[[Topology], Any]) -> Any:
    return make_world(Topology.of(brokers=3, topics=ORDERS, profile="fast"))
