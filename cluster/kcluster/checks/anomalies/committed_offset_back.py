"""committed-offset-back: a group's commit was acked and an older offset was fetched later.

Owns: the check and the story: a later commit of the older offset, or the history of the
group's partition of __consumer_offsets. Never: guesses: each link is a note or an answer.  Kafka:
no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.anomalies.base import Anomaly, Explanation, RunAnomaly, RunHistory, anomaly
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.chain.facts import CommitAcked, CommitWritten, OffsetAnswered
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.administered import OffsetChange, changes_within
from kcluster.checks.stories.commits import commit_ms
from kcluster.checks.stories.groups import deposed_answer, group_losses
from kcluster.checks.stories.reads import changes_between
from kcluster.contract import Note, Request
from kcluster.events.brokers import BrokerDown, DiskReplaced, RecordsLost
from kcluster.events.network import RuleHit
from kcluster.events.rule_effects import Delay
from kcluster.evidence.group_history import (
    Commit,
    FetchedOffset,
    commits_of,
    group_home,
    offset_answers,
    offsets_written,
)
from kcluster.evidence.lookups import Facts, between
from kcluster.protocol.errors import ErrorCode

_NOT_COORDINATOR: Final = ErrorCode.NOT_COORDINATOR.name


@anomaly(
    "committed-offset-back", "a group's committed offset was acked, and an older one read later"
)
class CommittedOffsetBack(RunAnomaly):
    """A group's commit was acked, and an OffsetFetch that was sent afterwards got an older offset.

    committed-offset-back: orders-0: group g committed 5 and fetched 3 later

    An administrator may reset offsets, or delete the group.  A commit that a fault rule held until
    its client had committed again is accepted; so is one that the client's next commit, on a new
    connection, has overtaken.  A coordinator that was replaced may answer until it knows
    (`allowed`).
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for one in run.ledger.commits:
            if not one.is_commit and one.offset < one.known:
                yield Finding(self.NAME, one.partition, one.group, one.offset, None, one.known)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        links = list(_forgotten(facts, anomaly))
        group, partition = anomaly.client, anomaly.partition
        committed_ms = commit_ms(facts, group, partition, anomaly.other, anomaly.first)
        until_ms = max((one.at_ms for one in links), default=committed_ms)
        written_ms = _written_ms(facts, anomaly, committed_ms)
        for change in changes_within(facts, group, partition, written_ms, until_ms):
            if _is_of(facts, anomaly, change):
                return Explanation([link(change.note), *links], change.setting)
        delayed = _delayed(facts, anomaly, committed_ms, until_ms)
        if delayed is not None:
            return Explanation([link(delayed), *links], Setting.DELAYED_COMMIT)
        if _is_overtaken(facts, anomaly, written_ms, until_ms):
            return Explanation(links, Setting.OVERTAKEN_COMMIT)
        deposed = deposed_answer(facts, group, partition, anomaly.first, committed_ms, until_ms)
        if deposed:
            return Explanation([*links, deposed[0]], Setting.DEPOSED_COORDINATOR)
        lost, allowed = group_losses(facts, group, committed_ms, until_ms, partition)
        return Explanation([*links, *lost], allowed)


def _written_ms(facts: Facts, anomaly: Anomaly, committed_ms: int) -> int:
    """The time at which the commit that was acked was written: it may have waited for replicas."""
    written = offsets_written(facts.recorder, anomaly.client, anomaly.partition)
    times_ms = (one.at_ms for one in written if one.offset == anomaly.other)
    return max((at_ms for at_ms in times_ms if at_ms <= committed_ms), default=committed_ms)


def _is_of(facts: Facts, anomaly: Anomaly, change: OffsetChange) -> bool:
    """Whether the older offset comes from an administrator's change, or from a commit since then.
    The offset of a deleted group must not come back."""
    since_ms, group, partition = change.note.at_ms, anomaly.client, anomaly.partition
    if anomaly.first == (-1 if change.offset is None else change.offset):
        return True
    return any(
        written.at_ms >= since_ms and written.offset == anomaly.first
        for written in offsets_written(facts.recorder, group, partition)
    ) or any(
        each.at_ms >= since_ms and each.offset == anomaly.first and each.is_accepted
        for each in commits_of(facts.recorder)
        if (each.group, each.partition) == (group, partition)
    )


