"""The words for broken invariants: the one place where what was observed becomes a sentence.

Owns: these sentences, in the order of facts.py.  Never: decides anything.  Kafka: no counterpart.
"""

from __future__ import annotations

from functools import singledispatch

from kcluster.invariants import facts as f
from kcluster.invariants import group_facts as g
from kcluster.invariants import producer_facts as p


@singledispatch
def observed_text(fact: f.Observed) -> str:
    """The sentence about what was observed, without its time and subject."""
    raise AssertionError(f"no words for {fact}")


@observed_text.register
def _(fact: f.WentBack) -> str:
    return f"{fact.what} {fact.before} -> {fact.after}"


@observed_text.register
def _(fact: f.OutOfBounds) -> str:
    return f"{fact.what} {fact.value}, {fact.bound} {fact.limit}"


@observed_text.register
def _(fact: f.Outdated) -> str:
    return f"{fact.what} {fact.named} was named, {fact.current} was current"


@observed_text.register
def _(fact: f.MemberBehind) -> str:
    ends = f"broker {fact.broker} of the ISR {list(fact.isr)} ends at {fact.log_end}"
    return f"{ends}, {fact.bound} {fact.limit}"


@observed_text.register
def _(fact: f.Misplaced) -> str:
    return f"{list(fact.brokers)} {fact.fault} {list(fact.others)}"


@observed_text.register
def _(fact: f.LeaderOutside) -> str:
    where = "ISR" if fact.elr is None else "ISR and ELR were"
    return f"leader {fact.leader}, {where} {[*fact.isr, *(fact.elr or ())]}"


@observed_text.register
def _(fact: f.LeaderReplaced) -> str:
    return f"leader {fact.before} -> {fact.after}, epoch {fact.leader_epoch}"


@observed_text.register
def _(fact: f.LedBefore) -> str:
    led_by = f"broker {fact.broker}, life {fact.life}"
    return f"epoch {fact.leader_epoch} was led by {led_by}"


@observed_text.register
def _(fact: f.BeganWithout) -> str:
    without = f"without what is committed from {fact.offset} on"
    return f"epoch {fact.leader_epoch} begins {without}"


@observed_text.register
def _(fact: f.RecordDiffers) -> str:
    end = f"on broker {fact.leader} at the end"
    where = "where it was committed" if fact.leader is None else end
    here = f"offset {fact.offset} is of epoch {fact.leader_epoch} here"
    return f"{here}, of epoch {fact.committed_epoch} {where}"


@observed_text.register
def _(fact: f.EpochDiffers) -> str:
    at = f"offset {fact.offset} is of epoch {fact.leader_epoch}"
    return f"{at}, of epoch {fact.in_cache} in the cache of epochs"


@observed_text.register
def _(fact: f.ProgressKept) -> str:
    known = f"broker {fact.follower} is known to end at {fact.log_end}"
    return f"{known}, but it has not fetched in this epoch"


@observed_text.register
def _(fact: f.HeldBack) -> str:
    known = f"all active brokers know the metadata up to {fact.metadata_offset}"
    return f"it may not shut down, though it leads nothing and {known}"


@observed_text.register
def _(fact: f.Silent) -> str:
    return f"no heartbeat for {fact.until_ms - fact.since_ms} ms, and it is not fenced"


@observed_text.register
def _(fact: f.LogLeft) -> str:
    return f"partition {fact.partition} of topic id {fact.topic_id.hex()[:8]}"


@observed_text.register
def _(fact: f.BatchAltered) -> str:
    return f"the batch at offset {fact.offset} has another {fact.what}"


@observed_text.register
def _(fact: f.TimeDiffers) -> str:
    held = f"the segment at offset {fact.base_offset} has {fact.held} as newest time"
    return f"{held}, its records have {fact.newest}"


@observed_text.register
def _(fact: p.ProducerDiffers) -> str:
    in_table, in_log = _end_text(fact.table), _end_text(fact.log)
    return f"producer {fact.producer_id}: the table has {in_table}, the log {in_log}"


@observed_text.register
def _(fact: p.TransactionDiffers) -> str:
    in_table, in_log = _span_text(fact.table), _span_text(fact.log)
    return f"producer {fact.producer_id}: the table has {in_table}, the log {in_log}"


