"""Copiers in other languages, exactly once while leaders and both coordinators are killed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kcluster import Cluster, Topology
from kcluster.checks.manners_words import manner_lines
from tests.compat.programs.processes import (
    Program,
    break_along,
    check_exactly_once,
    fill,
    wait_committed,
)
from tests.rig.patience import PATIENCE_S

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout_s(400),
    pytest.mark.xdist_group("kafka programs"),
]

HERE = Path(__file__).parent
BUILT = HERE.parents[2] / "build" / "programs"
FRANZ_GO = BUILT / "franz-go-copier"
NODE_MODULES = BUILT / "node_modules"
PARTITIONS, COUNT = 2, 1200
SESSION_MS = 1000


def command(program: str) -> tuple[Sequence[str | Path], Sequence[str]]:
    """The command of a copier and its last arguments; skips if it is not there."""
    name, _, protocol = program.partition(" ")
    if name == "franz-go":
        if not FRANZ_GO.exists():
            pytest.skip("franz-go's copier is not built (make programs builds it, with Go)")
        return (FRANZ_GO,), (str(SESSION_MS), protocol)
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "kafkajs").exists():
        pytest.skip("no Node, or no kafkajs in build (make programs fetches it, with npm)")
    return (node, BUILT / "copier.js"), (str(SESSION_MS),)


@pytest.mark.parametrize("program", ["franz-go classic", "franz-go consumer", "kafkajs"])
def test_copier__copies_exactly_once_while_leaders_and_coordinators_die(
    program: str, tmp_path: Path
) -> None:
    words, more = command(program)
    shape = {"partitions": PARTITIONS, "replication_factor": 3}
    topology = Topology.of(brokers=3, profile="fast", topics={"source": shape, "sink": shape})
    with Cluster(topology) as cluster:
        fill(cluster.bootstrap, "source", COUNT, PARTITIONS)
        arguments = (cluster.bootstrap, "source", "sink", "copiers", "copier", *more)
        with Program([*words, *arguments], tmp_path) as copier:
            kills = [
                (1, "leader(sink-0)"),
                (COUNT // 4, "coordinator(copiers)"),
                (COUNT // 2, "txn copier"),
            ]
            break_along(cluster, [copier], "sink", PARTITIONS, kills)
            wait_committed(cluster, "copiers", "source", PARTITIONS, COUNT)
            copier.stop()
            copier.wait(PATIENCE_S)
        if program.startswith("franz-go"):  # kafkajs retries as often as its copier tells it to
            assert list(manner_lines(cluster.manners())) == []
        check_exactly_once(cluster.bootstrap, "sink", PARTITIONS, COUNT)
