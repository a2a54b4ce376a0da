"""The invariants of state, as functions from a replica, a registration or a log to its violations.

Owns: the definition of each invariant of state, and of committed records.  Never: keeps state
(observed.py does), knows a cluster.  Kafka: the specs of KIP-101, KIP-207, KIP-497, KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kcluster.controller.partitions.reassigning import is_reassigning
from kcluster.invariants import facts as f
from kcluster.invariants import producer_facts as p
from kcluster.invariants.deletions import undone
from kcluster.invariants.observed import (
    NO_EPOCH,
    Committed,
    ObservedPartition,
    ObservedReplica,
    effective_min_isr,
)
from kcluster.metadata.records import NO_LEADER, BrokerRegistration, PartitionRegistration
from kcluster.partition.log.log import Log
from kcluster.partition.producers import ProducerState, ProducerStates
from kcluster.partition.replica import UNKNOWN_OFFSET, Replica, Role
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import Batch

Identity = tuple[int, int, int, int, int, bytes]
"""The identity of a batch: offsets, epoch, producer, sequence, checksum of its records."""

Problem = tuple[str, f.Observed]
"""(name of the violation, what was observed)."""
Broken = Iterator[Problem]
"""Each broken invariant."""

_TOO_FEW: Final = ErrorCode.NOT_ENOUGH_REPLICAS
_CRC: Final = slice(17, 21)
_LEADER_EPOCH: Final = f.Measure.LEADER_EPOCH
_HIGH_WATERMARK: Final = f.Measure.HIGH_WATERMARK
_LOG_START: Final = f.Measure.LOG_START
_LOG_END: Final = f.Measure.LOG_END
_COMMITTED_END: Final = f.Measure.COMMITTED_END


def identity(batch: Batch) -> Identity:
    """A value that is equal for all copies of a batch, and different for all other batches."""
    return (
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.producer_id,
        batch.base_sequence,
        bytes(batch.buffer[_CRC]),
    )


def is_same(own: Batch | None, wanted: Batch) -> bool:
    """Whether two batches are copies of each other; usually both are the same object."""
    return own is wanted or (own is not None and identity(own) == identity(wanted))


def first_lacking(log: Log, committed: Committed, start: int = 0) -> int | None:
    """The first committed offset from `start` on at which `log` has no batch, or a different batch;
    None if there is none.  Offsets below the log start, and in the compacted part of the log, are
    not compared."""
    own = {batch.base_offset: batch for batch in log.batches_from(start)}
    start = max(start, log.first_dirty_offset, log.log_start_offset)
    for base, wanted in committed.batches.items():
        if wanted.last_offset < start:
            continue
        if not is_same(own.get(base), wanted):
            return min(base, log.log_end_offset)  # what was cleaned before it is not compared
    return log.log_end_offset if log.log_end_offset < committed.end else None


def registration_violations(
    new: PartitionRegistration, old: PartitionRegistration | None
) -> Broken:
    """Violations of a partition's registration at the controller."""
    outside = [broker for broker in new.isr if broker not in new.replicas]
    if old is None or new.replicas == old.replicas:
        # Replicas that a reassignment removed stay in the ELR until the ELR changes.
        before = () if old is None else old.elr
        may_be = (*new.replicas, *before)
        outside += [broker for broker in new.elr if broker not in may_be]
    if outside:
        yield (
            "isr-not-replicas",
            f.Misplaced(tuple(outside), f.Fault.NO_REPLICA, tuple(new.replicas)),
        )
    if new.leader != NO_LEADER and new.leader not in new.isr:
        yield "leader-not-in-isr", f.LeaderOutside(new.leader, tuple(new.isr))
    both = tuple(broker for broker in new.isr if broker in new.elr)
    if both:
        yield "elr-overlaps-isr", f.Misplaced(both, f.Fault.IN_ELR, tuple(new.isr))
    if old is None:
        return
    if new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch:
        yield "epoch-back", f.WentBack(_LEADER_EPOCH, old.leader_epoch, new.leader_epoch)
    elif new.leader != old.leader and new.leader_epoch == old.leader_epoch:
        yield "two-leaders", f.LeaderReplaced(old.leader, new.leader, new.leader_epoch)
    in_sync = (*old.isr, *old.elr)
    # A broker that completes a reassignment by joining the ISR may lead at once; and a reassignment
    # may be cancelled uncleanly, which Kafka does not mark as recovering.
    is_expected = new.recovering or (is_reassigning(old) and not is_reassigning(new))
    may_lead = (NO_LEADER, old.leader, *in_sync)
    if new.leader not in may_lead and not is_expected:
        yield "unclean-unasked", f.LeaderOutside(new.leader, tuple(old.isr), tuple(old.elr))