@observed_text.register
def _(fact: f.NewestRemoved) -> str:
    return f"the newest record of its key is gone: {_some(fact)}"


@observed_text.register
def _(fact: f.OlderKept) -> str:
    return f"an older record of its key is still there: {_some(fact)}"


@observed_text.register
def _(fact: p.SequenceRemoved) -> str:
    gone = f"sequence {fact.sequence} at offset {fact.offset}"
    return f"the last batch of producer {fact.producer_id} is gone: {gone}"


@observed_text.register
def _(fact: g.GroupWentBack) -> str:
    of = f" of {fact.member}" if fact.member else ""
    return f"{fact.what}{of} {fact.before} -> {fact.after}"


@observed_text.register
def _(fact: g.AssignedTwice) -> str:
    return f"{fact.member} got two assignments in generation {fact.generation}"


@observed_text.register
def _(fact: g.StaleCommit) -> str:
    stale = f"a commit of {fact.member} in generation {fact.generation}"
    return f"{stale}, after one of {fact.other} in generation {fact.later}"


@observed_text.register
def _(fact: g.StaleRequest) -> str:
    served = f"{fact.request} of {fact.member} with {fact.what} {fact.own} was served"
    return (
        f"{served}, after it had left"
        if fact.newest < 0
        else f"{served}, after {fact.newest} had begun"
    )


@observed_text.register
def _(fact: g.ToldUncommitted) -> str:
    told = f"{fact.request} of {fact.member} was answered with {fact.what} {fact.told}"
    return f"{told}, and {fact.committed or 'none'} is committed"


@observed_text.register
def _(fact: g.GivenAway) -> str:
    commit = f"a commit of {fact.member} with member epoch {fact.epoch}"
    return f"{commit}, after {fact.owner} had partition {fact.partition} in epoch {fact.since}"


@observed_text.register
def _(fact: g.Unmatched) -> str:
    return f"{fact.topic} matches {fact.regex}, and the group has not found it"


@observed_text.register
def _(fact: g.CommitRefused) -> str:
    commit = f"a commit of {fact.member} with member epoch {fact.epoch} of {fact.newest}"
    return f"{commit} was refused, though it has partition {fact.partition} since {fact.since}"


@observed_text.register
def _(fact: g.StateKept) -> str:
    return f"offsets {fact.first_offset} to {fact.last_offset} have a state from before"


@observed_text.register
def _(fact: g.HeldBy) -> str:
    return f"{fact.member} had offset {fact.offset}, while {fact.holder} held it"


@observed_text.register
def _(fact: g.Locked) -> str:
    if not fact.member:
        late = f"{fact.at_ms - fact.until_ms} ms after the end of its lock"
        return f"offset {fact.offset} is still acquired, {late}"
    left = f"{fact.until_ms - fact.at_ms} ms before its end"
    return f"{fact.member} lost its lock on offset {fact.offset}, {left}"


@observed_text.register
def _(fact: g.StatePruned) -> str:
    snapshot = f"the snapshot of group {fact.group}, partition {fact.partition}"
    return f"{snapshot} was at {fact.snapshot_offset}, the log starts at {fact.log_start}"


@observed_text.register
def _(fact: g.PassedUnsettled) -> str:
    which = f"group {fact.group}, partition {fact.partition}"
    return f"the start offset of {which} has passed offset {fact.offset}, not settled"


@observed_text.register
def _(fact: g.Idle) -> str:
    target = f"the assignment of epoch {fact.epoch}"
    return f"{fact.member} has no partition in {target}, though others have"


@observed_text.register
def _(fact: f.SegmentDiffers) -> str:
    segment = f"the segment of offset {fact.base_offset} has {fact.what} {fact.kept}"
    return f"{segment}, its batches {fact.given}"


@observed_text.register
def _(fact: f.RegisteredEarly) -> str:
    since = f"{fact.at_ms - fact.heartbeat_ms} ms after a heartbeat of the process before it"
    return f"a process was registered {since}; a session lasts {fact.timeout_ms} ms"


