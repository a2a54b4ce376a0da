"""Kafka accepts every config that a topology may set.  `make test-slow` runs this test, where there
are Java and Maven."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kcluster import Topology
from kcluster.apache_kafka.installation import find_installation
from kcluster.apache_kafka.properties import DECIDED, write_properties
from kcluster.config.kafka.broker import PROFILES
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.config.kafka.values import ConfigDef
from kcluster.operations.errors import ClusterError
from tests.apache_kafka.test_properties import properties


def sample(definition: ConfigDef) -> str | None:
    """A valid value; None for a text or class that Kafka does not set by itself."""
    default = definition.default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(default)
    if default is not None:
        return str(default)
    if definition.type in ("INT", "LONG", "SHORT", "DOUBLE"):
        return str(int(definition.spec.minimum or 1))
    return definition.spec.one_of[0] if definition.spec.one_of else None


@pytest.mark.slow
@pytest.mark.timeout_s(300)
@pytest.mark.xdist_group("kafka programs")
def test_kafka__accepts_what_a_topology_may_set(tmp_path: Path) -> None:
    try:
        kafka = find_installation(log=print)
    except ClusterError as error:
        pytest.skip(str(error))
    known = {name: one for name, one in broker_catalog().items() if not one.spec.of_plugin}
    assert len(known) > 300
    (tmp_path / "names").write_text("\n".join(known))
    values = {
        name: text
        for name, one in known.items()
        if name not in DECIDED and (text := sample(one)) is not None
    }
    (tmp_path / "single").write_text(write_properties(values))
    (tmp_path / "base").write_text(write_properties(properties(Topology.of(brokers=1))))
    wholes = []
    for profile in PROFILES:
        topology = Topology.of(
            brokers=[{"id": 1, "rack": "a"}],
            profile=profile,
            listeners={"IN": {"protocol": "PLAINTEXT"}, "OUT": {"protocol": "SASL_PLAINTEXT"}},
            security={"users": {"alice": "alice-secret"}, "super_users": ["admin"]},
        )
        for node_id in (1, 3000):
            wholes.append(tmp_path / f"{profile}-{node_id}")
            wholes[-1].write_text(write_properties(properties(topology, node_id)))
    source = Path(__file__).with_name("AcceptedConfigs.java")
    files = [*(tmp_path / name for name in ("names", "single", "base")), *wholes]
    ended = subprocess.run(
        [kafka.java, "-cp", kafka.class_path, source, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.splitlines() == ["done"], ended.stdout + ended.stderr
