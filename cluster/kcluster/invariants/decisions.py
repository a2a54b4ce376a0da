"""What the controller may decide about replicas and brokers.

Owns: the rules for an ISR that it accepts, a broker that it unfences, a reassignment that it ends,
and replicas that it calls eligible.  Never: keeps state, looks at a log.  Kafka: the checks of
ReplicationControlManager.alterPartition (KIP-497, KIP-841, KIP-903), BrokerHeartbeatManager
(KIP-631), PartitionReassignmentReplicas (KIP-455), the ELR (KIP-966).

Each rule compares what the controller knew with what it decided, so it finds a wrong decision
before it does any harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kcluster.controller.partitions.reassigning import is_reassigning
from kcluster.events.partitions import LeaderElected
from kcluster.events.reasons import ElectionKind, Restarted
from kcluster.invariants import facts as f
from kcluster.metadata.records import NO_LEADER, BrokerRegistration, PartitionRegistration
from kcluster.protocol import messages as m

Problem = tuple[str, f.Observed]
Brokers = Mapping[int, BrokerRegistration]
PartitionKey = tuple[bytes, int]

_ANY_EPOCH: Final = -1


def proposals_in(
    request: m.AlterPartitionRequest,
) -> Iterator[tuple[PartitionKey, m.AlterPartitionRequest.PartitionData]]:
    """The proposals of a request, each with its partition."""
    for topic in request.topics:
        for proposal in topic.partitions:
            yield (topic.topic_id, proposal.partition_index), proposal


def outdated_proposal(
    proposal: m.AlterPartitionRequest.PartitionData,
    old: PartitionRegistration,
    new: PartitionRegistration,
    brokers: Brokers,
) -> Iterator[Problem]:
    """An accepted proposal of an ISR that was made for an older state of its partition, or of one
    of its members."""
    if new.partition_epoch == old.partition_epoch:
        return  # it was refused
    named = [
        (f.Measure.LEADER_EPOCH, proposal.leader_epoch, old.leader_epoch),
        (f.Measure.PARTITION_EPOCH, proposal.partition_epoch, old.partition_epoch),
    ]
    for member in proposal.new_isr_with_epochs or ():
        known = brokers.get(member.broker_id)
        if known is not None and member.broker_epoch != _ANY_EPOCH:
            named.append((f.Measure.BROKER_EPOCH, member.broker_epoch, known.epoch))
    for what, proposed, current in named:
        if proposed != current:
            yield "isr-outdated", f.Outdated(what, proposed, current)


def unfenced_behind(registration: BrokerRegistration, applied_offset: int) -> Iterator[Problem]:
    """A broker that was unfenced before it had applied its own registration, whose offset is its
    epoch."""
    if applied_offset < registration.epoch:
        behind = f.OutOfBounds(
            f.Measure.METADATA_OFFSET, applied_offset, f.Measure.BROKER_EPOCH, registration.epoch
        )
        yield "unfenced-behind", behind


def ended_early(new: PartitionRegistration, old: PartitionRegistration) -> Iterator[Problem]:
    """A reassignment that has ended although an added replica is not in the ISR; or, if it removes
    more replicas than it adds, although a remaining replica is not."""
    is_one_change = new.partition_epoch == old.partition_epoch + 1
    if not is_one_change or is_reassigning(new) or (new.recovering and not old.recovering):
        return
    removed = [broker for broker in old.replicas if broker not in new.replicas]
    added = [broker for broker in new.replicas if broker not in old.replicas] or old.adding_replicas
    is_cancelled = any(broker not in new.replicas for broker in old.adding_replicas)
    if is_cancelled or not (added or removed):
        return
    needed = new.replicas if len(added) < len(removed) else added
    late = tuple(broker for broker in needed if broker not in new.isr)
    if late:
        yield "reassigned-early", f.Misplaced(late, f.Fault.NOT_IN_SYNC, tuple(new.isr))


def needless_elr(registration: PartitionRegistration, min_isr: int) -> Iterator[Problem]:
    """An ELR beside an ISR that is large enough to commit without it.  `min_isr`:
    min.insync.replicas; a change of it empties the ELR (Kafka: ClearElrRecord)."""
    isr, elr = tuple(registration.isr), tuple(registration.elr)
    if elr and len(isr) >= min_isr:
        yield "elr-needless", f.Misplaced(elr, f.Fault.NEEDLESS, isr)


def eligible_newcomers(new: PartitionRegistration, old: PartitionRegistration) -> Iterator[Problem]:
    """Members of the ISR or the ELR that have just become replicas: their logs are empty."""
    newcomers = [broker for broker in new.replicas if broker not in old.replicas]
    found = tuple(broker for broker in newcomers if broker in new.isr or broker in new.elr)
    if found:
        yield "eligible-newcomer", f.Misplaced(found, f.Fault.NEWCOMER, tuple(old.replicas))


def outdated_last_known(new: PartitionRegistration) -> Iterator[Problem]:
    """A last known leader that is remembered although there is a leader: it may lack records that
    were committed since, but be elected when no other replica is left.  Kafka:
    PartitionChangeBuilder.maybeUpdateLastKnownLeader."""
    if new.leader != NO_LEADER and new.last_known_elr:
        yield "last-known-outdated", f.OutlivedElr(new.last_known_elr[0], (), new.leader)


def needless_last_known(change: LeaderElected, old: PartitionRegistration) -> Iterator[Problem]:
    """The election of a last known leader, which may lose records, while an eligible replica may
    come back.  A broker that has just restarted uncleanly is no longer eligible; nor is a broker
    that is no longer a replica but stays in the ELR, without its records, until the ELR changes."""
    if change.election is not ElectionKind.LAST_KNOWN_LEADER:
        return
    reason, restarted = change.reason, -1
    if isinstance(reason, Restarted) and not reason.clean:
        restarted = reason.broker
    known = (broker for broker in (*old.isr, *old.elr) if broker in old.replicas)
    eligible = tuple(broker for broker in known if broker != restarted)
    if eligible and change.leader_epoch == old.leader_epoch + 1:
        yield "last-known-outdated", f.OutlivedElr(change.new_leader, eligible)