def membership_violations(
    registration: PartitionRegistration, brokers: Mapping[int, BrokerRegistration]
) -> Broken:
    """A fenced broker in an ISR (KIP-841).  Without an ELR, the last member stays in the ISR while
    there is no leader, because only it may lead again."""
    fenced = tuple(
        broker
        for broker in registration.isr
        if (known := brokers.get(broker)) is None or known.fenced
    )
    if fenced and not (registration.leader == NO_LEADER and len(registration.isr) == 1):
        yield "fenced-in-isr", f.Misplaced(fenced, f.Fault.FENCED, tuple(registration.isr))


def replica_violations(replica: Replica) -> Broken:
    """Violations within the state of a single replica."""
    log, watermark = replica.log, replica.high_watermark
    start, end = log.log_start_offset, log.log_end_offset
    if watermark > end:
        yield "watermark-above-end", f.OutOfBounds(_HIGH_WATERMARK, watermark, _LOG_END, end)
    if watermark < start:
        yield "watermark-below-start", f.OutOfBounds(_HIGH_WATERMARK, watermark, _LOG_START, start)
    if log.first_dirty_offset > end:
        cleaned = f.OutOfBounds(f.Measure.CLEANED_TO, log.first_dirty_offset, _LOG_END, end)
        yield "cleaned-above-end", cleaned


def leader_violations(replica: Replica, has_seen_begin: bool) -> Broken:
    """Violations when a leader's epoch begins: the leader knows the log end of a follower, although
    no follower has fetched in this epoch (if the beginning was observed), or its log lacks the
    epoch (KAFKA-7164)."""
    for follower in replica.followers.values() if has_seen_begin else ():
        if follower.log_end_offset != UNKNOWN_OFFSET:
            known = f.ProgressKept(follower.broker_id, follower.log_end_offset)
            yield "progress-outdated", known
    latest = replica.log.epochs.latest
    if latest != replica.leader_epoch:
        end = replica.log.log_end_offset
        yield "epochs-differ", f.EpochDiffers(end, latest, replica.leader_epoch)


def epoch_violations(log: Log) -> Broken:
    """A batch whose leader epoch differs from the log's epoch cache."""
    start, cache = log.log_start_offset, log.epochs
    for batch in log.batches_from(start):
        epoch = cache.epoch_for_offset(max(start, batch.base_offset))
        if batch.leader_epoch not in (epoch, NO_EPOCH):
            yield "epochs-differ", f.EpochDiffers(batch.base_offset, epoch, batch.leader_epoch)
            return


def time_violations(log: Log) -> Broken:
    """A segment whose greatest timestamp, which look-ups and retention use, differs from that of
    its batches."""
    for segment in log.segments:
        newest = max((batch.max_timestamp for batch in segment.batches), default=-1)
        if segment.max_timestamp != newest:
            yield (
                "times-differ",
                f.TimeDiffers(segment.base_offset, segment.max_timestamp, newest),
            )
            return


def watermark_alone(replica: Replica) -> Broken:
    """A high watermark that has moved while the ISR is too small to commit (KIP-966)."""
    least = effective_min_isr(replica)
    if len(replica.isr) < least:
        few = f.OutOfBounds(f.Measure.IN_SYNC, len(replica.isr), f.Measure.MIN_ISR, least)
        yield "watermark-below-min-isr", few


def refused_in_sync(replica: Replica, answer: m.ProduceResponse.PartitionProduceResponse) -> Broken:
    """A Produce with acks=all that a leader refused for too few in-sync replicas, although its ISR
    is large enough."""
    least, in_sync = effective_min_isr(replica), len(replica.isr)
    if answer.error_code == _TOO_FEW and replica.is_leader and in_sync >= least:
        yield "refused-in-sync", f.OutOfBounds(f.Measure.IN_SYNC, in_sync, f.Measure.MIN_ISR, least)


def step_violations(old: ObservedReplica, new: Replica) -> Broken:
    """Violations between two observations of a replica in one life of its broker."""
    partition_epoch, log = new.registration.partition_epoch, new.log
    compared = [
        ("epoch-back", _LEADER_EPOCH, old.leader_epoch, new.leader_epoch),
        ("epoch-back", f.Measure.PARTITION_EPOCH, old.partition_epoch, partition_epoch),
    ]
    if new.is_leader and old.role is Role.LEADER and new.leader_epoch == old.leader_epoch:
        compared += [
            ("watermark-back", _HIGH_WATERMARK, old.high_watermark, new.high_watermark),
            ("start-back", _LOG_START, old.log_start_offset, log.log_start_offset),
            ("leader-truncated", _LOG_END, old.log_end_offset, log.log_end_offset),
        ]
    for name, what, before, after in compared:
        if after < before:
            yield name, f.WentBack(what, before, after)


