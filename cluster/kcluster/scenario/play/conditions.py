"""Whether a condition holds now: `isr(orders-0) < 2`, `1,000 acked`, `event leader_elected`.

Owns: looking.  Never: parses (words.py), waits (stage.py).  A partition that is not there yet has
no leader (-1) and counts zero.
"""

from __future__ import annotations

from typing import Any

from kcluster.clients.ledger import Outcome
from kcluster.contract import Note
from kcluster.evidence.history import Ledger
from kcluster.operations.verbs import Verbs
from kcluster.runtime.dispatch import Dispatcher
from kcluster.scenario.language.words import COUNTED, Condition, compare


class Conditions:
    """Looks at one cluster and its workload's ledger."""

    def __init__(self, dispatcher: Dispatcher, verbs: Verbs, ledger: Ledger, notes: list[Note]):
        self._dispatcher = dispatcher
        self._verbs = verbs
        self._ledger = ledger
        self._notes = notes

    def holds(self, condition: Condition, since: int = 0) -> bool:
        """Whether it holds; events count from the note with index `since` on."""
        if condition.word == "event":
            kind, _, subject = condition.of.partition(" ")
            return any(
                note.event.kind == kind and (not subject or note.event.subject == subject)
                for note in self._notes[since:]
            )
        if condition.word == "settled":
            return self._verbs.settled.is_whole()
        return compare(self.value(condition), condition.symbol, condition.number)

    def value(self, condition: Condition) -> int:
        """The number that a condition compares."""
        if condition.word in COUNTED:
            return self._count(condition.word, condition.of)
        assert condition.partition is not None, condition
        topic, number = condition.partition
        partition = self._verbs.settled.image.partition(topic, number)
        if partition is None:
            return -1 if condition.word == "leader" else 0
        match condition.word:
            case "leader":
                return partition.leader
            case "isr":
                return len(partition.isr)
            case "elr":
                return len(partition.elr)
        replica = self._leader_replica(topic, number)
        if replica is None:
            return 0
        at: int = (
            replica.high_watermark if condition.word == "high_watermark"
            else replica.log.log_end_offset
        )  # fmt: skip
        return at

    def high_watermark(self, topic: str, partition: int) -> int:
        """Of a partition's leader; 0 if it has none."""
        replica = self._leader_replica(topic, partition)
        return 0 if replica is None else int(replica.high_watermark)

    def _leader_replica(self, topic: str, number: int) -> Any:
        partition = self._verbs.settled.image.partition(topic, number)
        if partition is None:
            return None
        process = self._dispatcher.processes.get(partition.leader)
        node: Any = None if process is None else process.node
        return None if node is None else node.replicas.get(partition.topic_id, number)

    def _count(self, word: str, client: str) -> int:
        if word == "read":
            reads = self._ledger.reads
            return sum(not client or read.consumer == client for read in reads)
        sends = self._ledger.sends
        if not client and word == "sent":
            return len(sends)
        outcome = Outcome(word) if word != "sent" else None
        return sum(
            (outcome is None or send.outcome is outcome)
            and (not client or send.producer == client)
            and (outcome is not Outcome.UNKNOWN or send.ended_ms >= 0)
            for send in sends
        )
