"""Which of several controllers a verb acts on, with a program in place of Java."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcluster import ClusterError, Topology
from kcluster.apache_kafka.installation import Installation
from kcluster.apache_kafka.processes import KafkaProcesses
from kcluster.deaths import ProcessState
from kcluster.mirror.quorum import KafkaQuorum
from kcluster.operations.states import StateVerb

JAVA = f"#!{sys.executable} -IS\nimport time\ntime.sleep(600)\n"
ACTIVE = 3001


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[KafkaQuorum]:
    """Three controllers, of which the second is active."""
    java = tmp_path / "java"
    java.write_text(JAVA)
    java.chmod(0o755)
    topology = Topology.of(brokers=1, controllers=3)
    installation = Installation("4.4.0", java, "kafka.jar")
    nodes = KafkaProcesses(installation, topology, with_network=False)
    nodes.open()
    yield KafkaQuorum(nodes, lambda: ACTIVE)
    nodes.close()


def test_quorum__the_active_controller_is_killed_first(quorum: KafkaQuorum) -> None:
    assert quorum.states() == {3000: "up", ACTIVE: "active", 3002: "up"}
    quorum.kill()
    assert quorum.states() == {3000: "up", ACTIVE: "down", 3002: "up"}
    majority = [quorum.has_majority]
    quorum.kill()
    assert quorum.states() == {3000: "down", ACTIVE: "down", 3002: "up"}
    assert [*majority, quorum.has_majority] == [True, False]
    quorum.kill()
    with pytest.raises(ClusterError, match="no controller is running"):
        quorum.kill()
    quorum.start()
    assert quorum.states() == {3000: "up", ACTIVE: "active", 3002: "up"}


def test_quorum__a_paused_controller_is_no_voter(quorum: KafkaQuorum) -> None:
    quorum.pause()
    assert quorum.states() == {3000: "up", ACTIVE: "paused", 3002: "up"}
    quorum.pause()
    assert not quorum.has_majority
    assert quorum.state_for(StateVerb.RESUME) is ProcessState.PAUSED
    quorum.resume()
    assert quorum.states() == {3000: "up", ACTIVE: "active", 3002: "up"}


def test_quorum__a_verb_meets_the_state_that_it_changes(quorum: KafkaQuorum) -> None:
    up = ProcessState.UP
    assert quorum.state_for(StateVerb.START) is up
    quorum.kill()
    assert quorum.state_for(StateVerb.START) is ProcessState.DOWN
    assert quorum.state_for(StateVerb.KILL) is up
