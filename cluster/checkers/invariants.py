"""What must hold at every moment of a cluster's life, whatever is done to it.

Owns: the invariants of replication, and what must be remembered to judge them.  Never: changes a
node, decides whether a loss was allowed by anything but the notes of an unclean election.
Kafka: the specs of KIP-101, KIP-279, KIP-497, KIP-966; RaftEventSimulationTest's invariants.

`Invariants.look` after each step of a broker compares that broker's replicas with what was seen of
them before; only those that changed are judged, so that it costs microseconds.  The names of what
it finds are in `VIOLATIONS`, with what each means.

What is committed is learnt from leaders: all below a leader's high watermark.  From then on it
must be in the log of every later leader, at its offset, until an unclean election says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from cluster.checkers.rules import (
    Committed,
    Seen,
    differing,
    extend,
    first_lacking,
    registration_violations,
    replica_violations,
    step_violations,
)
from cluster.contract import Note, Request
from cluster.controller.metadata import PartitionRegistration
from cluster.partition.followers import Role
from cluster.partition.replica import Replica
from cluster.protocol.apis import ApiKey
from cluster.trace import kinds

VIOLATIONS: Final = {
    "two-leaders": "two brokers lead one partition in one leader epoch",
    "epoch-back": "a replica's leader epoch or partition epoch went back",
    "metadata-back": "a broker's metadata offset went back within one life",
    "watermark-above-end": "a high watermark lies above its log end",
    "watermark-below-start": "a high watermark lies below its log start",
    "watermark-back": "a leader's high watermark went back within its epoch",
    "start-back": "a leader's log start went back within its epoch",
    "committed-differs": "two replicas hold different records at an offset both call committed",
    "committed-lost": "a leader lacks records that were committed, after clean elections only",
    "truncated-committed": "a member of the ISR dropped records that its own leader has committed",
    "isr-not-replicas": "the ISR names a broker that is no replica",
    "leader-not-in-isr": "the leader is not in the ISR",
    "elr-overlaps-isr": "a broker is in the ISR and in the ELR at once",
    "unclean-unasked": "a leader was taken from outside ISR and ELR and it was not called unclean",
    "leader-truncated": "a leader's log became shorter within its epoch",
    "two-replies": "a request was answered twice",
    "no-reply": "a request was never answered, though its broker lived and nothing was amiss",
    "ack-before-commit": "acks=all was answered, but the records are not committed",
    "read-uncommitted": "a consumer was given records that are not committed",
}
"""Every invariant by the name of its violation."""

PartitionKey = tuple[bytes, int]
_ACKS_ALL: Final = -1
_NEVER_MS: Final = -1


class Violation(Struct, frozen=True):
    """A promise broken.  `name` of VIOLATIONS; `subject`: `orders-0`, `broker 2`, ..."""

    name: str
    at_ms: int
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.name} at {self.at_ms} ms: {self.subject}: {self.text}"


class Invariants:
    """The memory of one run.  `found`: all violations so far, oldest first.

    Give it every note (`on_note`), each broker after a step (`look`), the controller's partitions
    (`look_at_metadata`), and what clients asked and were answered.
    """

    def __init__(self) -> None:
        self.found: list[Violation] = []
        self.committed: dict[PartitionKey, Committed] = {}
        self._seen: dict[tuple[int, PartitionKey], Seen] = {}
        self._metadata_offsets: dict[tuple[int, int], int] = {}
        self._leaders: dict[tuple[PartitionKey, int], tuple[int, int]] = {}
        """(broker, its life) by partition and leader epoch."""
        self._newest_epoch: dict[PartitionKey, int] = {}
        self._registrations: dict[PartitionKey, PartitionRegistration] = {}
        self._unclean: dict[tuple[str, int], int] = {}
        """Newest leader epoch that an unclean election began, by topic and partition."""
        self._forgiven: dict[PartitionKey, int] = {}
        """Newest leader epoch whose losses have been reckoned with."""
        self._open: dict[tuple[int, int], tuple[int, Request, int]] = {}
        self._answered: list[tuple[Request, Any]] = []

    def _report(self, now_ms: int, subject: str, found: Iterable[tuple[str, str]]) -> None:
        for name, text in found:
            assert name in VIOLATIONS, name
            self.found.append(Violation(name, now_ms, subject, text))

    # ------------------------------------------------------------------------- what is told

    def on_note(self, note: Note) -> None:
        """Notes tell of the elections that may lose records."""
        # A reassignment may be given up uncleanly when nobody can lead yet.
        told = note.kind in (kinds.LEADER_ELECTED, kinds.PARTITION_OFFLINE)
        if told and not note.data["clean"]:
            self._unclean[note.data["topic"], note.data["partition"]] = note.data["epoch"]

    def on_request(self, broker: int, request: Request, now_ms: int) -> None:
        """A request was given to a broker."""
        self._open[request.connection_id, request.correlation_id] = (broker, request, now_ms)

    def on_reply(self, broker: int, request: Request, body: Any, now_ms: int) -> None:
        """And was answered; `body` None where nothing is sent."""
        if self._open.pop((request.connection_id, request.correlation_id), None) is None:
            text = f"request {request.correlation_id} of connection {request.connection_id}"
            self._report(now_ms, f"broker {broker}", [("two-replies", text)])
        self._answered.append((request, body))

    def on_death(self, broker: int) -> None:
        """Its process is gone: nobody is owed an answer any more."""
        for key, (asked, request, _) in self._open.items():
            if asked == broker:
                self._open[key] = (broker, request, _NEVER_MS)

    def on_connection_closed(self, connection_id: int) -> None:
        """A client is gone: it may still be answered, but need not be."""
        for key, (asked, request, _) in self._open.items():
            if key[0] == connection_id:
                self._open[key] = (asked, request, _NEVER_MS)

    def look_for_unanswered(self, now_ms: int, limit_ms: int) -> None:
        """Nothing may be unanswered for longer than `limit_ms` where all brokers run."""
        for broker, request, asked_ms in self._open.values():
            if asked_ms + limit_ms < now_ms and asked_ms != _NEVER_MS:
                text = f"{type(request.body).__name__} of {asked_ms} ms"
                self._report(now_ms, f"broker {broker}", [("no-reply", text)])

    # ----------------------------------------------------------------------- what is looked at

    def look_at_metadata(
        self, now_ms: int, subject: str, registration: PartitionRegistration
    ) -> None:
        """A partition as the controller has it."""
        key = (registration.topic_id, registration.partition)
        old = self._registrations.get(key)
        if old is not registration:
            self._registrations[key] = registration
            self._report(now_ms, subject, registration_violations(registration, old))

    def look(
        self, now_ms: int, broker: int, life: int, metadata_offset: int, replicas: list[Replica]
    ) -> None:
        """A broker, after a step of its."""
        known = self._metadata_offsets.get((broker, life), -1)
        if metadata_offset < known:
            text = f"metadata offset {known} -> {metadata_offset}"
            self._report(now_ms, f"broker {broker}", [("metadata-back", text)])
        self._metadata_offsets[broker, life] = metadata_offset
        for replica in replicas:
            old = self._seen.get((broker, replica.key))
            if old is None or old.life != life or old.differs_from(replica):
                self._judge(now_ms, broker, life, replica, old)
        if self._answered:
            answered, self._answered = self._answered, []
            for request, body in answered:
                found = self._judge_answer(request, body, replicas)
                self._report(now_ms, f"broker {broker}", found)

    def _judge(
        self, now_ms: int, broker: int, life: int, replica: Replica, old: Seen | None
    ) -> None:
        log, key = replica.log, replica.key
        subject = f"{replica.name} on broker {broker}"
        self._report(now_ms, subject, replica_violations(replica))
        committed = self.committed.setdefault(key, Committed())
        checked = 0
        if old is not None and old.life == life:
            self._report(now_ms, subject, step_violations(old, replica))
            if log.log_end_offset >= old.log_end_offset:
                checked = min(old.high_watermark, committed.end)
            else:
                self._report(now_ms, subject, self._truncated(broker, replica, committed))
        if replica.is_leader and (
            old is None or old.life != life or old.role is not Role.LEADER
            or old.leader_epoch != replica.leader_epoch
        ):  # fmt: skip
            self._report(now_ms, subject, self._began_to_lead(broker, life, replica, committed))
        if not self._is_behind_unclean(replica):
            self._report(now_ms, subject, differing(replica, committed, checked))
            if replica.is_leader:
                extend(committed, replica)
        self._seen[broker, key] = Seen(
            life, replica.role, replica.leader_epoch, replica.registration.partition_epoch,
            replica.high_watermark, log.log_end_offset, log.log_start_offset,
        )  # fmt: skip

    def _is_behind_unclean(self, replica: Replica) -> bool:
        """It has not heard yet of the unclean election that changed what is committed, or has not
        truncated its log yet."""
        unclean = self._unclean.get((replica.topic, replica.partition))
        if unclean is None:
            return False
        if self._forgiven.get(replica.key, -1) < unclean or replica.leader_epoch < unclean:
            return True
        isr = self._registrations[replica.key].isr
        return not replica.is_leader and replica.broker_id not in isr

    def _truncated(
        self, broker: int, replica: Replica, committed: Committed
    ) -> Iterator[tuple[str, str]]:
        registration = self._registrations.get(replica.key)
        if registration is None or broker not in registration.isr:
            return
        if replica.log.log_end_offset < committed.end and not self._is_behind_unclean(replica):
            yield (
                "truncated-committed",
                (f"log end {replica.log.log_end_offset}, committed up to {committed.end}"),
            )

    def _began_to_lead(
        self, broker: int, life: int, replica: Replica, committed: Committed
    ) -> Iterator[tuple[str, str]]:
        key, epoch = replica.key, replica.leader_epoch
        other = self._leaders.setdefault((key, epoch), (broker, life))
        if other != (broker, life):
            yield "two-leaders", f"epoch {epoch} was led by broker {other[0]}, life {other[1]}"
        newest = self._newest_epoch.get(key, -1)
        if epoch < newest:
            return  # news of its election came late: others lead by now
        self._newest_epoch[key] = epoch
        unclean = self._unclean.get((replica.topic, replica.partition), -1)
        if self._forgiven.get(key, -1) < unclean <= epoch:
            self._forgiven[key] = unclean
            committed.restart(replica.log)
            return
        lacking = first_lacking(replica.log, committed)
        if lacking is not None:
            text = f"epoch {epoch} begins without what is committed from {lacking} on"
            yield "committed-lost", text
            committed.restart(replica.log)

    # ------------------------------------------------------------------------------- answers

    def _judge_answer(
        self, request: Request, body: Any, replicas: list[Replica]
    ) -> Iterator[tuple[str, str]]:
        if body is None or request.api_key not in (ApiKey.PRODUCE, ApiKey.FETCH):
            return
        is_fetch = request.api_key == ApiKey.FETCH
        if not is_fetch and request.body.acks != _ACKS_ALL:
            return
        for topic in body.responses:
            name, topic_id = topic.topic if is_fetch else topic.name, topic.topic_id
            for answer in topic.partitions if is_fetch else topic.partition_responses:
                index = answer.partition_index if is_fetch else answer.index
                if answer.error_code:
                    continue
                for replica in replicas:
                    if replica.partition == index and (
                        replica.topic == name if name else replica.topic_id == topic_id
                    ):
                        judge = self._judge_read if is_fetch else self._judge_ack
                        yield from judge(replica, answer)

    def _judge_ack(self, replica: Replica, answer: Any) -> Iterator[tuple[str, str]]:
        end = self.committed[replica.key].end
        if answer.base_offset >= end and not self._is_behind_unclean(replica):
            yield (
                "ack-before-commit",
                (f"{replica.name}: offset {answer.base_offset} acked, committed up to {end}"),
            )

    def _judge_read(self, replica: Replica, answer: Any) -> Iterator[tuple[str, str]]:
        committed = self.committed[replica.key]
        if not answer.records or self._is_behind_unclean(replica):
            return
        for batch in answer.records:
            if batch.last_offset >= committed.end:
                yield (
                    "read-uncommitted",
                    (
                        f"{replica.name}: offset {batch.last_offset} read, committed up to"
                        f" {committed.end}"
                    ),
                )
