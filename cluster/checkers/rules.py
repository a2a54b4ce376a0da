"""The rules, as pure functions: a replica, a registration or a log in, what is wrong out.

Owns: what each invariant of state means.  Never: remembers anything (invariants.py does), knows a
cluster.  Kafka: the specs of KIP-101, KIP-497, KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cluster.controller.metadata import NO_LEADER, PartitionRegistration
from cluster.controller.reassigning import is_reassigning
from cluster.partition.followers import Role
from cluster.partition.log import Log
from cluster.partition.replica import Replica
from cluster.protocol.batches import Batch

Identity = tuple[int, int, int, int, int, bytes]
"""What makes a batch that batch: offsets, epoch, producer, sequence, checksum of its records."""

_CRC: Final = slice(17, 21)


class Seen(Struct, frozen=True):
    """A replica as it was when last looked at."""

    life: int
    role: Role
    leader_epoch: int
    partition_epoch: int
    high_watermark: int
    log_end_offset: int
    log_start_offset: int

    def differs_from(self, replica: Replica) -> bool:
        """Whether `replica` has moved since."""
        log = replica.log
        return (
            self.log_end_offset != log.log_end_offset
            or self.high_watermark != replica.high_watermark
            or self.partition_epoch != replica.registration.partition_epoch
            or self.role is not replica.role
            or self.leader_epoch != replica.leader_epoch
            or self.log_start_offset != log.log_start_offset
        )


class Committed:
    """The committed prefix of one partition: batches by base offset, up to `end`."""

    __slots__ = ("batches", "end")

    def __init__(self) -> None:
        self.batches: dict[int, Identity] = {}
        self.end = 0

    def restart(self, log: Log) -> None:
        """An unclean election: only what the new leader has too can still be called committed."""
        lacking = first_lacking(log, self)
        if lacking is not None:
            self.end = lacking
            self.batches = {base: own for base, own in self.batches.items() if base < lacking}


def identity(batch: Batch) -> Identity:
    """What two replicas' copies of a batch have in common, and no other batch has."""
    return (
        batch.base_offset, batch.last_offset, batch.leader_epoch, batch.producer_id,
        batch.base_sequence, bytes(batch.buffer[_CRC]),
    )  # fmt: skip


def first_lacking(log: Log, committed: Committed, start: int = 0) -> int | None:
    """The first committed offset from `start` on at which `log` has nothing, or something else;
    None if there is none.  What lies below the log's start was deleted on purpose."""
    own = {batch.base_offset: identity(batch) for batch in log.batches_from(start)}
    for base, wanted in sorted(committed.batches.items()):
        if base >= start and wanted[1] >= log.log_start_offset and own.get(base) != wanted:
            return base
    return committed.end if log.log_end_offset < committed.end else None


def registration_violations(
    new: PartitionRegistration, old: PartitionRegistration | None
) -> Iterator[tuple[str, str]]:
    """(name, text) of what is wrong with a partition as the controller has it now."""
    outside = [broker for broker in new.isr if broker not in new.replicas]
    if old is None or new.replicas == old.replicas:
        # Replicas that a reassignment took away stay in the ELR as long as that is not changed.
        before = () if old is None else old.elr
        outside += [broker for broker in new.elr if broker not in (*new.replicas, *before)]
    if outside:
        yield "isr-not-replicas", f"{outside} are not among {list(new.replicas)}"
    if new.leader != NO_LEADER and new.leader not in new.isr:
        yield "leader-not-in-isr", f"leader {new.leader}, ISR {list(new.isr)}"
    both = [broker for broker in new.isr if broker in new.elr]
    if both:
        yield "elr-overlaps-isr", f"{both} are in both"
    if old is None:
        return
    if new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch:
        yield "epoch-back", f"leader epoch {old.leader_epoch} -> {new.leader_epoch}"
    in_sync = (*old.isr, *old.elr)
    # Who joins the ISR may lead at once where that ends a reassignment; and one may be given up
    # uncleanly, which Kafka does not call recovering.
    asked_for = new.recovering or (is_reassigning(old) and not is_reassigning(new))
    if new.leader not in (NO_LEADER, old.leader, *in_sync) and not asked_for:
        yield "unclean-unasked", f"leader {new.leader}, ISR and ELR were {list(in_sync)}"


def replica_violations(replica: Replica) -> Iterator[tuple[str, str]]:
    """(name, text) of what is wrong with one replica alone, at any time."""
    log, watermark = replica.log, replica.high_watermark
    if watermark > log.log_end_offset:
        yield "watermark-above-end", f"watermark {watermark}, log end {log.log_end_offset}"
    if watermark < log.log_start_offset:
        yield "watermark-below-start", f"watermark {watermark}, log start {log.log_start_offset}"


def step_violations(old: Seen, new: Replica) -> Iterator[tuple[str, str]]:
    """(name, text) of what a replica must not do between two looks at it in one life."""
    if new.leader_epoch < old.leader_epoch:
        yield "epoch-back", f"leader epoch {old.leader_epoch} -> {new.leader_epoch}"
    if new.registration.partition_epoch < old.partition_epoch:
        yield (
            "epoch-back",
            (f"partition epoch {old.partition_epoch} -> {new.registration.partition_epoch}"),
        )
    if new.is_leader and old.role is Role.LEADER and new.leader_epoch == old.leader_epoch:
        if new.high_watermark < old.high_watermark:
            yield "watermark-back", f"watermark {old.high_watermark} -> {new.high_watermark}"
        if new.log.log_start_offset < old.log_start_offset:
            yield "start-back", f"log start {old.log_start_offset} -> {new.log.log_start_offset}"
        if new.log.log_end_offset < old.log_end_offset:
            yield "leader-truncated", f"log end {old.log_end_offset} -> {new.log.log_end_offset}"


def differing(replica: Replica, committed: Committed, start: int) -> Iterator[tuple[str, str]]:
    """From `start` to its own watermark a replica has what is committed, where it is known."""
    for batch in replica.log.batches_from(max(start, replica.log.log_start_offset)):
        if batch.last_offset >= min(replica.high_watermark, committed.end):
            return
        wanted = committed.batches.get(batch.base_offset)
        if wanted is not None and wanted != identity(batch):
            yield (
                "committed-differs",
                (
                    f"offset {batch.base_offset} is of epoch {batch.leader_epoch} here,"
                    f" of epoch {wanted[2]} where it was committed"
                ),
            )
            return


def extend(committed: Committed, leader: Replica) -> None:
    """All below a leader's watermark is committed from now on."""
    watermark = leader.high_watermark
    if watermark <= committed.end:
        return
    for batch in leader.log.batches_from(committed.end):
        if batch.last_offset >= watermark:
            break
        if batch.base_offset >= committed.end:
            committed.batches[batch.base_offset] = identity(batch)
    committed.end = watermark