@observed_text.register
def _(fact: f.EndCompacted) -> str:
    return (
        f"the batch at {fact.offset} is gone, which ended at high watermark {fact.high_watermark}"
    )


@observed_text.register
def _(fact: f.KeptBack) -> str:
    return f"a fetch from {fact.offset} on got nothing; readable up to {fact.readable_end}"


@observed_text.register
def _(fact: f.StoppedUnfenced) -> str:
    return f"it was told to shut down, and is not fenced in broker epoch {fact.epoch}"


@observed_text.register
def _(fact: f.StartBehind) -> str:
    begins = f"the log of follower {fact.follower} begins at {fact.log_start}"
    return f"{begins}, its leader's at {fact.due}"


@observed_text.register
def _(fact: f.NotCleaned) -> str:
    old = f"the batch at {fact.offset} is {fact.age_ms} ms old"
    return f"{old} and was not cleaned; max.compaction.lag.ms is {fact.lag_ms}"


@observed_text.register
def _(fact: f.LeaderDenied) -> str:
    return f"a fetch got {fact.error} from the leader of epoch {fact.leader_epoch}"


@observed_text.register
def _(fact: f.SentOutside) -> str:
    return f"a consumer was sent to broker {fact.broker}; the ISR is {list(fact.isr)}"


@observed_text.register
def _(fact: f.UnexpectedError) -> str:
    return f"{fact.request} was answered {fact.error}"


@observed_text.register
def _(fact: g.SessionLost) -> str:
    return f"{fact.member} lost its share session, though its connection was open"


@observed_text.register
def _(fact: f.CleanedTooYoung) -> str:
    cleaned = f"the batch at offset {fact.offset} was cleaned at an age of {fact.age_ms} ms"
    return f"{cleaned}; min.compaction.lag.ms is {fact.lag_ms}"


@observed_text.register
def _(fact: g.NotAsked) -> str:
    return f"{fact.member} got offset {fact.offset} of a partition that it does not fetch"


@observed_text.register
def _(fact: g.NotLoaded) -> str:
    led = f"a leader that has not loaded the state since epoch {fact.leader_epoch} began"
    return f"offset {fact.offset} was delivered by {led}"


@observed_text.register
def _(fact: p.ReadOfAborted) -> str:
    aborted = f"producer {fact.producer_id} aborted at {fact.marker_offset}"
    return f"offset {fact.offset} was delivered, which {aborted}"


@observed_text.register
def _(fact: g.PlaceLost) -> str:
    return f"{fact.member} lost its place, though it had not left and was not removed"


@observed_text.register
def _(fact: g.Overdue) -> str:
    served = f"{fact.request} of {fact.member} was served"
    return f"{served}, though {fact.late} {fact.duty} for {fact.at_ms - fact.since_ms} ms"


@observed_text.register
def _(fact: g.NoRebalance) -> str:
    return f"{fact.member} joined {fact.how}, and got the old generation {fact.generation}"


@observed_text.register
def _(fact: p.FencedAlone) -> str:
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    return f"{fact.error} to {producer}, whose transactional id no other producer has"


@observed_text.register
def _(fact: p.ProducerWentBack) -> str:
    producer = f"producer {fact.producer_id}"
    return f"{producer}: {fact.what} {fact.before} -> {fact.after} at offset {fact.offset}"


@observed_text.register
def _(fact: p.SequenceGap) -> str:
    batch = f"the batch at offset {fact.offset} of producer {fact.producer_id}"
    epoch = f"epoch {fact.producer_epoch}"
    return f"{batch}, {epoch}, has sequence {fact.sequence}, where {fact.due} is due"


@observed_text.register
def _(fact: p.MarkerStrays) -> str:
    producer = f"producer {fact.producer_id}"
    result = "commit" if fact.is_commit else "abort"
    epochs = f"epoch {fact.producer_epoch}, coordinator epoch {fact.coordinator_epoch}"
    return f"{result} marker of {producer} ({epochs}) at offset {fact.offset}"


@observed_text.register
def _(fact: p.EarlyMarker) -> str:
    producer = f"producer {fact.producer_id}"
    result = "commit" if fact.is_commit else "abort"
    marker = f"the {result} marker of {producer}, epoch {fact.producer_epoch}"
    return f"{marker}, was confirmed; it is not committed up to {fact.committed_end}"