def _delayed(facts: Facts, anomaly: Anomaly, from_ms: int, until_ms: int) -> Note | None:
    """The time at which a fault rule delayed the older commit, if that commit was written after
    the newer one. Its client had given it up and committed again, which no broker can know; or it
    sends the commit again after it has been refused.  A coordinator that was replaced meanwhile
    refuses what it has written."""
    wrote = {
        written.broker
        for written in offsets_written(facts.recorder, anomaly.client, anomaly.partition)
        if from_ms <= written.at_ms <= until_ms and written.offset == anomaly.first
    }
    commits = _commits_within(facts, anomaly, from_ms, until_ms)
    older = [(each, request) for each, request in commits if each.offset == anomaly.first]
    members = {each.member for each, _ in older if each.is_accepted}
    late = {
        (each.broker, request.connection_id, request.correlation_id)
        for each, request in older
        if each.member in members or (each.broker in wrote and each.error == _NOT_COORDINATOR)
    }
    for note in facts.notes if late else ():
        hit = note.event
        if (
            isinstance(hit, RuleHit)
            and isinstance(hit.effect, Delay)
            and (hit.broker, hit.connection_id, hit.correlation_id) in late
            and note.at_ms < from_ms
        ):
            return note
    return None


def _is_overtaken(facts: Facts, anomaly: Anomaly, from_ms: int, until_ms: int) -> bool:
    """Whether a member committed the older offset first, through a connection that it gave up; that
    request was still on its way when the newer commit arrived through the next connection."""
    sent = {anomaly.first: list[Request](), anomaly.other: list[Request]()}
    for each, request in _commits_within(facts, anomaly, from_ms, until_ms):
        if each.is_accepted and each.offset in sent:
            sent[each.offset].append(request)
    return any(
        older.body.member_id == newer.body.member_id
        and older.connection_id < newer.connection_id
        and older.arrived_ms >= newer.arrived_ms
        for older in sent[anomaly.first]
        for newer in sent[anomaly.other]
    )


def _commits_within(
    facts: Facts, anomaly: Anomaly, from_ms: int, until_ms: int
) -> Iterator[tuple[Commit, Request]]:
    """The group's commits of the partition that were answered in this time, with their requests."""
    for answer in facts.recorder.answers:
        at_ms, _, reply = answer
        for each in commits_of(facts.recorder, (answer,)) if from_ms <= at_ms <= until_ms else ():
            if (each.group, each.partition) == (anomaly.client, anomaly.partition):
                yield each, reply.request


def _forgotten(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The chain: the ack of the commit; a later commit of the older offset, or else the history of
    the group's partition; the older answer."""
    group = anomaly.client
    committed_ms = commit_ms(facts, group, anomaly.partition, anomaly.other, anomaly.first)
    fetched_ms = facts.recorder.dispatcher.now_ms
    for each in offset_answers(facts.recorder):
        if (each.group, each.partition) != (group, anomaly.partition):
            continue
        if isinstance(each, FetchedOffset):
            if each.at_ms > committed_ms and each.offset == anomaly.first:
                fetched_ms = each.at_ms
                yield Link(fetched_ms, OffsetAnswered(each.broker, group, anomaly.first))
                break
        elif each.at_ms == committed_ms:
            yield Link(committed_ms, CommitAcked(each.broker, group, anomaly.other))
    later = [
        written
        for written in offsets_written(facts.recorder, group, anomaly.partition)
        if committed_ms <= written.at_ms <= fetched_ms
    ]
    while later and later[-1].offset != anomaly.first and later[-1].at_ms == fetched_ms:
        later.pop()  # written after the answer, in the same millisecond
    if later and later[-1].offset == anomaly.first:
        # The older commit was under way for longer, or came from another member: nothing was lost.
        for written in later:
            yield Link(written.at_ms, CommitWritten(written.broker, group, written.offset))
        return
    home = group_home(facts.recorder, group)
    if home is not None:
        yield from changes_between(facts, home, committed_ms, fetched_ms)
        for note in between(facts.notes, committed_ms, fetched_ms):
            if isinstance(note.event, RecordsLost | BrokerDown | DiskReplaced):
                yield link(note)
