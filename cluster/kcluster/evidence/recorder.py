"""Records the events at the brokers during a run, on either clock.

Owns: the record of a run: appends, replicas' moves, registrations (invariants/observed.py), every
answer to a client, every note.  Never: judges (checks/ does), changes anything in the cluster,
decodes a batch while the cluster runs: it keeps references only.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Ledger, Partition
from kcluster.contract import Note, Reply, Request
from kcluster.events.brokers import CertificateReplaced, RecordsLost
from kcluster.events.clients import GroupEvent, GroupMemberExpired, GroupMemberLeft
from kcluster.events.security import AuthenticationFailed
from kcluster.events.transactions import TransactionEvent
from kcluster.evidence.client_names import client_name
from kcluster.evidence.contents import Contents
from kcluster.evidence.coordinator_states import CHANGING_APIS, CoordinatorStates
from kcluster.evidence.exchanges import AppendEnds, Exchanges
from kcluster.evidence.history import FinalLog
from kcluster.evidence.rows import ExchangeRow, SendAnomalies
from kcluster.evidence.security_states import SecurityStates
from kcluster.invariants.invariants import Invariants
from kcluster.invariants.livelock import StepsAtOnce
from kcluster.invariants.memberships import SLACK_MS
from kcluster.invariants.observed import ObservedPartition, PartitionKey
from kcluster.invariants.watch import Watch
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import Batch
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.structs import Frozen, FrozenUntracked

_FETCH: Final = int(ApiKey.FETCH)
_PRODUCE: Final = int(ApiKey.PRODUCE)
MAX_EXCHANGES: Final = 200_000
MEMBERSHIP_APIS: Final = frozenset(
    map(
        int,
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.HEARTBEAT,
            ApiKey.JOIN_GROUP,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.SYNC_GROUP,
        ),
    )
)
"""APIs by which members of groups report and receive partitions."""
_OF_COORDINATORS: Final = (GroupEvent, TransactionEvent)
Answer = tuple[int, int, Reply]
"""(at_ms, broker, reply)."""


class MembershipStep(FrozenUntracked, frozen=True):
    """A member's request that a coordinator begins to process, its answer, or a member's departure.
    `is_withheld`: whether a rule drops or delays the answer."""

    at_ms: int
    broker: int
    what: Request | Reply | GroupMemberExpired | GroupMemberLeft
    is_withheld: bool = False


class PartitionAnswer(FrozenUntracked, frozen=True):
    """The part of a Produce or Fetch response that concerns one partition.  `base_offset`: the base
    offset of the append; `first` and `last`: the offsets that were read, -1 for none."""

    at_ms: int
    broker: int
    reply: Reply
    partition: Partition
    error_code: int
    base_offset: int = -1
    first: int = -1
    last: int = -1
    batches: tuple[Batch, ...] = ()
    aborted: Sequence[m.FetchResponse.AbortedTransaction] = ()
    """The aborted transactions in the response to a read_committed fetch."""

    @property
    def client(self) -> str:
        return self.reply.request.client_id or ""

    @property
    def asked_ms(self) -> int:
        """The time at which the request arrived at the broker."""
        return self.reply.request.arrived_ms


RequestTimes = Counter[tuple[int, str, int, int]]
"""The number of requests by (API, client, broker, ms until the answer)."""


class Missing(Frozen, frozen=True):
    """Acked records, known only as a range of offsets, that the final log lacks."""

    partition: Partition
    epoch: int
    first: int
    last: int
    at_ms: int


class Judged(Struct):
    """The basis of a verdict: the ledger of all clients (outside ones included), the final logs,
    and by batch the names of outside clients' records.  `anomalies`: its findings about each
    send."""

    ledger: Ledger
    logs: Mapping[Partition, FinalLog]
    names: Mapping[Batch, list[bytes]]
    anomalies: SendAnomalies = {}


class Recorder(Watch):
    """Records a run.  It is attached before the cluster starts, and passed to `judge` after the
    run.

    `answers`: every reply of a broker, even if no client received it; `notes`: all of them;
    `partitions`: partitions by (topic id, number).
    """

    def __init__(self, dispatcher: Dispatcher, plan: Plan) -> None:
        self.plan = plan
        self.answers: list[Answer] = []
        self.notes: list[Note] = []
        self.membership: list[MembershipStep] = []
        """The membership steps in their order; empty if single steps are not recorded."""
        self.contents = Contents()
        self.judged: Judged | None = None
        """The basis of the last verdict."""
        self.began_ms = dispatcher.now_ms
        self.checks_steps = True
        """Whether the invariants are checked after each step."""
        self.keeps_states = True
        """Whether the states of coordinators are recorded; pages show them, verdicts do not."""
        self.sees_requests = True
        """Whether the requests of clients are seen; not on a real Kafka."""
        self.ground = ""
        """What the brokers are, if they are not simulated."""
        self.patience_ms: int | None = None
        """The time after which a missing answer counts as an outage; None: as of the profile."""
        self.sees_appends = True
        """Whether each append is seen, also one that was never answered."""
        self.sees_disks = True
        """Whether each log can be read, also of a replica that is down; not on a real Kafka."""
        self.merged_before_ms = -1
        """The time before which sends are known only as ranges of offsets; -1 if there are none."""
        self.dropped_notes = 0
        """The number of the oldest notes, which are no longer kept."""
        self.states = CoordinatorStates(plan.fabric.clients)
        self.security = SecurityStates(dispatcher, plan)
        self._exchanges = Exchanges(plan.fabric.clients, MAX_EXCHANGES)
        self._append_ends = AppendEnds()
        self._exchanges_until = 0
        """The number of answers that `exchanges` already has."""
        super().__init__(dispatcher, Invariants())

    def _attach(self) -> None:
        super()._attach()
        dispatcher = self._dispatcher
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._keep_note)

    def _keep_note(self, note: Note) -> None:
        self.notes.append(note)
        event = note.event
        if isinstance(event, GroupMemberExpired | GroupMemberLeft):
            self.membership.append(MembershipStep(note.at_ms, note.note_id[0], event))
        elif isinstance(event, AuthenticationFailed):
            self.security.refused(note.at_ms, event)
        elif isinstance(event, CertificateReplaced):
            self.security.certificate_replaced()
        elif isinstance(event, RecordsLost):
            self._observe_loss(note.at_ms, event)
        self._look_at_coordinator_of(note)

    def _observe_loss(self, at_ms: int, event: RecordsLost) -> list[PartitionKey]:
        """Record the shorter logs of a broker that has lost power; the partitions that have
        them."""
        newest = {(each.topic, each.partition): each for each in self.partitions.values()}
        found = []
        for lost in event.ranges:
            observed = newest.get((lost.topic, lost.partition))
            if observed is not None:
                observed.observe_loss(at_ms, event.broker, lost.from_offset)
                found.append(observed.key)
        return found

    def _on_request(self, node_id: int, request: Request, now_ms: int) -> None:
        super()._on_request(node_id, request, now_ms)
        if self.security.is_secured:
            self.security.look()
        if request.api_key in MEMBERSHIP_APIS:
            self.membership.append(MembershipStep(now_ms, node_id, request))

    def _on_withheld(self, reply: Reply) -> None:
        super()._on_withheld(reply)
        if reply.request.api_key in MEMBERSHIP_APIS:
            now_ms = self._dispatcher.now_ms
            self.membership.append(MembershipStep(now_ms, -1, reply, is_withheld=True))

    def _look_at_coordinator_of(self, note: Note) -> None:
        """Read the changes at the coordinator of this event, including states of no duration, such
        as PrepareCommit."""
        event = note.event
        if isinstance(event, _OF_COORDINATORS):
            self._look_at_coordinator(note.note_id[0], note.at_ms)

    def _look_at_coordinator(self, node_id: int, now_ms: int) -> None:
        node = self._dispatcher.broker(node_id) if self.keeps_states else None
        if node is not None:
            self.states.look(now_ms, node)

    def look_at_coordinators(self) -> None:
        """Read the changes at all coordinators, and of clients' sessions."""
        self.security.look()
        if not self.keeps_states:
            return
        now_ms = self._dispatcher.now_ms
        for node in self._dispatcher.brokers():
            self.states.look(now_ms, node)

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher of the recorded cluster."""
        return self._dispatcher

    @property
    def partitions(self) -> dict[PartitionKey, ObservedPartition]:
        """The facts about each partition of each topic that ever existed."""
        return self.invariants.partitions

    def _on_reply(self, node_id: int, reply: Reply, now_ms: int) -> None:
        super()._on_reply(node_id, reply, now_ms)
        self.answers.append((now_ms, node_id, reply))
        api_key = reply.request.api_key
        if api_key in MEMBERSHIP_APIS:
            self.membership.append(MembershipStep(now_ms, node_id, reply))
        if api_key in CHANGING_APIS:
            self._look_at_coordinator(node_id, now_ms)
        elif api_key == _PRODUCE and reply.request.body.transactional_id is not None:
            # A partition may have been added to the transaction, at another broker (KIP-890).
            self.look_at_coordinators()

    def _look_around(self, now_ms: int) -> None:
        super()._look_around(now_ms)
        self.look_at_coordinators()

    def guard_time(self, limit: int) -> None:
        """From now on raise LivelockError after this many steps in one millisecond: time is
        virtual, and no timer is late."""
        self.invariants.memberships.slack_ms = SLACK_MS
        simulated = self.plan.fabric.clients
        self.steps_at_once = StepsAtOnce(limit, lambda known: client_name(known, simulated))

    # -------------------------------------------------------------------------- afterwards

    @property
    def first_ms(self) -> int:
        """The time of the first event, the origin of times for readers."""
        return self.notes[0].at_ms if self.notes else self.began_ms

    def exchanges(self) -> Exchanges:
        """The requests of clients so far, and the clients' beliefs."""
        since, self._exchanges_until = self._exchanges_until, len(self.answers)
        exchanges, ends = self._exchanges, self._append_ends
        exchanges.topics.update({key[0]: one.topic for key, one in self.partitions.items()})
        ends.read(self.partitions.values())
        for answer in self.answers[since:]:
            ends.complete(exchanges.answered(*answer))
        exchanges.trim()
        return exchanges

    def unanswered(self) -> list[ExchangeRow]:
        """The requests without an answer, in the order in which they were given up; requests that
        still await an answer come last."""
        now_ms, simulated = self._dispatcher.now_ms, self.plan.fabric.clients
        found = Exchanges(simulated)
        found.topics = self.exchanges().topics
        for broker, request, until_ms in self.invariants.replies.unanswered():
            found.unanswered(now_ms if until_ms < 0 else until_ms, broker, request)
        return sorted(found.rows, key=lambda row: row.at_ms)

    def read_logs(self) -> None:
        """Read the brokers' logs, unless they are on the plan's disks; called before a verdict."""

    def read_min_isr(self) -> None:
        """Read min.insync.replicas of all partitions, unless it is read continually."""

    def merged_counts(self, since_ms: int) -> tuple[int, int]:
        """The number of records known only as ranges, (sent, acked), in ranges that end at this
        time or later."""
        return 0, 0

    def missing(self, logs: Mapping[Partition, FinalLog], since_ms: int) -> Iterable[Missing]:
        """The acked ranges that the final logs lack, among ranges that end at this time or
        later."""
        return ()

    def request_times(self) -> RequestTimes:
        """The response times of brokers."""
        return Counter(
            (
                reply.request.api_key,
                reply.request.client_id or "",
                broker,
                at_ms - reply.request.arrived_ms,
            )
            for at_ms, broker, reply in self.answers
        )

    def present(self) -> dict[Partition, ObservedPartition]:
        """The partitions of topics that have not been deleted, by name."""
        return {
            (observed.topic, observed.partition): observed
            for observed in self.partitions.values()
            if observed.deleted_ms < 0
        }

    def of_partition(self, partition: Partition) -> list[ObservedPartition]:
        """The partition under each topic id that a topic's name has had, oldest first."""
        topic, number = partition
        return [
            observed
            for observed in self.partitions.values()
            if observed.topic == topic and observed.partition == number
        ]

    def fetch_times(self, client_ids: Container[str]) -> dict[str, dict[Partition, list[int]]]:
        """The times at which brokers answered a Fetch of these clients without an error for a
        partition, ascending, by client id and partition."""
        names = {key[0]: observed.topic for key, observed in self.partitions.items()}
        found: dict[str, dict[Partition, list[int]]] = {}
        for at_ms, _, reply in self.answers:
            request, body = reply.request, reply.body
            client_id = request.client_id or ""
            if request.api_key != _FETCH or body is None or client_id not in client_ids:
                continue
            times = found.setdefault(client_id, {})
            for topic in body.responses:
                name = names.get(topic.topic_id) or topic.topic
                for data in topic.partitions:
                    if not data.error_code:
                        times.setdefault((name, data.partition_index), []).append(at_ms)
        return found

    def partition_answers(
        self, api: ApiKey, wanted: Callable[[Answer], bool]
    ) -> Iterator[PartitionAnswer]:
        """The answers of Produce or Fetch, per partition, in order of time."""
        names = {key[0]: observed.topic for key, observed in self.partitions.items()}
        is_fetch = api == ApiKey.FETCH
        for answer in self.answers:
            at_ms, broker, reply = answer
            if reply.request.api_key != api or reply.body is None or not wanted(answer):
                continue
            for topic in reply.body.responses:
                name = names.get(topic.topic_id) or (topic.topic if is_fetch else topic.name)
                for data in topic.partitions if is_fetch else topic.partition_responses:
                    if is_fetch:
                        yield _fetched(at_ms, broker, reply, (name, data.partition_index), data)
                    else:
                        yield PartitionAnswer(
                            at_ms,
                            broker,
                            reply,
                            (name, data.index),
                            data.error_code,
                            data.base_offset,
                        )


def _fetched(
    at_ms: int, broker: int, reply: Reply, partition: Partition, data: m.FetchResponse.PartitionData
) -> PartitionAnswer:
    batches = data.records
    if not batches or isinstance(batches, bytes | bytearray | memoryview):
        return PartitionAnswer(at_ms, broker, reply, partition, data.error_code)
    return PartitionAnswer(
        at_ms,
        broker,
        reply,
        partition,
        data.error_code,
        -1,
        batches[0].base_offset,
        batches[-1].last_offset,
        tuple(batches),
        data.aborted_transactions or (),
    )
