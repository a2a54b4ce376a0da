"""Topics that requests name: whether they exist.

Owns: the refusal with the nearest name.  Never: knows a route.
Kafka: UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from kcluster.config.files.problems import unknown
from kcluster.handle.cluster import Cluster
from kcluster.protocol.names import has_internal_prefix
from kcluster.web.problems import not_found


def check_topic(cluster: Cluster, topic: str) -> None:
    """Check that a topic exists; a refusal with the nearest name if it does not."""
    if problem := topic_problem(cluster, topic):
        raise not_found(problem)


def topic_problem(cluster: Cluster, topic: str) -> str:
    """The message that a topic does not exist, with the nearest name; empty if it exists."""
    topics = cluster.topics()
    if topic in topics:
        return ""
    users = [name for name in topics if not has_internal_prefix(name)] or list(topics)
    return f"{topic}: {unknown('topic', topic, users) if users else 'there are no topics yet'}"