def differing(replica: Replica, committed: Committed, start: int) -> Broken:
    """Differences between a replica and the committed records, from `start` to its own high
    watermark."""
    log = replica.log
    end = min(replica.high_watermark, committed.end)
    start = max(start, log.log_start_offset, log.first_dirty_offset)
    if start >= end:
        return
    for batch in log.batches_from(start):
        if batch.last_offset >= end:
            return
        wanted = committed.batches.get(batch.base_offset)
        if wanted is not None and not is_same(batch, wanted):
            yield "committed-differs", record_differs(batch, wanted)
            return


def record_differs(own: Batch, wanted: Batch, leader: int | None = None) -> f.RecordDiffers:
    """A batch and the committed batch at its offset.  `leader`: see RecordDiffers."""
    return f.RecordDiffers(own.base_offset, own.leader_epoch, wanted.leader_epoch, leader)


def members_behind(observed: ObservedPartition, replica: Replica) -> Broken:
    """Members of the ISR whose log ends below the leader's high watermark, although all members
    must have the committed records.  Exempt are members whose disk has lost records since the last
    fetch that the leader knows of, and members that have left the partition and come back without
    the leader's knowledge."""
    watermark = replica.high_watermark
    known = observed.replicas
    for broker in replica.isr:
        other = known.get(broker)
        if (
            other is not None
            and (end := other.log.log_end_offset) < watermark
            and not _has_come_back(observed, replica, other)
            and not _has_lost_since(observed, replica, broker)
        ):
            isr = tuple(replica.isr)
            behind = f.MemberBehind(broker, isr, end, _HIGH_WATERMARK, watermark)
            yield "watermark-above-isr", behind


def _has_come_back(observed: ObservedPartition, leader: Replica, member: ObservedReplica) -> bool:
    """Whether a member of a leader's ISR was caught up when it last fetched, and knows of a later
    registration than the leader does, while the controller does not have it in the ISR any more."""
    decided = observed.registration
    progress = leader.followers.get(member.broker)
    return (
        decided is not None
        and member.broker not in decided.isr
        and member.partition_epoch > leader.registration.partition_epoch
        and progress is not None
        and progress.log_end_offset >= leader.high_watermark
    )


def _has_lost_since(observed: ObservedPartition, leader: Replica, member: int) -> bool:
    """Whether a member's disk lost records after the fetch by which the leader knows its log end:
    that fetch was made in an earlier life of its broker, with an older broker epoch."""
    lost_epoch = observed.lost.get(member)
    progress = leader.followers.get(member)
    return lost_epoch is not None and progress is not None and progress.broker_epoch <= lost_epoch


def joins_lacking(
    observed: ObservedPartition,
    new: PartitionRegistration,
    old: PartitionRegistration,
    brokers: Mapping[int, BrokerRegistration],
) -> Broken:
    """A broker that joins the ISR without all committed records.  This is allowed if the broker's
    disk was lost and the controller does not yet know the broker's new process."""
    if new.leader != old.leader or observed.unclean_applied < observed.unclean_epoch:
        return  # an election: the leader's records are checked when it begins to lead
    end = observed.committed.end
    for broker in new.isr:
        replica = observed.replicas.get(broker)
        if broker in old.isr or replica is None or replica.log.log_end_offset >= end:
            continue
        registered = brokers.get(broker)
        lost_epoch = observed.lost.get(broker, NO_EPOCH)
        if registered is None or registered.epoch > lost_epoch:
            isr, log_end = tuple(new.isr), replica.log.log_end_offset
            yield "joined-lacking", f.MemberBehind(broker, isr, log_end, _COMMITTED_END, end)


