"""Certificates that expire in a scenario: what is recorded, undone and refused."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.events.brokers import CertificateReplaced
from kcluster.handle.world_cluster import WorldCluster
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import do
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import scenario_of


def test_certificate__is_bad_for_a_while_and_renewed_at_the_end() -> None:
    result = run_scenario(
        Scenario.parse(
            "topology: {brokers: 3, listeners: {SSL: {}}, security: {tls: auto}, topics: {orders:"
            " {}}}\nduration: 5s\nsteps:\n- {at: 1s, certificate: 2, for: 1s}\n"
            "- {at: 3s, certificate: {brokers: 3, state: wrong-name}}\n"
        ),
        "virtual",
    )
    states = [
        (note.event.broker, str(note.event.state))
        for note in result.notes
        if isinstance(note.event, CertificateReplaced)
    ]
    assert states == [(2, "expired"), (2, "valid"), (3, "wrong-name"), (3, "valid")]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("", "broker 1 has no listener with TLS"),
        (
            ", listeners: {SSL: {}}, security: {tls: {keystore: broker.pem}}",
            "broker 1 has a keystore of its own: change ssl.keystore.location of its listener",
        ),
    ],
    ids=["no TLS", "its own keystore"],
)
def test_certificate__is_refused_where_none_is_made(keys: str, words: str) -> None:
    text = f"{{topology: {{brokers: 1{keys}}}, duration: 2s, steps: [{{at: 1s, certificate: 1}}]}}"
    result = run_scenario(Scenario.parse(text), "virtual")
    assert any(words in str(failure) for failure in result.failures)


def test_certificate__of_a_live_cluster_is_recorded_as_a_step() -> None:
    topology = Topology.of(brokers=1, listeners={"SSL": {}}, security={"tls": "auto"})
    cluster = WorldCluster(topology, 1)
    cluster.open()
    undo = do(cluster, "certificate", 1)
    cluster.driver.advance(cluster.driver.now_us + 2_000_000, lambda: False)
    undo()
    do(cluster, "certificate", brokers=1, state="valid")
    notes = [entry.note for entry in cluster.events()]
    cluster.close()
    recorded = scenario_of(notes, topology, "expired", notes[0].at_ms)
    first, second = Scenario.parse(recorded).steps
    assert (first.action.written(), first.options.undone_after_ms) == (1, 2_000)
    assert second.action.written() == {"brokers": 1, "state": "valid"}
