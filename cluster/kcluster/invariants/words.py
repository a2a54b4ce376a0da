"""The words for broken invariants: the one place where what was observed becomes a sentence.

Owns: these sentences.  Never: decides anything.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.invariants import facts as f


def observed_text(fact: f.Observed) -> str:
    """The sentence about what was observed, without its time and subject."""
    match fact:
        case f.WentBack():
            return f"{fact.what} {fact.before} -> {fact.after}"
        case f.OutOfBounds():
            return f"{fact.what} {fact.value}, {fact.bound} {fact.limit}"
        case f.Outdated():
            return f"{fact.what} {fact.named} was named, {fact.current} was current"
        case f.MemberBehind():
            ends = f"broker {fact.broker} of the ISR {list(fact.isr)} ends at {fact.log_end}"
            return f"{ends}, {fact.bound} {fact.limit}"
        case f.Misplaced():
            return f"{list(fact.brokers)} {fact.fault} {list(fact.others)}"
        case f.LeaderOutside() | f.LeaderReplaced() | f.LedBefore() | f.BeganWithout():
            return _leader_text(fact)
        case (
            f.RecordDiffers()
            | f.EpochDiffers()
            | f.ProducerDiffers()
            | f.TransactionDiffers()
            | f.SegmentDiffers()
        ):
            return _difference_text(fact)
        case f.TimeDiffers() | f.AnswerDiffers() | f.Muted():
            return _answer_text(fact)
        case f.ProgressKept():
            known = f"broker {fact.follower} is known to end at {fact.log_end}"
            return f"{known}, but it has not fetched in this epoch"
        case (
            f.BatchAltered()
            | f.NewestRemoved()
            | f.OlderKept()
            | f.SequenceRemoved()
            | f.CleanedTooYoung()
        ):
            return _compaction_text(fact)
        case f.GroupWentBack() | f.AssignedTwice() | f.StaleCommit():
            return _promise_text(fact)
        case f.FencedAlone() | f.GivenTwice():
            return _identity_text(fact)
        case (
            f.HeldDiffers()
            | f.OtherwiseEnded()
            | f.RefusedProducer()
            | f.OffsetGiven()
            | f.UnstableRead()
            | f.StatePruned()
            | f.PassedUnsettled()
        ):
            return _coordinator_text(fact)
        case f.ProducerWentBack() | f.MarkerStrays() | f.EarlyMarker() | f.UnverifiedBatch():
            return _appended_text(fact)
        case f.StaleRequest() | f.GivenAway() | f.PlaceLost() | f.Overdue():
            return _membership_text(fact)
        case f.ReadOfAborted() | f.HeldBy() | f.NotLoaded() | f.NotAsked() | f.Locked() | f.Idle():
            return _share_text(fact)
        case f.AnsweredTwice() | f.Unanswered() | f.Stall() | f.OverdueTransaction():
            return _progress_text(fact)
        case f.HeldBack() | f.Silent() | f.TimeStoodStill():
            return _silence_text(fact)
        case f.LeftInSync() | f.KeptLaggard() | f.OutlivedElr() | f.NotPreferred():
            return _in_sync_text(fact)
        case f.LogLeft() | f.KeptSegment() | f.HeldDeletion():
            return _deletion_text(fact)
    raise AssertionError(f"no words for {fact}")


def _leader_text(fact: f.LeaderOutside | f.LeaderReplaced | f.LedBefore | f.BeganWithout) -> str:
    match fact:
        case f.LeaderOutside(elr=elr):
            where = "ISR" if elr is None else "ISR and ELR were"
            return f"leader {fact.leader}, {where} {[*fact.isr, *(elr or ())]}"
        case f.LeaderReplaced():
            return f"leader {fact.before} -> {fact.after}, epoch {fact.leader_epoch}"
        case f.LedBefore():
            led_by = f"broker {fact.broker}, life {fact.life}"
            return f"epoch {fact.leader_epoch} was led by {led_by}"
        case f.BeganWithout():
            without = f"without what is committed from {fact.offset} on"
            return f"epoch {fact.leader_epoch} begins {without}"


def _difference_text(
    fact: (
        f.RecordDiffers
        | f.EpochDiffers
        | f.ProducerDiffers
        | f.TransactionDiffers
        | f.SegmentDiffers
    ),
) -> str:
    match fact:
        case f.SegmentDiffers():
            segment = f"the segment of offset {fact.base_offset} has {fact.what} {fact.kept}"
            return f"{segment}, its batches {fact.given}"
        case f.RecordDiffers(leader=by):
            where = "where it was committed" if by is None else f"on broker {by} at the end"
            here = f"offset {fact.offset} is of epoch {fact.leader_epoch} here"
            return f"{here}, of epoch {fact.committed_epoch} {where}"
        case f.EpochDiffers():
            at = f"offset {fact.offset} is of epoch {fact.leader_epoch}"
            return f"{at}, of epoch {fact.in_cache} in the cache of epochs"
        case f.ProducerDiffers(producer_id=own):
            in_table, in_log = _end_text(fact.table), _end_text(fact.log)
            return f"producer {own}: the table has {in_table}, the log {in_log}"
        case f.TransactionDiffers(producer_id=own):
            in_table, in_log = _span_text(fact.table), _span_text(fact.log)
            return f"producer {own}: the table has {in_table}, the log {in_log}"


def _compaction_text(
    fact: f.BatchAltered | f.NewestRemoved | f.OlderKept | f.SequenceRemoved | f.CleanedTooYoung,
) -> str:
    match fact:
        case f.BatchAltered():
            return f"the batch at offset {fact.offset} has another {fact.what}"
        case f.NewestRemoved():
            return f"the newest record of its key is gone: {_some(fact)}"
        case f.OlderKept():
            return f"an older record of its key is still there: {_some(fact)}"
        case f.CleanedTooYoung():
            cleaned = f"the batch at offset {fact.offset} was cleaned at an age of {fact.age_ms} ms"
            return f"{cleaned}; min.compaction.lag.ms is {fact.lag_ms}"
        case f.SequenceRemoved():
            gone = f"sequence {fact.sequence} at offset {fact.offset}"
            return f"the last batch of producer {fact.producer_id} is gone: {gone}"


def _promise_text(fact: f.GroupWentBack | f.AssignedTwice | f.StaleCommit) -> str:
    match fact:
        case f.GroupWentBack(member=member):
            of = f" of {member}" if member else ""
            return f"{fact.what}{of} {fact.before} -> {fact.after}"
        case f.AssignedTwice():
            return f"{fact.member} got two assignments in generation {fact.generation}"
        case f.StaleCommit():
            stale = f"a commit of {fact.member} in generation {fact.generation}"
            return f"{stale}, after one of {fact.other} in generation {fact.later}"


def _identity_text(fact: f.FencedAlone | f.GivenTwice) -> str:
    match fact:
        case f.FencedAlone():
            producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
            return f"{fact.error} to {producer}, whose transactional id no other producer has"
        case f.GivenTwice():
            return f"producer id {fact.producer_id} was given to {fact.first} and to {fact.second}"


def _appended_text(
    fact: f.ProducerWentBack | f.MarkerStrays | f.EarlyMarker | f.UnverifiedBatch,
) -> str:
    producer = f"producer {fact.producer_id}"
    match fact:
        case f.ProducerWentBack():
            return f"{producer}: {fact.what} {fact.before} -> {fact.after} at offset {fact.offset}"
        case f.MarkerStrays():
            result = "commit" if fact.is_commit else "abort"
            epochs = f"epoch {fact.producer_epoch}, coordinator epoch {fact.coordinator_epoch}"
            return f"{result} marker of {producer} ({epochs}) at offset {fact.offset}"
        case f.EarlyMarker():
            result = "commit" if fact.is_commit else "abort"
            marker = f"the {result} marker of {producer}, epoch {fact.producer_epoch}"
            return f"{marker}, was confirmed; it is not committed up to {fact.committed_end}"
        case f.UnverifiedBatch():
            begins = f"a transaction of {producer}, epoch {fact.producer_epoch}, begins"
            state = fact.state or "unknown"
            return f"{begins} at offset {fact.offset}; at its coordinator it is {state}"


def _coordinator_text(
    fact: (
        f.HeldDiffers
        | f.OtherwiseEnded
        | f.RefusedProducer
        | f.OffsetGiven
        | f.UnstableRead
        | f.StatePruned
        | f.PassedUnsettled
    ),
) -> str:
    match fact:
        case f.OffsetGiven() | f.UnstableRead():
            return _offset_text(fact)
        case f.RefusedProducer():
            producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
            asked = f"{fact.error} to {fact.request} of {producer}"
            return f"{asked}; its transaction is {fact.state}, epoch {fact.epoch}"
        case f.PassedUnsettled():
            which = f"group {fact.group}, partition {fact.partition}"
            return f"the start offset of {which} has passed offset {fact.offset}, not settled"
        case f.StatePruned():
            snapshot = f"the snapshot of group {fact.group}, partition {fact.partition}"
            return f"{snapshot} was at {fact.snapshot_offset}, the log starts at {fact.log_start}"
        case f.HeldDiffers():
            what = f"{fact.field} of {fact.what}" if fact.field else fact.what
            return (
                f"{what}: {fact.held or 'nothing'} in memory, {fact.logged or 'nothing'} in the log"
            )
        case f.OtherwiseEnded():
            end = "commit" if fact.is_commit else "abort"
            return f"the {end} in epoch {fact.producer_epoch} was confirmed; it is {fact.state}"


def _offset_text(fact: f.UnstableRead | f.OffsetGiven) -> str:
    where = f"{fact.topic}-{fact.partition} of group {fact.group}"
    match fact:
        case f.UnstableRead():
            return (
                f"offset {fact.offset} of {where} was given, which an open transaction may change"
            )
        case f.OffsetGiven():
            given = f"offset {fact.offset}, leader epoch {fact.leader_epoch}"
            had = f" and metadata {fact.metadata!r}" if fact.metadata else ""
            why = "which was deleted" if fact.is_deleted else "which nobody has committed"
            return f"{given}{had} of {where} was given, {why}"


def _membership_text(fact: f.StaleRequest | f.GivenAway | f.PlaceLost | f.Overdue) -> str:
    match fact:
        case f.StaleRequest():
            served = f"{fact.request} of {fact.member} with {fact.what} {fact.own} was served"
            return (
                f"{served}, after it had left"
                if fact.newest < 0
                else f"{served}, after {fact.newest} had begun"
            )
        case f.GivenAway():
            commit = f"a commit of {fact.member} with member epoch {fact.epoch}"
            return (
                f"{commit}, after {fact.owner} had partition {fact.partition} in epoch {fact.since}"
            )
        case f.PlaceLost():
            return f"{fact.member} lost its place, though it had not left and was not removed"
        case f.Overdue():
            served = f"{fact.request} of {fact.member} was served"
            return f"{served}, though {fact.late} {fact.duty} for {fact.at_ms - fact.since_ms} ms"


def _share_text(
    fact: f.ReadOfAborted | f.HeldBy | f.NotLoaded | f.NotAsked | f.Locked | f.Idle,
) -> str:
    match fact:
        case f.Idle():
            target = f"the assignment of epoch {fact.epoch}"
            return f"{fact.member} has no partition in {target}, though others have"
        case f.ReadOfAborted():
            aborted = f"producer {fact.producer_id} aborted at {fact.marker_offset}"
            return f"offset {fact.offset} was delivered, which {aborted}"
        case f.HeldBy():
            return f"{fact.member} had offset {fact.offset}, while {fact.holder} held it"
        case f.Locked(member=member):
            if not member:
                late = f"{fact.at_ms - fact.until_ms} ms after the end of its lock"
                return f"offset {fact.offset} is still acquired, {late}"
            left = f"{fact.until_ms - fact.at_ms} ms before its end"
            return f"{member} lost its lock on offset {fact.offset}, {left}"
        case f.NotAsked():
            return f"{fact.member} got offset {fact.offset} of a partition that it does not fetch"
        case f.NotLoaded():
            led = f"a leader that has not loaded the state since epoch {fact.leader_epoch} began"
            return f"offset {fact.offset} was delivered by {led}"


def _answer_text(fact: f.TimeDiffers | f.AnswerDiffers | f.Muted) -> str:
    match fact:
        case f.Muted():
            request = f"{fact.request} of connection {fact.connection_id}"
            return f"{request} was answered, though it was muted until {fact.until_ms} ms"
        case f.TimeDiffers():
            held = f"the segment at offset {fact.base_offset} has {fact.held} as newest time"
            return f"{held}, its records have {fact.newest}"
        case f.AnswerDiffers():
            return (
                f"{fact.what}: {fact.given or 'nothing'} is given, {fact.due or 'nothing'} is due"
            )


def _in_sync_text(fact: f.LeftInSync | f.KeptLaggard | f.OutlivedElr | f.NotPreferred) -> str:
    match fact:
        case f.LeftInSync():
            leaves = f"broker {fact.broker} was to leave the ISR {list(fact.isr)}"
            return f"{leaves}, though it had every record {fact.at_ms - fact.fetched_ms} ms before"
        case f.KeptLaggard():
            stays = f"broker {fact.broker} stayed in the ISR {list(fact.isr)}"
            lacking = f"lacked the records from {fact.log_end} on"
            return f"{stays}, though it {lacking} for {fact.until_ms - fact.since_ms} ms"
        case f.OutlivedElr(leader=-1):
            elected = f"last known leader {fact.last_known} was elected"
            return f"{elected}, though {list(fact.eligible)} were eligible"
        case f.NotPreferred():
            led = f"broker {fact.leader} led for {fact.until_ms - fact.since_ms} ms"
            return f"{led}, though the preferred leader {fact.preferred} was in sync and active"
        case f.OutlivedElr():
            return f"last known leader is {fact.last_known}, though {fact.leader} leads"


def _deletion_text(fact: f.LogLeft | f.KeptSegment | f.HeldDeletion) -> str:
    match fact:
        case f.LogLeft():
            return f"partition {fact.partition} of topic id {fact.topic_id.hex()[:8]}"
        case f.KeptSegment():
            due = f"was due for {fact.until_ms - fact.since_ms} ms"
            return f"the segment at offset {fact.base_offset} {due}, and is still there"
        case f.HeldDeletion():
            deleted = f"every live replica has deleted the records before {fact.before}"
            return f"{deleted}, but DeleteRecords still waits"


def _silence_text(fact: f.HeldBack | f.Silent | f.TimeStoodStill) -> str:
    match fact:
        case f.TimeStoodStill():
            return fact.steps
        case f.HeldBack():
            known = f"all active brokers know the metadata up to {fact.metadata_offset}"
            return f"it may not shut down, though it leads nothing and {known}"
        case f.Silent():
            return f"no heartbeat for {fact.until_ms - fact.since_ms} ms, and it is not fenced"


def _progress_text(fact: f.AnsweredTwice | f.Unanswered | f.Stall | f.OverdueTransaction) -> str:
    match fact:
        case f.AnsweredTwice():
            return f"request {fact.correlation_id} of connection {fact.connection_id}"
        case f.Unanswered():
            return f"{fact.request} of {fact.asked_ms} ms"
        case f.Stall():
            watermark = f"watermark {fact.high_watermark} of leader {fact.leader}"
            stood = f"{watermark} stood still for {fact.duration_ms} ms"
            return f"{stood}; its log ends at {fact.log_end_offset}"
        case f.OverdueTransaction(is_decided=is_decided):
            was = "decided, without its markers," if is_decided else "open beyond its timeout"
            producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
            which = f"transaction {fact.transactional_id} ({producer})"
            return f"{which} was {was} for {fact.duration_ms} ms"


def _end_text(end: f.ProducerEnd | None) -> str:
    if end is None:
        return "none of it"
    if end.offset < 0:
        return f"epoch {end.epoch} without batches"
    return f"epoch {end.epoch}, sequences up to {end.sequence} at offset {end.offset}"


def _some(fact: f.NewestRemoved | f.OlderKept) -> str:
    first = f"offset {fact.offset}"
    return first if fact.count == 1 else f"{first} and {fact.count - 1} more"


def _span_text(span: f.TransactionSpan | None) -> str:
    if span is None:
        return "none"
    if span.marker_offset < 0:
        return f"one open since offset {span.first_offset}"
    return f"one from {span.first_offset}, aborted at {span.marker_offset}"