@observed_text.register
def _(fact: p.UnverifiedBatch) -> str:
    producer = f"producer {fact.producer_id}"
    begins = f"a transaction of {producer}, epoch {fact.producer_epoch}, begins"
    state = fact.state or "unknown"
    return f"{begins} at offset {fact.offset}; at its coordinator it is {state}"


@observed_text.register
def _(fact: p.VerifiedOtherwise) -> str:
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    verified = f"{fact.topic}-{fact.partition} was verified for {producer}"
    return f"{verified}, which has no open transaction there; it is {fact.state or 'unknown'}"


@observed_text.register
def _(fact: p.ZombieServed) -> str:
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    return f"{fact.request} of {producer}, was served, after epoch {fact.newest} had begun anew"


@observed_text.register
def _(fact: f.HeldDiffers) -> str:
    what = f"{fact.field} of {fact.what}" if fact.field else fact.what
    return f"{what}: {fact.held or 'nothing'} in memory, {fact.logged or 'nothing'} in the log"


@observed_text.register
def _(fact: p.OtherwiseEnded) -> str:
    end = "commit" if fact.is_commit else "abort"
    return f"the {end} in epoch {fact.producer_epoch} was confirmed; it is {fact.state}"


@observed_text.register
def _(fact: p.RefusedProducer) -> str:
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    asked = f"{fact.error} to {fact.request} of {producer}"
    return f"{asked}; its transaction is {fact.state}, epoch {fact.epoch}"


@observed_text.register
def _(fact: g.UnstableRead) -> str:
    where = f"{fact.topic}-{fact.partition} of group {fact.group}"
    given = f"offset {fact.offset} of {where} was given"
    return f"{given}, which an open transaction may change"


@observed_text.register
def _(fact: f.AnswerDiffers) -> str:
    return f"{fact.what}: {fact.given or 'nothing'} is given, {fact.due or 'nothing'} is due"


@observed_text.register
def _(fact: f.LeftInSync) -> str:
    leaves = f"broker {fact.broker} was to leave the ISR {list(fact.isr)}"
    return f"{leaves}, though it had every record {fact.at_ms - fact.fetched_ms} ms before"


@observed_text.register
def _(fact: f.KeptLaggard) -> str:
    stays = f"broker {fact.broker} stayed in the ISR {list(fact.isr)}"
    lacking = f"lacked the records from {fact.log_end} on"
    return f"{stays}, though it {lacking} for {fact.until_ms - fact.since_ms} ms"


@observed_text.register
def _(fact: f.Muted) -> str:
    request = f"{fact.request} of connection {fact.connection_id}"
    return f"{request} was answered, though it was muted until {fact.until_ms} ms"


@observed_text.register
def _(fact: f.NotPreferred) -> str:
    led = f"broker {fact.leader} led for {fact.until_ms - fact.since_ms} ms"
    return f"{led}, though the preferred leader {fact.preferred} was in sync and active"


@observed_text.register
def _(fact: p.GivenTwice) -> str:
    return f"producer id {fact.producer_id} was given to {fact.first} and to {fact.second}"


@observed_text.register
def _(fact: g.RemovedEarly) -> str:
    early = f"{fact.due_ms - fact.at_ms} ms before it was late"
    return f"{fact.member} was removed ({fact.reason}), {early}"


@observed_text.register
def _(fact: g.RemovedWaiting) -> str:
    waited = f"its {fact.request} had waited for {fact.at_ms - fact.since_ms} ms"
    return f"{fact.member} was removed ({fact.reason}), though {waited}"


@observed_text.register
def _(fact: g.GivenTogether) -> str:
    last = f"{fact.member} got offset {fact.offset} for the last time ({fact.deliveries})"
    return f"{last}, and {fact.records - 1} more records with it"


@observed_text.register
def _(fact: g.Dropped) -> str:
    kind = "a classic group" if fact.is_classic else "a group with epochs"
    became = f"the group became {kind} in generation {fact.generation}"
    return f"{became}, and no member has partition {fact.partition} any more"


