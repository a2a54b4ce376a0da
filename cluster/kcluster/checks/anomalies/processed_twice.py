"""processed-twice: a group of processors made two outputs of one input that can both be read.

Owns: the check; stories/transactions.py tells the story of the second transaction.
Never: looks into a node.  Kafka: no counterpart; KIP-98 and KIP-447 promise exactly-once
processing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    RunAnomaly,
    RunHistory,
    TransactionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding, OutputsOf
from kcluster.checks.chain.links import link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.administered import changes_within
from kcluster.checks.stories.groups import deposed_answer
from kcluster.checks.stories.transactions import group_of, story_of_record
from kcluster.clients.ledger import Partition
from kcluster.evidence.lookups import Facts


@anomaly("processed-twice", "a group of processors made two outputs of one input")
class ProcessedTwice(RunAnomaly):
    """Two members of a group, or one member after another, processed the same record, and
    read_committed consumers get both outputs: the second transaction did not begin with the offsets
    of the first.  An administrator may have reset the group's offsets, or deleted the group; a
    coordinator that was replaced may have answered with older offsets until it knew (`allowed`).

        processed-twice: invoices-0: group g processed orders-0 offset 1 twice, by a and a
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        first: dict[tuple[str, Partition, int], TransactionHistory] = {}
        for history in run.transactions:
            group = group_of(history.transaction)
            for send, visible_at, _ in history.records:
                if send.source is None or visible_at < 0:
                    continue
                partition, offset = send.source
                before = first.setdefault((group, partition, offset), history)
                if before is history:
                    continue
                both = (before.transaction.producer, history.transaction.producer)
                outputs = OutputsOf(group, partition, offset, both)
                yield self.about(send, visible_at, outputs)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        story = story_of_record(facts, anomaly)
        twice = anomaly.fact
        assert isinstance(twice, OutputsOf)
        source = twice.input_partition, twice.input_offset
        sent_ms = [
            send.sent_ms
            for send in facts.ledger.sends
            if send.source == source and send.producer in twice.producers
        ]
        for change in changes_within(facts, twice.group, source[0], min(sent_ms), max(sent_ms)):
            if change.comes_again(source[1]):
                return Explanation([*story.links, link(change.note)], change.setting)
        deposed = deposed_answer(facts, twice.group, *source, min(sent_ms), max(sent_ms))
        if deposed and story.allowed is Setting.NONE:
            return Explanation([*story.links, *deposed], Setting.DEPOSED_COORDINATOR)
        return story
