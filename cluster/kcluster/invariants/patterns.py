"""Topics that match a regular expression of a consumer group, and that the group does not know.

Owns: since when each group lacks which topic, and when its members last sent a heartbeat.  Never:
resolves an expression for a coordinator, judges a group whose members send no heartbeats.  Kafka:
GroupMetadataManager.maybeUpdateRegularExpressions; KIP-848.

    topic-unmatched    a topic has matched a regular expression of a group for long, and members
                       have sent heartbeats since, but the group does not know the topic

A group resolves its expressions with a heartbeat once there are new topics, at most every ten
seconds.  A broker with an authorizer is not checked: there, an expression matches only the topics
that a member may see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import Request
from kcluster.deaths import ProcessState
from kcluster.invariants.group_facts import Unmatched
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.protocol.apis import ApiKey
from kcluster.runtime.process import Process

RESOLVED_EVERY_MS: Final = 10_000
"""The time between two resolutions.  Kafka: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""
SLACK_MS: Final = 2_000
"""The time for the metadata to arrive, and for a write that is tried again."""
_HEARTBEAT: Final = int(ApiKey.CONSUMER_GROUP_HEARTBEAT)
_Lacking = tuple[int, int, str, str]
"""(broker, its life, group, topic)."""


class PatternTopics:
    """The topics that the consumer groups of one run lack.  `look` is called from time to time."""

    def __init__(self, processes: Mapping[int, Process]) -> None:
        self._processes = processes
        self._lacking: dict[_Lacking, int] = {}
        """Since when a group at its coordinator lacks a topic."""
        self._heard_ms: dict[tuple[int, str], int] = {}
        """The last heartbeat of each group at each broker."""
        self._found: dict[tuple[str, Unmatched], None] = {}

    def on_request(self, broker: int, request: Request, now_ms: int) -> None:
        """Record a member's heartbeat."""
        if request.api_key == _HEARTBEAT:
            self._heard_ms[broker, request.body.group_id] = now_ms
            forget_oldest(self._heard_ms)

    def look(self, now_ms: int) -> Iterator[tuple[int, BrokenPromise]]:
        """The topics that groups did not find in time, each once, with the coordinator of the
        group."""
        lacking: dict[_Lacking, int] = {}
        for broker, process in self._processes.items():
            node = process.broker
            if node is None or process.state is not ProcessState.UP:
                continue
            for group, regex, topic in unmatched(node):
                key = (broker, process.life, group, topic)
                lacking[key] = since_ms = self._lacking.get(key, now_ms)
                heard_ms = self._heard_ms.get((broker, group), 0)
                if heard_ms > since_ms + RESOLVED_EVERY_MS + SLACK_MS:
                    fact = Unmatched(topic, regex)
                    if (group, fact) not in self._found:
                        self._found[group, fact] = None
                        yield broker, ("topic-unmatched", f"group {group}", fact)
        self._lacking = lacking


def unmatched(node: BrokerNodeView) -> Iterator[tuple[str, str, str]]:
    """The topics that match an expression of a group that the broker coordinates, but that the
    group does not know, as (group, expression, topic)."""
    for shard in node.coordinator.shards.values():
        for group in shard.groups.values():
            if not isinstance(group, ConsumerGroup) or not group.regex_counts:
                continue
            if group.broker.access is not None:
                continue
            for regex in group.regex_counts:
                resolved = group.regexes.get(regex)
                known = resolved.topics if resolved is not None else frozenset()
                for topic in node.image.topics:
                    if topic not in known and re.fullmatch(regex, topic):
                        yield group.group_id, regex, topic
