"""What a live cluster's verdict says when share groups give records up."""

from __future__ import annotations

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.perform import perform
from kcluster.scenario.started import start_client, stop_client

QUEUE = "dlq.orders"
TOPICS = {"orders": {}, QUEUE: {"config": {"errors.deadletterqueue.group.enable": True}}}
GIVE_UP = f"""set_config:
  groups: packing
  config: {{errors.deadletterqueue.topic.name: {QUEUE}, share.delivery.count.limit: 2}}
"""


def test_verdict__brokers_write_a_dead_letter_queue_and_no_client_does() -> None:
    with Cluster(Topology.of(brokers=1, topics=TOPICS, profile="fast")) as cluster:
        perform(cluster, parse_action(GIVE_UP))
        reader = {"topics": "orders", "group": "packing", "share": True, "release": "100%"}
        start_client(cluster, {"consumer": reader})
        shop = start_client(cluster, {"producer": {"topic": "orders", "rate": "50/s"}})
        cluster.wait_for("event dead_letters_written", within="30s")
        stop_client(cluster, shop)
        verdict = cluster.verdict()
    assert (verdict.outcome, verdict.unknown) == ("valid", 0)
