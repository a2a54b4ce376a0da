"""never-processed: a group of processors committed an offset beyond an input without an output.

Owns: the check; stories/transactions.py tells the story of the transaction that
committed the offset.  Never: looks into a node.  Kafka: no counterpart; KIP-98 and KIP-447 promise
exactly-once processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    RunAnomaly,
    RunHistory,
    TransactionalSend,
    TransactionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import CommittedBeyond, Finding
from kcluster.checks.chain.links import link
from kcluster.checks.stories.administered import offset_changes
from kcluster.checks.stories.transactions import story_of_record
from kcluster.clients.ledger import Partition, TransactionOutcome
from kcluster.evidence.history import FinalLog
from kcluster.evidence.lookups import Facts


@anomaly("never-processed", "a group of processors committed an offset beyond an unprocessed input")
class NeverProcessed(RunAnomaly):
    """A group's committed offsets include a record as processed, and no output of it can be read:
    the offsets of a transaction were committed, and its records were not.  An output that retention
    or compaction may have removed counts as one that could be read.

        never-processed: orders-0: group g committed 2, and offset 0 has no output

    An administrator may have given the group an offset beyond it (`allowed`).
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        done: dict[tuple[str, Partition], dict[int, None]] = {}
        committed: dict[tuple[str, Partition], tuple[int, TransactionHistory]] = {}
        for history in run.transactions:
            offsets = history.transaction.offsets
            if offsets is None:
                continue
            is_committed = history.transaction.outcome is TransactionOutcome.COMMITTED
            for each in history.records:
                source = each.send.source
                if source is not None and (
                    each.visible_at >= 0 or (is_committed and _is_gone(each, run.logs))
                ):
                    done.setdefault((offsets.group, source[0]), {})[source[1]] = None
            if is_committed:
                for partition, (offset, _) in offsets.offsets.items():
                    committed[offsets.group, partition] = (offset, history)
        for (group, partition), (end, history) in committed.items():
            log = run.logs.get(partition)
            if log is None:
                continue
            processed = done.get((group, partition), {})
            for offset, value in log.records:
                if offset < end and offset not in processed and offset not in log.hidden:
                    yield Finding(
                        name=self.NAME,
                        partition=partition,
                        client=history.transaction.producer,
                        offset=offset,
                        value=value,
                        fact=CommittedBeyond(group, end),
                    )

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        story = story_of_record(facts, anomaly)
        beyond = anomaly.fact
        assert isinstance(beyond, CommittedBeyond)
        for change in offset_changes(facts, anomaly.partition, beyond.group):
            if change.begins_after(anomaly.last):
                return Explanation([*story.links, link(change.note)], change.setting)
        return story


def _is_gone(output: TransactionalSend, logs: Mapping[Partition, FinalLog]) -> bool:
    """Whether retention, an administrator or compaction may have removed an output."""
    log = logs.get(output.send.partition)
    return log is None or (output.hidden_at < 0 and log.may_have_removed(output.send.offset))