def producer_violations(log: Log, now_ms: int, expiration_ms: int) -> Broken:
    """Differences between a log's producer table, with its transactions, and a replay of the log.
    The table may still know deleted batches, and may have forgotten a producer that was silent for
    `expiration_ms`, with its earlier batches.  A compacted log is not replayed."""
    producers = log.producer_table
    if producers is None or log.first_dirty_offset > log.log_start_offset:
        return
    start, replayed = log.log_start_offset, ProducerStates()
    for batch in log.batches_from(start):
        if batch.producer_id >= 0:
            replayed.update(batch)
    known = producers.states
    for producer, wanted in replayed.states.items():
        state = known.get(producer)
        if state is None:
            if now_ms - wanted.last_timestamp >= expiration_ms:
                continue
            yield "producers-differ", p.ProducerDiffers(producer, None, _end(wanted))
        elif _sequences(state, start) != _sequences(wanted, start) and not _is_rest(
            state, wanted, now_ms - expiration_ms
        ):
            yield "producers-differ", p.ProducerDiffers(producer, _end(state), _end(wanted))
    for producer, state in known.items():
        kept = any(batch.first_offset >= start for batch in state.batches)
        if kept and producer not in replayed.states:
            yield "producers-differ", p.ProducerDiffers(producer, _end(state), None)
    yield from _transaction_violations(producers, replayed, start)


def _transaction_violations(known: ProducerStates, replayed: ProducerStates, start: int) -> Broken:
    """Differences between the transactions of a table and those of a replayed log.  A transaction
    that began before the log's `start` is known whole, but replayed in part."""
    oldest = min((offset for _, offset in known.ongoing), default=0)
    first = known.first_unstable_offset
    if first is not None and first > oldest:
        stable = (f.Measure.LAST_STABLE, first, f.Measure.OLDEST_OPEN, oldest)
        yield "stable-above-open", f.OutOfBounds(*stable)
    table, log = _spans(known), _spans(replayed)
    whole = {key for key, span in table.items() if span.first_offset >= start}
    for key, span in table.items():
        if key in whole and log.get(key) != span:
            yield "transactions-differ", p.TransactionDiffers(key[0], span, log.get(key))
    for key, span in log.items():
        if key not in table:
            yield "transactions-differ", p.TransactionDiffers(key[0], None, span)


def _spans(producers: ProducerStates) -> dict[tuple[int, int], p.TransactionSpan]:
    """The open and the aborted transactions by producer and by the offset of the marker."""
    spans = {
        (one.producer_id, one.last_offset): p.TransactionSpan(one.first_offset, one.last_offset)
        for one in producers.aborted
    }
    for producer, first_offset in producers.ongoing:
        spans[producer, -1] = p.TransactionSpan(first_offset)
    return spans


def _sequences(state: ProducerState, start: int) -> tuple[object, ...]:
    batches = tuple(
        (batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset)
        for batch in state.batches
        if batch.first_offset >= start
    )
    return state.producer_epoch, state.next_sequence, batches


def _is_rest(known: ProducerState, replayed: ProducerState, forgotten_ms: int) -> bool:
    """Whether a table has the latest batches of a producer and lacks only earlier batches, from
    `forgotten_ms` or before: it may have forgotten the producer in between."""
    kept = len(known.batches)
    rest = replayed.batches[len(replayed.batches) - kept :]
    lacking = replayed.batches[: len(replayed.batches) - kept]
    return (
        known.producer_epoch == replayed.producer_epoch
        and kept < len(replayed.batches)
        and known.batches == rest
        and lacking[-1].timestamp <= forgotten_ms
    )


def _end(state: ProducerState) -> p.ProducerEnd:
    if not state.batches:
        return p.ProducerEnd(state.producer_epoch)
    batch = state.batches[-1]
    return p.ProducerEnd(state.producer_epoch, batch.last_sequence, batch.last_offset)


def is_behind_unclean(observed: ObservedPartition, replica: Replica) -> bool:
    """Whether a replica has not yet learned of the unclean election that changed the committed
    records, or has not yet truncated its log."""
    unclean = observed.unclean_epoch
    if unclean < 0:
        return False
    if observed.unclean_applied < unclean or replica.leader_epoch < unclean:
        return True
    assert observed.registration is not None
    return not replica.is_leader and replica.broker_id not in observed.registration.isr


def truncated_committed(observed: ObservedPartition, broker: int, replica: Replica) -> Broken:
    """Committed records that a member of the ISR has truncated."""
    registration, end = observed.registration, observed.committed.end
    if registration is None or broker not in registration.isr:
        return
    if replica.log.log_end_offset < end and not is_behind_unclean(observed, replica):
        log_end = replica.log.log_end_offset
        yield "truncated-committed", f.OutOfBounds(_LOG_END, log_end, _COMMITTED_END, end)


