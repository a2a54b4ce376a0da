"""Broken invariants, as values.

Owns: Violation, the names of all violations.  Never: finds one (invariants.py).  Kafka: no
counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.invariants.facts import Observed
from kcluster.invariants.observed import ObservedPartition, ObservedReplica
from kcluster.invariants.words import observed_text

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Leaders, ISRs and elections": {
        "two-leaders": "two brokers lead one partition in one leader epoch",
        "epoch-back": "a replica's leader epoch or partition epoch went back",
        "isr-not-replicas": "the ISR names a broker that is no replica",
        "leader-not-in-isr": "the leader is not in the ISR",
        "fenced-in-isr": "a fenced broker is in the ISR",
        "elr-overlaps-isr": "a broker is in the ISR and in the ELR at once",
        "elr-needless": "brokers are in the ELR although the ISR has min.insync.replicas members",
        "isr-outdated": "the controller accepted an ISR that was proposed for an older state of"
        " the partition, or of a member",
        "isr-hasty": "a leader proposed an ISR without a follower that had kept up",
        "isr-laggard": "a leader kept a follower in the ISR that did not keep up, and proposed"
        " nothing",
        "joined-lacking": "a replica joined the ISR without having all committed records",
        "eligible-newcomer": "a broker that has just become a replica was in the ISR or the ELR",
        "reassigned-early": "a reassignment ended before the replicas that it needs were in the"
        " ISR",
        "unclean-forbidden": "an unclean election, though unclean.leader.election.enable was false"
        " and no operator requested it",
        "unclean-unasked": "a leader was taken from outside ISR and ELR and it was not called"
        " unclean",
        "last-known-outdated": "the last known leader of a partition was remembered or elected,"
        " though another replica led or was eligible",
        "preferred-overdue": "the preferred leader of a partition did not lead again, though it"
        " was in sync and active for longer than the interval of the check",
    },
    "Brokers and metadata": {
        "metadata-back": "the metadata offset of a broker or the controller went back within one"
        " life",
        "metadata-differs": "a broker or the controller holds other metadata than its log gives",
        "config-differs": "a broker, a replica or the controller does not use the configs that its"
        " metadata gives",
        "answer-differs": "a broker's answer about its metadata or its logs is not what these give",
        "quota-differs": "a broker throttles a client by another quota than its metadata gives",
        "unfenced-behind": "a broker was unfenced before it had applied its own registration",
        "silent-unfenced": "a broker was not fenced although the controller, which was active, got"
        " no heartbeat from it for longer than a session lasts",
        "registered-early": "a broker was registered while the session of its last process was"
        " valid",
        "shutdown-held-back": "a broker in controlled shutdown was not told to shut down, though"
        " it led nothing and all active brokers knew that",
        "stopped-unfenced": "a broker was told to shut down, and the controller did not fence it",
        "stale-heartbeat": "the controller took a heartbeat of a broker's earlier life for one of"
        " its present life",
        "log-left": "a broker has kept the log of a partition that it does not host",
    },
    "High watermarks and committed records": {
        "watermark-above-end": "a high watermark lies above its log end",
        "watermark-above-isr": "a leader's high watermark lies above the log end of an ISR member",
        "watermark-below-start": "a high watermark lies below its log start",
        "watermark-below-min-isr": "a high watermark moved while fewer replicas than"
        " min.insync.replicas were in the ISR",
        "watermark-back": "a leader's high watermark went back within its epoch",
        "watermark-stalled": "a high watermark stood still, though all in-sync replicas, enough of"
        " them, had more and could fetch",
        "start-back": "a leader's log start went back within its epoch",
        "log-start-behind": "a follower in the ISR did not follow the log start of its leader, and"
        " keeps what was deleted",
        "committed-differs": "two replicas hold different records at an offset both call committed",
        "committed-lost": "a leader lacks records that were committed, after clean elections only",
        "truncated-committed": "a member of the ISR dropped records that its own leader has"
        " committed",
        "leader-truncated": "a leader's log became shorter within its epoch",
        "epochs-differ": "a log's cache of leader epochs is not the one that its records give",
        "progress-outdated": "a leader's epoch began with what it knew of followers before",
        "ack-before-commit": "acks=all was answered, but the records are not committed",
        "read-uncommitted": "a consumer received records that are not committed",
        "refused-in-sync": "a leader refused records with acks=all, though min.insync.replicas"
        " were in sync",
    },
    "Segments, retention and compaction": {
        "segment-overdue": "a log appended to a segment that segment.ms or segment.bytes had ended",
        "segment-differs": "the timestamp or the size of a segment is not that of its batches",
        "times-differ": "a segment's greatest timestamp is not that of its records",
        "flush-overdue": "a log did not flush after flush.messages records",
        "retention-overdue": "a log kept a segment long after retention.ms or retention.bytes was"
        " exceeded",
        "retention-hasty": "a leader deleted records that were neither old enough for retention.ms"
        " nor above retention.bytes",
        "deletion-undone": "a partition has records again whose deletion by DeleteRecords was"
        " confirmed",
        "deletion-held-back": "DeleteRecords was not answered, though every live replica had"
        " deleted the records",
        "newest-compacted": "compaction removed the newest committed record of a key, or a"
        " tombstone before delete.retention.ms",
        "older-kept": "compaction left a record in the part that it has cleaned, beside a newer"
        " one of its key",
        "cleaned-too-young": "compaction cleaned records that are younger than"
        " min.compaction.lag.ms",
        "cleaned-unstable": "compaction cleaned records behind the first one of an open"
        " transaction, which may be aborted",
        "cleaned-above-end": "compaction counts offsets as cleaned that a log no longer has",
        "end-compacted": "compaction removed the batch that ended at the high watermark, by which"
        " replicas and consumers learn of it",
        "sequence-compacted": "compaction removed the last batch of a producer, and its sequence"
        " with it",
        "batch-altered": "compaction changed a batch or a record that it should only have dropped",
        "compaction-overdue": "a log was not cleaned long after max.compaction.lag.ms was over",
    },
    "Answers to clients": {
        "two-replies": "a request was answered twice",
        "no-reply": "a request was not answered in its time, though its broker ran and its"
        " connection was open",
        "error-unexpected": "an answer has an error that Kafka never gives to requests of its kind",
        "leader-denied": "a leader refused a consumer's fetch as if it did not lead the partition",
        "redirected-outside": "a leader sent a consumer to a replica that is not in the ISR",
        "records-kept-back": "a consumer's fetch got no record, though the broker had had some for"
        " it",
        "fetch-over-limit": "a consumer got more bytes than it asked for, in several batches",
        "fetch-elsewhere": "a consumer got records that do not begin where it asked, or that are"
        " out of order",
        "listed-too-low": "ListOffsets gave a consumer an end below what was committed when it"
        " asked",
        "throttle-ignored": "a broker served a client before the end of the throttle time that it"
        " had given to it",
        "livelock": "nodes and clients went on for ever at one moment, so the run was ended there",
    },
    "Producers and transactions": {
        "producers-differ": "a log's table of idempotent producers is not the one that its records"
        " give",
        "transactions-differ": "a log's open and aborted transactions are not those that its"
        " records give",
        "stable-above-open": "a log's table of producers would let the last stable offset pass an"
        " open transaction",
        "producer-id-twice": "two producers were given one producer id",
        "producer-epoch-back": "a leader appended a batch of an older epoch of its producer",
        "sequence-gap": "a leader appended a batch that does not follow the last one of its"
        " producer",
        "coordinator-epoch-back": "a leader appended a marker of a coordinator that was replaced",
        "marker-undecided": "a marker says what no coordinator has decided",
        "marker-of-last": "a late marker ended a transaction that began after its own",
        "marker-before-commit": "a leader confirmed a marker that is not committed",
        "batch-unverified": "a transaction began in a log, though its coordinator had none open"
        " there",
        "verified-otherwise": "a coordinator verified a partition that was not in the producer's"
        " open transaction",
        "zombie-served": "a transactional producer was served, though another one had begun with"
        " its id since",
        "fenced-alone": "a transactional producer was fenced, though no other took its place",
        "producer-refused": "a transactional producer was refused for good, though the state of"
        " its transaction gives no reason",
        "ended-otherwise": "the end of a transaction was confirmed, and its coordinator has"
        " decided otherwise",
        "transaction-overdue": "a transaction was not aborted after its timeout, or got no markers"
        " after its decision, though nothing was in the way",
        "transaction-forgotten": "a coordinator deleted a transactional id while its transaction"
        " was open, or lacked markers",
        "timeout-outdated": "a producer was initialized, and another transaction.timeout.ms than"
        " its own is in force",
    },
    "Groups and their offsets": {
        "generation-back": "a classic group began a generation that is older than one whose"
        " assignment its members have",
        "assignment-differs": "a member of a classic group got two assignments in one generation",
        "member-epoch-back": "a member of a consumer group was given an epoch older than its own",
        "told-uncommitted": "a member was told an epoch, or the assignment of a generation, that"
        " its coordinator's log has not committed",
        "stale-member": "a request of a member was served in a generation or member epoch that was"
        " over, or after the member had left",
        "stale-commit": "a commit was accepted after another member's commit of a later"
        " generation, in a generation that was over, or for a partition that another member was"
        " given",
        "commit-refused": "a commit in an older member epoch was refused, though its member has"
        " kept the partition since then",
        "lost-member": "a member was told that it is unknown, or another one got its"
        " group.instance.id, though it had neither left nor been removed",
        "late-member": "a member was served although it had not given up its partitions within its"
        " rebalance timeout, or a member of its generation had not synced",
        "removed-early": "a coordinator removed a member before its session, or its time to join,"
        " to sync or to give up partitions, had ended",
        "removed-waiting": "a coordinator removed a member that waited for the answer to its"
        " JoinGroup or SyncGroup",
        "rebalance-missing": "a classic member joined again, with another subscription, as the"
        " leader, or under a new id, and its group began no generation for it",
        "partition-dropped": "a group became one of the other protocol, and a partition that a"
        " member had before belongs to none of its members",
        "topic-unmatched": "a consumer group has not found a topic that matches a regular"
        " expression of its members for long",
        "coordinator-differs": "a coordinator holds something else than its log says",
        "unstable-offset": "a member that asked for stable offsets got one that an open"
        " transaction may change",
        "offset-left": "a coordinator has kept the offset of a topic that is deleted, though it"
        " could write",
        "offset-unknown": "a group was given an offset, leader epoch or metadata that nobody has"
        " committed, or that was deleted",
        "pending-expired": "a coordinator deleted an offset, without a request, while an open"
        " transaction was about to replace it",
    },
    "Share groups": {
        "stale-share-write": "the state of a share partition was taken from a leader after a later"
        " one had read it, or after it was initialized with a later state epoch",
        "share-state-back": "the stored state of a share partition went back, in its log, or in"
        " what a leader read",
        "share-state-kept": "the state of a share partition was initialized, and still had what"
        " became of records before",
        "share-state-pruned": "a share coordinator has deleted the last snapshot of a state from"
        " its log",
        "share-passed-over": "the start offset of a share partition passed a record that was not"
        " settled, by the log of its state",
        "share-start-uncommitted": "a share partition begins above what is committed, so a share"
        " group passes records over",
        "share-overcounted": "the leader of a share partition counts more records as settled than"
        " there are from its start offset on",
        "stale-share-leader": "a broker that leads a share partition again delivered records"
        " without having loaded its state",
        "foreign-ack": "an acknowledgement was accepted for a record that another member of the"
        " share group held",
        "acquired-twice": "a member of a share group got a record that another one held",
        "lock-lost": "a member of a share group lost the lock of a record that it held, before the"
        " lock's end",
        "lock-differs": "a leader gave a share group another share.record.lock.duration.ms than"
        " its metadata have",
        "lock-overdue": "a leader kept records of a share group locked after the end of their lock",
        "share-unasked": "a member of a share group got records of a partition that it did not"
        " fetch",
        "share-idle": "a member of a share group was assigned no partition, though others were",
        "share-over-locks": "a share partition has more records in flight than"
        " share.partition.max.record.locks",
        "share-over-deliveries": "a member of a share group got a record more often than"
        " share.delivery.count.limit allows",
        "share-last-together": "a member of a share group got a record for the last time together"
        " with other records, which are lost if it dies of that record",
        "share-session-lost": "a member of a share group lost its session, though neither it nor"
        " its connection had ended",
        "share-over-limit": "a member of a share group got more records than it asked for",
        "read-aborted": "a share group with read_committed got a record of an aborted transaction",
    },
}
"""The meaning of every invariant, by subject and by the name of its violation."""
VIOLATIONS: Final = {name: text for section in SECTIONS.values() for name, text in section.items()}
"""The same, by name alone."""


class Violation(Struct, frozen=True):
    """A broken invariant.  `name`: its name in VIOLATIONS; `subject`: `orders-0`, `broker 2`, ...;
    `topic`: "" for none."""

    name: str
    at_ms: int
    subject: str
    fact: Observed
    topic: str = ""
    partition: int = -1
    broker: int = -1

    @property
    def text(self) -> str:
        """What was observed, for people; no code reads it."""
        return observed_text(self.fact)

    def __str__(self) -> str:
        return f"{self.name} at {self.at_ms} ms: {self.subject}: {self.text}"


Subject = ObservedPartition | ObservedReplica | None
"""The subject of a violation; None: a broker."""


def violation(name: str, at_ms: int, subject: Subject, fact: Observed, broker: int) -> Violation:
    """A violation about a partition, a replica, or a broker."""
    assert name in VIOLATIONS, name
    if subject is None:
        return Violation(name, at_ms, f"broker {broker}", fact, broker=broker)
    partition = subject.partition if isinstance(subject, ObservedReplica) else subject
    if isinstance(subject, ObservedReplica):
        broker = subject.broker
    where = partition.name if broker < 0 else f"{partition.name} on broker {broker}"
    return Violation(name, at_ms, where, fact, partition.topic, partition.partition, broker)
