"""Records a live cluster from time to time, in bounded memory, apart from the path of its requests.

Owns: the choice of answers and appends to keep, and the ranges of offsets that remain of older
ones.  Never: checks a step of a node (Recorder does), decodes a batch while the cluster runs.
Kafka: no counterpart.

A reply costs one list entry when it is sent.  A tenth of a second later, or when an event reports
the change of a partition or a broker, `_look` reads the logs' ends, and the parts of replies that a
verdict needs.  The cost of a look depends on the changes since the last one: the replicas that
the brokers have marked, and the records of the metadata log.  Invariants of single steps are not
checked.

The newest records, up to a number and a size, are kept with their requests.  Older ones are merged
to ranges of acked offsets per leader epoch.  A leader epoch writes an offset only once, so a range
shows whether an acked record is still in the log, but neither its value nor its readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.replication.replicas import ChangedReplicas, Replicas
from kcluster.clients.ledger import Partition
from kcluster.contract import Note, Reply, Request
from kcluster.deaths import ProcessState
from kcluster.events.brokers import BrokerDown, BrokerEvent, RecordsLost
from kcluster.events.clients import GroupMemberExpired, GroupMemberJoined, GroupMemberLeft
from kcluster.events.partitions import PartitionEvent
from kcluster.events.topics import TopicDeleted
from kcluster.evidence.contents import Contents
from kcluster.evidence.exchanges import Exchanges
from kcluster.evidence.history import FinalLog
from kcluster.evidence.recorder import Answer, Missing, Recorder, RequestTimes
from kcluster.evidence.rows import ExchangeRow
from kcluster.evidence.sizes import drop_oldest, fetched, offsets_bytes, refused_bytes
from kcluster.evidence.standing_notes import standing_notes
from kcluster.evidence.traffic import TrafficCounts
from kcluster.invariants.observed import Append, Move, ObservedPartition, PartitionKey
from kcluster.metadata.delta import changed_partitions
from kcluster.operations.controller import controller_image, metadata_log
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import has_internal_prefix
from kcluster.structs import Untracked

MAX_RECORDS: Final = 100_000
"""The number of sent or read records that are kept with their requests; beyond it, the older half
is merged."""
MAX_BYTES: Final = 256 << 20
"""The limit of the bytes of kept records, and of kept requests for offsets, beyond which the older
half is merged."""
MAX_CLIENTS: Final = 30_000
"""The number of client ids, and of producer ids, of which more is kept than their latest
requests."""
MAX_ANSWERS: Final = 30_000
"""The number of answers to clients that are kept."""
MAX_EXCHANGES: Final = 30_000
MAX_EPOCH_RUNS: Final = 30_000
MAX_NOTES: Final = 50_000
MAX_MOVES: Final = 300_000
LOOK_MS: Final = 100
SLOW_MS: Final = 100
"""The time of an answer above which times are counted in steps of 100 ms."""
UNKNOWN_CLIENT: Final = "(unanswered)"
"""The sender of a batch whose request was never answered: acks=0, or its broker died."""

_OF_A_MEMBER: Final = (GroupMemberJoined, GroupMemberLeft, GroupMemberExpired)
_URGENT: Final = (PartitionEvent, BrokerEvent)
_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_COMMITS: Final = (int(ApiKey.OFFSET_COMMIT), int(ApiKey.OFFSET_FETCH))


class AckedRange(Untracked):
    """Offsets `first` to `last`, appended in `epoch` by one broker, from `from_ms` until
    `until_ms`; `acked`: whether all of them were acked."""

    epoch: int
    first: int
    last: int
    acked: bool
    count: int
    from_ms: int
    until_ms: int


class SamplingRecorder(Recorder):
    """A Recorder for clusters that run for long.  It may be attached while the cluster runs:
    earlier records count as deleted.

    `ranges`: the merged ranges, by partition.
    """

    def _attach(self) -> None:
        dispatcher = self._dispatcher
        self.checks_steps = False
        self.max_records = MAX_RECORDS
        self.max_bytes = MAX_BYTES
        self.max_notes = MAX_NOTES
        self.max_epoch_runs = MAX_EPOCH_RUNS
        self.ranges: dict[PartitionKey, list[AckedRange]] = {}
        self.traffic = TrafficCounts()
        self._times: RequestTimes = Counter()
        self._pending: list[Answer] = []
        self._is_due = False
        self._is_urgent = False
        self._looked_ms = 0
        self._metadata_offset = -1
        self._by_name: dict[Partition, ObservedPartition] = {}
        self._ends: dict[tuple[int, bytes, int], tuple[int, int]] = {}
        """The last seen log end and high watermark of each replica, by broker and partition."""
        self._epoch_starts: dict[tuple[int, bytes, int], tuple[int, ...]] = {}
        """The last seen `EpochCache.starts` of each log, by broker and partition."""
        self._exchanges = Exchanges(self.plan.fabric.clients, MAX_EXCHANGES)
        self._unanswered: list[tuple[int, int, Request]] = []
        self._recorded: dict[tuple[bytes, int], dict[int, int]] = {}
        """The end of the recorded appends, by partition and leader epoch."""
        self._unclaimed: dict[tuple[int, bytes, int, int], Append] = {}
        """The appends without an answer so far, by broker, partition and base offset."""
        self._gone: dict[PartitionKey, tuple[int, int]] = {}
        """The offsets that a partition's log had deleted, at the last deletion, before they were
        read here."""
        self._gone_acked: dict[PartitionKey, dict[int, int]] = {}
        """The acked batches among the offsets that were deleted last, by partition: first offset ->
        the time of sending."""
        self._clients: dict[int, str] = {}
        """The client id in the last request of each producer id."""
        self._failing: dict[str, None] = {}
        """Clients whose last Fetch had an error."""
        self._kept_records = 0
        self._kept_bytes = 0
        self._kept_moves = 0
        self._kept_epoch_runs = 0
        self._thinned_moves = 0
        """The number of moves after the last thinning."""
        self._thinned_epoch_runs = 0
        self._changes: dict[int, tuple[Replicas, ChangedReplicas]] = {}
        """The changed replicas of each broker's latest life."""
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._on_note)
        dispatcher.reply_sinks = (*dispatcher.reply_sinks, self._on_reply)
        dispatcher.unanswered_sinks = (*dispatcher.unanswered_sinks, self._on_unanswered)
        self._begin()

    def _begin(self) -> None:
        """Skip the present records of the logs, which are not judged."""
        self._read_image(self.dispatcher.now_ms)
        for node in self._brokers():
            for replica in node.replicas.all():
                end = replica.log.log_end_offset
                observed = self._observed(replica)
                if end and observed is not None:
                    observed.known_from = max(observed.known_from, end)
                    known = self._recorded.setdefault(replica.key, {})
                    for epoch, _ in replica.log.epochs.entries:
                        known[epoch] = max(known.get(epoch, 0), end)

    # ------------------------------------------------------------------------ while it runs

    def _on_reply(self, node_id: int, reply: Reply, now_ms: int) -> None:
        self._pending.append((now_ms, node_id, reply))
        if not self._is_due:
            self._look_later(now_ms)

    def _on_unanswered(self, node_id: int, request: Request, now_ms: int) -> None:
        self._unanswered.append((now_ms, node_id, request))
        if not self._is_due:
            self._look_later(now_ms)

    def _look_later(self, now_ms: int) -> None:
        self._is_due = True
        self.dispatcher.later((now_ms + LOOK_MS) * 1000, self._look)

    def _on_note(self, note: Note) -> None:
        self.notes.append(note)
        event = note.event
        if isinstance(event, _OF_A_MEMBER) and self.states.is_large(event.group):
            if not self._is_due:
                self._look_later(note.at_ms)
        else:
            self._look_at_coordinator_of(note)
        if (self._is_urgent and isinstance(event, PartitionEvent)) or event.is_internal:
            return
        if isinstance(event, BrokerDown):
            for node in self._brokers():
                if node.node_id == event.broker:
                    self._read_image(note.at_ms)
                    self._read_replicas(note.at_ms, node)  # before its disk changes
        elif isinstance(event, RecordsLost):
            for topic_id, number in self._observe_loss(note.at_ms, event):
                self._ends.pop((event.broker, topic_id, number), None)
                self._kept_moves += 1
        elif isinstance(event, TopicDeleted):
            self._catch_up()
            for observed in self.partitions.values():
                if observed.topic == event.topic and observed.deleted_ms < 0:
                    observed.deleted_ms = note.at_ms
        elif isinstance(event, _URGENT) and not self._is_urgent:
            # The brokers act on the change within this ms; the record must include it from then on.
            self._is_urgent = True
            self.dispatcher.later(self.dispatcher.now_us, self._look_now)

    def _look(self) -> None:
        self._is_due = False
        if self.dispatcher.now_ms < self._looked_ms + LOOK_MS // 2:
            self._look_later(self._looked_ms)  # a reader of the record has just looked
        else:
            self._catch_up()

    def _look_now(self) -> None:
        self._is_urgent = False
        self._catch_up()

    def check_last_step(self) -> None:
        self._catch_up()
        self._name_unanswered()

    def _catch_up(self) -> None:
        """Record the changes since the last look."""
        now_ms = self._looked_ms = self.dispatcher.now_ms
        self._read_image(now_ms)
        for node in self._brokers():
            self._read_replicas(now_ms, node)
        pending, self._pending = self._pending, []
        for answer in pending:
            self._take(answer)
        if self._gone_acked:
            self._add_gone()
        if self._unanswered:
            self._take_unanswered(len(pending))
        self.look_at_coordinators()
        self._exchanges.trim()
        self.states.trim()
        while self._is_full() and self._merge_older_half():
            pass
        for known in (self._clients, self._failing, self._times):
            drop_oldest(known, MAX_CLIENTS)
        if len(self.notes) > self.max_notes:
            self._drop_old_notes()
        # With very many replicas, their newest moves alone exceed the limit.
        if self._kept_moves > max(MAX_MOVES, 2 * self._thinned_moves):
            self._thin_moves()
        if self._kept_epoch_runs > max(self.max_epoch_runs, 2 * self._thinned_epoch_runs):
            self._thin_epoch_runs()

    def _brokers(self) -> Iterator[BrokerNodeView]:
        for process in self.dispatcher.processes.values():
            # A broker that is going down has no node any more, although its process still runs.
            node = process.last_broker
            if node is not None and process.state is not ProcessState.DOWN:
                yield node

    def _read_image(self, now_ms: int) -> None:
        """Read the partitions that have changed since the last reading.  A controller that has just
        started has no image yet."""
        image = controller_image(self.dispatcher)
        if image.offset <= self._metadata_offset:
            return
        first_offset, self._metadata_offset = self._metadata_offset + 1, image.offset
        records = metadata_log(self.dispatcher).records[first_offset : image.offset + 1]
        for topic_id, partition in changed_partitions(records):
            topic = image.topic_by_id(topic_id)
            if topic is None:
                continue
            self._exchanges.topics[topic_id] = topic.name
            if not has_internal_prefix(topic.name):
                found = topic.partitions[partition]
                observed = self.invariants.partition(topic.name, (topic_id, partition))
                observed.registration = found
                observed.registrations.append((now_ms, found))
                self._by_name[topic.name, partition] = observed

    def _observed(self, replica: Replica) -> ObservedPartition | None:
        if has_internal_prefix(replica.topic):
            return None
        return self.invariants.partition(replica.topic, replica.key)

    def _changed_at(self, node: BrokerNodeView) -> list[Replica]:
        """The replicas that changed since the last call, in the order in which the broker hosts
        them; all replicas in a new life of the broker."""
        known = self._changes.get(node.node_id)
        if known is None or known[0] is not node.replicas:
            known = self._changes[node.node_id] = node.replicas, node.replicas.read_changes()
        changed = known[1].take()
        return sorted(changed, key=attrgetter("number"))

    def _read_replicas(self, now_ms: int, node: BrokerNodeView) -> None:
        broker, ends, known_starts = node.node_id, self._ends, self._epoch_starts
        for replica in self._changed_at(node):
            log = replica.log
            at = (log.log_end_offset, replica.high_watermark)
            key = (broker, replica.topic_id, replica.partition)
            starts = log.epochs.starts
            if ends.get(key) == at and known_starts.get(key) is starts:
                continue
            observed = self._observed(replica)
            if observed is None:
                ends[key], known_starts[key] = at, starts
                continue
            if known_starts.get(key, ()) is not starts:
                observed.observe_epochs(now_ms, broker, log)
                self._kept_epoch_runs += 1
            known_starts[key] = starts
            if ends.get(key) != at:
                ends[key] = at
                stable = replica.last_stable_offset if replica.is_leader else -1
                observed.moves.append(Move(now_ms, broker, at[0], at[1], stable))
                self._kept_moves += 1
                if at[0]:  # a new topic may have ten thousand empty logs
                    self._read_log(now_ms, observed, replica, log)

    def _read_log(
        self, now_ms: int, observed: ObservedPartition, replica: Replica, log: Log
    ) -> None:
        """Record the batches of this log that are not recorded yet, of all leader epochs."""
        known = self._recorded.setdefault(observed.key, {})
        seen = max(known.values(), default=0)
        if seen < log.log_start_offset:
            self._gone[observed.key] = (seen, log.log_start_offset)
        until, begin = log.log_end_offset, -1
        for epoch, start in reversed(log.epochs.entries):
            recorded = max(known.get(epoch, 0), log.log_start_offset)
            if recorded >= until:
                break
            begin = max(start, recorded)
            until = start
        if begin < 0:
            return
        last_epoch, leader, isr, end = -1, -1, replica.isr, 0
        for batch in log.batches_from(begin):
            epoch = batch.leader_epoch
            if epoch != last_epoch:
                last_epoch, end = epoch, known.get(epoch, 0)
                leader = _leader_in(observed, epoch, replica)
                isr = replica.isr if replica.is_leader else _isr_in(observed, epoch)
            if batch.base_offset < end:
                continue
            known[epoch] = end = batch.last_offset + 1
            if batch.base_offset < observed.known_from:
                # The batch is of another epoch, which overwrites records that are known only as
                # ranges, or which the log had before.
                observed.known_from = batch.base_offset
            first, last = batch.base_offset, batch.last_offset
            append = Append(now_ms, leader, epoch, first, last, batch, None, isr, now_ms)
            observed.appends.append(append)
            self._kept_records += batch.record_count
            self._kept_bytes += batch.size_bytes
            if not batch.is_control:
                self.traffic.appended(leader, observed.topic, batch)
                self._unclaimed[id_of(observed, append)] = append
        for (epoch, _), (_, end) in zip(log.epochs.entries, log.epochs.entries[1:], strict=False):
            known[epoch] = max(known.get(epoch, 0), end)  # compaction leaves gaps at their ends

    # ------------------------------------------------------------------------------ answers

    def _take(self, answer: Answer) -> None:
        at_ms, broker, reply = answer
        request, body = reply.request, reply.body
        client = request.client_id or ""
        took_ms = at_ms - request.arrived_ms
        if took_ms > SLOW_MS:
            took_ms -= took_ms % SLOW_MS
        self._times[request.api_key, client, broker, took_ms] += 1
        row = self._exchanges.answered(at_ms, broker, reply)
        self.traffic.answered(broker, row, reply)
        if body is None:
            return
        if request.api_key == _PRODUCE:
            last = self._claim(broker, request, body)
            if row.first >= 0:
                row.last = max(row.first, last)
            self._kept_bytes += refused_bytes(request.body, body)
            self.answers.append(answer)
        elif request.api_key == _FETCH:
            records, size_bytes, has_error = fetched(body)
            self._kept_records += records
            self._kept_bytes += size_bytes
            if records or has_error or client in self._failing:
                self.answers.append(answer)
                self._failing.pop(client, None)
            if has_error:
                self._failing[client] = None
        elif request.api_key in _COMMITS:
            self._kept_bytes += offsets_bytes(request.body)
            self.answers.append(answer)

    def _take_unanswered(self, answered: int) -> None:
        """Add the requests that ended without an answer, before requests that were answered
        later."""
        unanswered, self._unanswered = self._unanswered, []
        exchanges = self._exchanges
        for at_ms, broker, request in unanswered:
            exchanges.unanswered(at_ms, broker, request)
        first = len(exchanges.rows) - len(unanswered) - answered
        exchanges.rows[first:] = sorted(exchanges.rows[first:], key=lambda row: row.at_ms)

    def exchanges(self) -> Exchanges:
        return self._exchanges

    def unanswered(self) -> list[ExchangeRow]:
        return []  # the exchanges have them already

    def _claim(self, broker: int, request: Request, body: m.ProduceResponse) -> int:
        """Find the appends that a Produce response acks, and attach its request to them.  Returns
        the last offset of the first append, -1 if it is unknown."""
        last = -1
        for topic in body.responses:
            for data in topic.partition_responses:
                if data.error_code:
                    continue
                topic_id = topic.topic_id
                if not any(topic_id):
                    observed = self._by_name.get((topic.name, data.index))
                    if observed is None:
                        continue
                    topic_id = observed.key[0]
                key = (broker, topic_id, data.index, data.base_offset)
                append = self._unclaimed.pop(key, None)
                if append is None:
                    self._claim_gone((topic_id, data.index), data.base_offset, request.arrived_ms)
                else:
                    last = append.last_offset if last < 0 else last
                    append.request = request
                    append.at_ms = min(append.at_ms, request.arrived_ms)
                    if append.batch.producer_id >= 0:
                        self._clients[append.batch.producer_id] = request.client_id or ""
        return last

    def _claim_gone(self, key: PartitionKey, first: int, at_ms: int) -> None:
        """Handle an ack for unrecorded offsets: they may have been deleted by retention.bytes
        between two looks."""
        start, end = self._gone.get(key, (0, 0))
        if start <= first < end:
            self._gone_acked.setdefault(key, {})[first] = at_ms

    def _add_gone(self) -> None:
        """Add these offsets to the ranges, after the older records of their partitions.  Their
        number follows from the next known offset, because the requests' records are gone, too."""
        gone, self._gone_acked = self._gone_acked, {}
        for key, acked in gone.items():
            start, end = self._gone[key]
            observed = self.partitions[key]
            self._merge_below(observed, start)
            observed.known_from = max(observed.known_from, end)
            epoch = observed.registrations[-1][1].leader_epoch
            firsts = sorted(acked)
            for first, after in zip(firsts, [*firsts[1:], end], strict=True):
                at_ms = acked[first]
                found = AckedRange(epoch, first, after - 1, True, after - first, at_ms, at_ms)
                self._add_range(key, found)
        self.merged_before_ms = max(self.merged_before_ms, self._looked_ms)

    def _merge_below(self, observed: ObservedPartition, offset: int) -> None:
        self._merge(observed, lambda append: append.base_offset < offset)

    def _name_unanswered(self) -> None:
        """Give each append without an answer a sender, if it is known."""
        for append in self._unclaimed.values():
            client = self._clients.get(append.batch.producer_id, UNKNOWN_CLIENT)
            named = append.request
            is_named = named is not None and (named.connection_id >= 0 or named.client_id == client)
            if not is_named:
                body = m.ProduceRequest(acks=-1, timeout_ms=0, topic_data=[])
                append.request = Request(-1, _PRODUCE, 3, -1, client, body, "", append.at_ms)

    def request_times(self) -> RequestTimes:
        return self._times

    # ----------------------------------------------------------------------- bounded memory

    def _is_full(self) -> bool:
        return (
            self._kept_records > self.max_records
            or self._kept_bytes > self.max_bytes
            or len(self.answers) > MAX_ANSWERS
        )

    def _merge_older_half(self) -> bool:
        """Merge the older half of the appends to ranges, and forget the answers of that time.
        Returns whether there was anything to merge."""
        appends = sorted(x.at_ms for observed in self.partitions.values() for x in observed.appends)
        times = appends if len(appends) > len(self.answers) else [x[0] for x in self.answers]
        if not times:
            return False
        before_ms = max(times[len(times) // 2], times[0] + 1)
        self.merged_before_ms = before_ms
        for observed in self.partitions.values():
            self._merge(observed, lambda append: append.at_ms < before_ms)
        self.answers = [answer for answer in self.answers if answer[0] >= before_ms]
        self.contents = Contents()
        self.judged = None
        self._count_again()
        live = {
            id_of(observed, x) for observed in self.partitions.values() for x in observed.appends
        }
        self._unclaimed = {key: x for key, x in self._unclaimed.items() if key in live}
        return True

    def _count_again(self) -> None:
        """Count the kept records afresh."""
        self._kept_records = self._kept_bytes = 0
        for observed in self.partitions.values():
            for append in observed.appends:
                self._kept_records += append.batch.record_count
                self._kept_bytes += append.batch.size_bytes
        for _, _, reply in self.answers:
            request, body = reply.request, reply.body
            if request.api_key == _FETCH:
                records, size_bytes, _ = fetched(body)
                self._kept_records += records
                self._kept_bytes += size_bytes
            elif request.api_key == _PRODUCE:
                self._kept_bytes += refused_bytes(request.body, body)
            else:
                self._kept_bytes += offsets_bytes(request.body)

    def _merge(self, observed: ObservedPartition, is_old: Callable[[Append], bool]) -> None:
        kept = []
        for append in observed.appends:
            if not is_old(append):
                kept.append(append)
                continue
            first, last, count = append.base_offset, append.last_offset, append.batch.record_count
            observed.known_from = max(observed.known_from, last + 1)
            if not append.batch.is_control:
                acked = id_of(observed, append) not in self._unclaimed
                at_ms = append.at_ms
                found = AckedRange(append.epoch, first, last, acked, count, at_ms, at_ms)
                self._add_range(observed.key, found)
        observed.appends = kept

    def _add_range(self, key: PartitionKey, found: AckedRange) -> None:
        """Add a range, or extend the previous range of its kind if it follows that range."""
        ranges = self.ranges.setdefault(key, [])
        before = ranges[-1] if ranges else None
        if (
            before is None
            or (before.epoch, before.acked) != (found.epoch, found.acked)
            or found.first < before.last
        ):
            ranges.append(found)
        elif found.first > before.last or found.last > before.last:
            before.last = found.last
            before.count += found.count
            before.until_ms = found.until_ms

    def _drop_old_notes(self) -> None:
        """Drop the oldest notes, except notes that still describe a present state."""
        spare = self.max_notes // 10
        dropped = len(self.notes) - self.max_notes + spare
        standing = standing_notes(self.notes[:dropped])
        kept = standing[max(0, len(standing) - spare) :]
        self.notes[:dropped] = kept
        self.dropped_notes += dropped - len(kept)

    def _thin_moves(self) -> None:
        """Drop every other move, except moves that go back."""
        total = 0
        for observed in self.partitions.values():
            observed.moves = list(_every_other(observed.moves))
            total += len(observed.moves)
        self._kept_moves = self._thinned_moves = total

    def _thin_epoch_runs(self) -> None:
        """Keep the newer half of each partition's epoch runs, and the newest run of each
        replica."""
        total = 0
        for observed in self.partitions.values():
            runs = observed.epoch_runs
            half = len(runs) // 2
            newest = {run.broker: run for run in runs[:half]}
            observed.epoch_runs = [run for run in runs[:half] if newest[run.broker] is run] + runs[
                half:
            ]
            total += len(observed.epoch_runs)
        self._kept_epoch_runs = self._thinned_epoch_runs = total

    # -------------------------------------------------------------------------- afterwards

    def read_min_isr(self) -> None:
        for node in self._brokers():
            for replica in node.replicas.all():
                observed = self.partitions.get(replica.key)
                if observed is not None:
                    observed.min_isr = replica.min_isr
                    observed.delete_retention_ms = replica.config.delete_retention_ms

    def merged_counts(self, since_ms: int) -> tuple[int, int]:
        """The number of records known only as ranges: (all, acked), in ranges that end at or after
        that time."""
        every = (x for ranges in self.ranges.values() for x in ranges)
        ranges = [x for x in every if x.until_ms >= since_ms]
        return sum(x.count for x in ranges), sum(x.count for x in ranges if x.acked)

    def missing(self, logs: Mapping[Partition, FinalLog], since_ms: int) -> Iterator[Missing]:
        """The acked ranges that the final logs lack, among ranges that end at or after that time;
        deliberate deletions do not count."""
        for observed in self.partitions.values():
            partition = (observed.topic, observed.partition)
            log = logs.get(partition)
            if observed.deleted_ms >= 0 or log is None:
                continue
            for one in self.ranges.get(observed.key, ()):
                if one.acked and one.until_ms >= since_ms:
                    for first, last in _not_in(log, one):
                        yield Missing(partition, one.epoch, first, last, one.from_ms)


def id_of(observed: ObservedPartition, append: Append) -> tuple[int, bytes, int, int]:
    """The key of an append: (broker, topic id, partition, base offset)."""
    return append.broker, observed.key[0], observed.partition, append.base_offset


def _leader_in(observed: ObservedPartition, epoch: int, replica: Replica) -> int:
    for _, found in reversed(observed.registrations):
        if found.leader_epoch == epoch and found.leader >= 0:
            return found.leader
    return replica.broker_id


def _isr_in(observed: ObservedPartition, epoch: int) -> tuple[int, ...]:
    for _, found in reversed(observed.registrations):
        if found.leader_epoch == epoch:
            return found.isr
    return ()


def _every_other(moves: list[Move]) -> Iterator[Move]:
    last: dict[int, Move] = {}
    skipped: dict[int, Move] = {}
    for move in moves:
        before = last.get(move.broker)
        falls = before is not None and (
            move.log_end_offset < before.log_end_offset
            or move.high_watermark < before.high_watermark
        )
        last[move.broker] = move
        waiting = skipped.pop(move.broker, None)
        if waiting is not None and falls:
            yield waiting
        if waiting is not None or falls or before is None:
            yield move
        else:
            skipped[move.broker] = move
    yield from sorted(skipped.values(), key=lambda move: move.at_ms)


def _not_in(log: FinalLog, one: AckedRange) -> Iterator[tuple[int, int]]:
    """The parts of a range that the log lacks, or has in another epoch."""
    at = max(one.first, log.deleted_before)
    ends = [*(start for _, start in log.epochs[1:]), log.end_offset]
    for (epoch, start), end in zip(log.epochs, ends, strict=False):
        if epoch != one.epoch or end <= at:
            continue
        if at < start:
            yield at, min(start - 1, one.last)
        at = max(at, min(end, one.last + 1))
    if at <= one.last:
        yield at, one.last