def acked_too_soon(
    observed: ObservedPartition,
    replica: Replica,
    answer: m.ProduceResponse.PartitionProduceResponse,
) -> Broken:
    """An answer with acks=all before its records are committed."""
    end = observed.committed.end
    if answer.base_offset >= end and not is_behind_unclean(observed, replica):
        acked = f.OutOfBounds(f.Measure.ACKED, answer.base_offset, _COMMITTED_END, end)
        yield "ack-before-commit", acked


def read_too_soon(
    observed: ObservedPartition, replica: Replica, answer: m.FetchResponse.PartitionData
) -> Broken:
    """A read of records that are not committed."""
    if not answer.records or is_behind_unclean(observed, replica):
        return
    end = observed.committed.end
    for batch in answer.records:
        if batch.last_offset >= end:
            read = f.OutOfBounds(f.Measure.READ, batch.last_offset, _COMMITTED_END, end)
            yield "read-uncommitted", read


def listed_too_low(observed: ObservedPartition, replica: Replica, listed: int) -> Broken:
    """A latest offset that the newest leader has returned to a consumer, below what was committed
    when the consumer asked (KIP-207)."""
    end = observed.committed.end
    if (
        listed < end
        and replica.leader_epoch >= observed.newest_epoch
        and not is_behind_unclean(observed, replica)
    ):
        yield "listed-too-low", f.OutOfBounds(f.Measure.LISTED, listed, _COMMITTED_END, end)


def began_uncommitted(observed: ObservedPartition, start_offset: int) -> Broken:
    """A share partition that begins beyond the committed records, and so will never deliver the
    records in between.  Not checked once an unclean election or a disk has lost records: the stored
    state keeps its start offset."""
    end = observed.committed.end
    if start_offset > end and observed.unclean_epoch < 0 and not observed.lost:
        start = f.OutOfBounds(f.Measure.SHARE_START, start_offset, _COMMITTED_END, end)
        yield "share-start-uncommitted", start


def aborted_reads(log: Log, answer: m.ShareFetchResponse.PartitionData) -> Broken:
    """A record of an aborted transaction that a member of a share group has acquired."""
    table = log.producer_table
    batches = answer.records if isinstance(answer.records, list) else ()
    for batch in batches if table is not None else ():
        assert table is not None
        if not batch.is_transactional or batch.is_control:
            continue
        first, last = batch.base_offset, batch.last_offset
        is_acquired = any(
            one.first_offset <= last and first <= one.last_offset for one in answer.acquired_records
        )
        for aborted in table.aborted_within(first, last + 1) if is_acquired else ():
            is_its = aborted.producer_id == batch.producer_id
            if is_its and aborted.first_offset <= first < aborted.last_offset:
                read = p.ReadOfAborted(first, batch.producer_id, aborted.last_offset)
                yield "read-aborted", read
                return


def extend(committed: Committed, leader: Replica) -> None:
    """Count every record below a leader's high watermark as committed from now on."""
    watermark, end = leader.high_watermark, committed.end
    if watermark <= end:
        return
    log = leader.log
    committed.end = watermark
    if log.segments and log.segments[-1].batches:
        last = log.segments[-1].batches[-1]
        if last.base_offset == end and last.last_offset + 1 == watermark:
            committed.batches[end] = last
            return
    for batch in log.batches_from(end):
        if batch.last_offset >= watermark:
            break
        # The old end may lie within a batch, because a high watermark may.
        if batch.last_offset >= end:
            committed.batches[batch.base_offset] = batch


def began_to_lead(observed: ObservedPartition, old: ObservedReplica, replica: Replica) -> Broken:
    """Violations of a new leader that begins its epoch in this step; also updates what is
    committed."""
    epoch = replica.leader_epoch
    observed.have_led[old.broker] = None
    other = observed.leaders.setdefault(epoch, (old.broker, old.life))
    if other != (old.broker, old.life):
        yield "two-leaders", f.LedBefore(epoch, *other)
    if epoch < observed.newest_epoch:
        return  # the broker learned of its election late; other brokers have led since
    observed.newest_epoch = epoch
    yield from undone(observed, replica.log, old.broker)
    committed = observed.committed
    lacking = first_lacking(replica.log, committed, observed.clean_offset())
    if observed.unclean_applied < observed.unclean_epoch <= epoch:
        # After an unclean election, only the new leader's records remain committed.
        observed.unclean_applied = observed.unclean_epoch
    elif lacking is not None:
        lost = first_lacking(replica.log, committed, observed.whole_offset())
        if lost is not None:
            yield "committed-lost", f.BeganWithout(epoch, lost)
    if lacking is not None:
        committed.cut(lacking)
        if observed.replayed is not None:
            observed.replayed.lose()
