"""`write_back` of a topology: which records the disk of a broker has when the power fails."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.events.brokers import RecordsLost
from kcluster.handle.cluster import Cluster
from kcluster.scenario.recorded import topology_values
from kcluster.testing.handles import VirtualCluster


def lost(**keys: str) -> int:
    """Records lost by a power failure after 44 s with ten records per second."""
    topology = Topology.of(brokers=1, topics={"orders": {}}, **keys)
    cluster = VirtualCluster(topology, 1, "test")
    cluster.producer("orders", rate="10/s")
    cluster.run_for(44_000)
    cluster.kill(1, "power")
    return sum(note.event.records for note in cluster.notes if isinstance(note.event, RecordsLost))


def test_write_back__a_power_failure_loses_what_is_younger() -> None:
    everything = lost()
    assert everything > 400
    # Linux looks every 5 s, and writes a file whose oldest unwritten record is 30 s old.
    assert 90 < lost(write_back="30s") < 160
    assert lost(write_back="200ms") <= 2


@pytest.mark.parametrize("config", [{}, {"flush.ms": "100"}])
def test_write_back__configs_of_clients_do_not_show_it(config: dict[str, str]) -> None:
    topics = {"orders": {"config": config}}
    with Cluster(Topology.of(brokers=1, topics=topics, write_back="30s")) as cluster:
        assert cluster.topology.topics["orders"].config == config
        assert [disk.write_back_ms for disk in cluster.plan.disks.values()] == [30_000]
        cluster.call(lambda: cluster.verbs.add_broker(2))
        assert cluster.plan.disks[2].write_back_ms == 30_000


def test_write_back__a_recorded_topology_has_it() -> None:
    assert topology_values(Topology.of(brokers=1, write_back="1500ms"))["write_back"] == "1500ms"
    assert "write_back" not in topology_values(Topology.of(brokers=1))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (30, r"write_back: 30 what\? Write 30ms, 30s or 30m"),
        ("0", "write_back: 0 is below 1ms"),
        ("soon", "write_back: soon is not a time like 250ms, 5s or 2m"),
    ],
)
def test_write_back__a_wrong_time_is_a_problem(value: object, problem: str) -> None:
    with pytest.raises(TopologyError, match=problem):
        Topology.of(brokers=1, write_back=value)