@observed_text.register
def _(fact: f.DeletedEarly) -> str:
    limits = f"retention.ms is {fact.retention_ms}, retention.bytes is {fact.retention_bytes}"
    deleted = f"offset {fact.offset} was deleted at an age of {fact.age_ms} ms"
    return f"{deleted}, with {fact.left_bytes} bytes after it; {limits}"


@observed_text.register
def _(fact: f.DeletedAgain) -> str:
    begins = f"the log of its leader begins at {fact.start_offset}"
    return f"{begins}, though the records before {fact.before} were deleted"


@observed_text.register
def _(fact: f.KeptSegment) -> str:
    due = f"was due for {fact.until_ms - fact.since_ms} ms"
    return f"the segment at offset {fact.base_offset} {due}, and is still there"


@observed_text.register
def _(fact: f.HeldDeletion) -> str:
    deleted = f"every live replica has deleted the records before {fact.before}"
    return f"{deleted}, but DeleteRecords still waits"


@observed_text.register
def _(fact: f.OutlivedElr) -> str:
    if fact.leader >= 0:
        return f"last known leader is {fact.last_known}, though {fact.leader} leads"
    elected = f"last known leader {fact.last_known} was elected"
    return f"{elected}, though {list(fact.eligible)} were eligible"


@observed_text.register
def _(fact: g.OffsetGiven) -> str:
    where = f"{fact.topic}-{fact.partition} of group {fact.group}"
    given = f"offset {fact.offset}, leader epoch {fact.leader_epoch}"
    had = f" and metadata {fact.metadata!r}" if fact.metadata else ""
    why = "which was deleted" if fact.is_deleted else "which was never committed"
    return f"{given}{had} of {where} was given, {why}"


@observed_text.register
def _(fact: g.PendingExpired) -> str:
    place = f"{fact.topic}-{fact.partition} of group {fact.group}"
    return f"the offset of {place} was deleted, while a transaction had offset {fact.pending} open"


@observed_text.register
def _(fact: p.ForgottenTransaction) -> str:
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    return f"transaction {fact.transactional_id} was deleted in state {fact.state} ({producer})"


@observed_text.register
def _(fact: p.TimeoutOutdated) -> str:
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    return f"{producer} asked for {fact.asked_ms} ms; {fact.in_force_ms} ms are in force"


@observed_text.register
def _(fact: g.OffsetLeft) -> str:
    place = f"{fact.topic}-{fact.partition}"
    return f"group {fact.group} has offset {fact.offset} of {place}, whose topic is deleted"


@observed_text.register
def _(fact: f.AnsweredTwice) -> str:
    return f"request {fact.correlation_id} of connection {fact.connection_id}"


@observed_text.register
def _(fact: f.Unanswered) -> str:
    return f"{fact.request} of {fact.asked_ms} ms"


@observed_text.register
def _(fact: f.Stall) -> str:
    watermark = f"watermark {fact.high_watermark} of leader {fact.leader}"
    stood = f"{watermark} stood still for {fact.duration_ms} ms"
    return f"{stood}; its log ends at {fact.log_end_offset}"


@observed_text.register
def _(fact: p.OverdueTransaction) -> str:
    was = "decided, without its markers," if fact.is_decided else "open beyond its timeout"
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    which = f"transaction {fact.transactional_id} ({producer})"
    return f"{which} was {was} for {fact.duration_ms} ms"


@observed_text.register
def _(fact: f.TimeStoodStill) -> str:
    return fact.steps


def _end_text(end: p.ProducerEnd | None) -> str:
    if end is None:
        return "none of it"
    if end.offset < 0:
        return f"epoch {end.epoch} without batches"
    return f"epoch {end.epoch}, sequences up to {end.sequence} at offset {end.offset}"


def _some(fact: f.NewestRemoved | f.OlderKept) -> str:
    first = f"offset {fact.offset}"
    return first if fact.count == 1 else f"{first} and {fact.count - 1} more"


def _span_text(span: p.TransactionSpan | None) -> str:
    if span is None:
        return "none"
    if span.marker_offset < 0:
        return f"one open since offset {span.first_offset}"
    return f"one from {span.first_offset}, aborted at {span.marker_offset}"
