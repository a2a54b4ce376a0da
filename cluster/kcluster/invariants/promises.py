"""The promises of coordinators, as their answers show them: generations, epochs, commits, fences.

Owns: what answers have promised so far, and each answer that breaks a promise.  Never: looks into a
coordinator, sees an answer that is not sent.  Kafka: GroupMetadataManager, TransactionCoordinator;
KIP-345, KIP-360, KIP-848.

    generation-back      JoinGroup begins a generation below one whose assignment was handed out
    assignment-differs   a member gets two assignments in one generation
    member-epoch-back    a member's heartbeat is answered with an epoch below its own
    stale-commit         a commit is accepted, though a later generation, or a member with a later
                         epoch, has committed the partition; but a member with epochs may commit
                         any partition with the epoch that it has
    producer-id-twice    a producer id is given to two transactional ids, or to a producer without
                         a transactional id although another producer has it (KIP-730)
    fenced-alone         a transactional producer is fenced, though no other client uses its
                         transactional id, none of its transactions was aborted with a later epoch,
                         and none may have timed out; this is known at the end of the run.  A
                         change of coordinators is a reason, too: a new coordinator does not know
                         the epoch before the last, so it fences a producer that retries for its
                         next epoch

A classic coordinator that does not yet know of its successor may begin generations, but cannot
store an assignment or a commit: a JoinGroup counts only if its broker leads in the newest epoch.
Promises to groups are void once the coordinators' logs may have lost records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from kcluster.contract import Reply, Request
from kcluster.events.transactions import TransactionEnded, TransactionEvent
from kcluster.invariants.facts import Measure, Observed
from kcluster.invariants.group_facts import AssignedTwice, GroupWentBack, StaleCommit
from kcluster.invariants.producer_facts import FencedAlone, GivenTwice
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of

_OF_PRODUCERS: Final = (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN)
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
_FIRST: Final = 1
"""The first generation, or epoch, of a group."""
OwnerOf = Callable[[str, str, bytes, int], str | None]
"""(group, topic, topic id, partition) -> the member that was told last to have the partition; None
if that is not known."""
EpochOf = Callable[[str, str], int | None]
"""(group, member) -> the epoch that a member of a group with epochs was told last; None if it is
no member."""
LeaderEpoch = Callable[[int, str], int | None]
"""(broker, group) -> the leader epoch in which a broker coordinates a group; None: it does not."""
BrokenPromise = tuple[str, str, Observed]
"""(name of the violation, its subject, what was observed)."""
MAX_KEPT: Final = 10_000
"""The number of transactional ids, and of closed connections, that are remembered."""
K = TypeVar("K")
V = TypeVar("V")
_CommitKey = tuple[str, str, bytes, int]


class Promises:
    """What the coordinators of one cluster have promised."""

    def __init__(self, owner_of: OwnerOf, epoch_of: EpochOf) -> None:
        self._owner_of = owner_of
        self._epoch_of = epoch_of
        self._assigned: dict[str, tuple[int, int]] = {}
        """(the newest generation whose assignment was handed out, its leader epoch), by group."""
        self._assignments: dict[str, tuple[int, dict[str, bytes]]] = {}
        """The newest generation, and the assignment of each member in it, by group."""
        self._with_epochs: dict[str, None] = {}
        """The groups that had members with epochs.  The generation of a classic member is its own
        epoch there, in which it gets more partitions once they are free."""
        self._commits: dict[_CommitKey, tuple[str, int, int]] = {}
        """(member, generation, number of its answer) of the last commit, by group, topic name,
        topic id, partition."""
        self._deleted_topics: dict[str, None] = {}
        """The names of topics that were deleted, and perhaps created again."""
        self._commit_answers = 0
        """The number of commits that were answered so far."""
        self._arrivals: dict[Request, tuple[int, bool]] = {}
        """That number when each commit without an answer arrived, and whether the commit named the
        epoch that its member had then."""
        self._clients: dict[str, dict[str | None, None]] = {}
        """The clients that have used a transactional id."""
        self._aborted: dict[str, int] = {}
        """The latest epoch with which a transaction was aborted, by transactional id."""
        self._unmarked: dict[str, None] = {}
        """The transactional ids whose last transaction waits for its markers.  A producer that ends
        its next transaction before that gets a fencing error, as in Kafka."""
        self._fenced: list[tuple[int, int, str, FencedAlone]] = []
        """(at_ms, broker, transactional id, what was answered)."""
        self._closed: dict[int, None] = {}
        self._owners: dict[int, str] = {}
        """The producer that each producer id was first given to."""
        self._timeouts_ms: dict[str, int] = {}
        """The time that a transaction may take, by transactional id."""
        self._idle_ms: dict[str, int] = {}
        """The last time at which a transactional id was known to have no transaction."""
        self._coordinators = 0
        """The number of changes of coordinators, and of deaths of brokers, so far."""
        self._asked: dict[tuple[str, int], int] = {}
        """That number when a producer first asked for the next epoch, by transactional id and
        epoch."""

    def forget_groups(self) -> None:
        """Discard the promises to groups: the coordinators' logs may have lost records."""
        self._assigned = {}
        self._assignments = {}
        self._commits = {}

    def on_request(self, request: Request, now_ms: int) -> None:
        """Record what a request shows: that a client uses a transactional id, that a group has
        epochs, or that a group may be deleted."""
        if request.api_key == ApiKey.DELETE_GROUPS:
            for group in request.body.groups_names:
                self._forget(group)
        if request.api_key == ApiKey.OFFSET_COMMIT:
            body: m.OffsetCommitRequest = request.body
            epoch = self._epoch_of(body.group_id, body.member_id)
            is_current = epoch == body.generation_id_or_member_epoch
            self._arrivals[request] = (self._commit_answers, is_current)
            forget_oldest(self._arrivals)
        if request.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._with_epochs[request.body.group_id] = None
            forget_oldest(self._with_epochs)
        if request.api_key == ApiKey.INIT_PRODUCER_ID:
            transactional_id = request.body.transactional_id
            if transactional_id is not None:
                self._clients.setdefault(transactional_id, {})[request.client_id] = None
                forget_oldest(self._clients)
                self._timeouts_ms[transactional_id] = request.body.transaction_timeout_ms
                forget_oldest(self._timeouts_ms)
                self._idle_ms.setdefault(transactional_id, now_ms)
                forget_oldest(self._idle_ms)
                asked = (transactional_id, request.body.producer_epoch)
                self._asked.setdefault(asked, self._coordinators)
                forget_oldest(self._asked)

    def on_topic_deleted(self, topic: str) -> None:
        """Record that a topic was deleted.  If it is created again, a member that does not know yet
        may commit a partition in its old epoch, although another member has the new partition."""
        self._deleted_topics[topic] = None

    def on_new_coordinator(self) -> None:
        """Record that a coordinator may have been replaced."""
        self._coordinators += 1

    def on_transaction(self, event: TransactionEvent, now_ms: int) -> None:
        """Record that a transaction was decided, or completed.  If another coordinator completes
        it, only the completion may be known."""
        self._idle_ms[event.transactional_id] = now_ms
        if isinstance(event, TransactionEnded):
            self._unmarked[event.transactional_id] = None
            forget_oldest(self._unmarked)
        else:
            self._unmarked.pop(event.transactional_id, None)
        if not event.committed:
            of = event.transactional_id
            self._aborted[of] = max(event.producer_epoch, self._aborted.pop(of, -1))
            forget_oldest(self._aborted)

    def on_closed(self, connection_id: int) -> None:
        """Record that a connection has ended, so that its answers reach no client any more."""
        self._closed[connection_id] = None
        forget_oldest(self._closed)

    def on_reply(
        self, broker: int, reply: Reply, leader_epoch: LeaderEpoch, now_ms: int
    ) -> Iterator[BrokenPromise]:
        """The promises that an answer breaks.  `leader_epoch`: see LeaderEpoch."""
        request, body = reply.request, reply.body
        if body is None:
            return
        if request.api_key in _OF_PRODUCERS:
            self._note_fence(broker, request, error_of(body.error_code), now_ms)
            if request.api_key == ApiKey.INIT_PRODUCER_ID and not body.error_code:
                yield from self._give(request, body.producer_id)
        elif isinstance(body, m.JoinGroupResponse):
            yield from self._join(broker, request, body, leader_epoch)
        elif isinstance(body, m.SyncGroupResponse):
            yield from self._sync(broker, request, body, leader_epoch)
        elif isinstance(body, m.ConsumerGroupHeartbeatResponse):
            yield from self._heartbeat(request, body)
        elif isinstance(body, m.OffsetCommitResponse):
            yield from self._commit(request, body)
        elif isinstance(body, m.DeleteGroupsResponse):
            for result in body.results:
                if not result.error_code:
                    self._forget(result.group_id)

    def fenced_alone(self) -> Iterator[tuple[int, int, str, FencedAlone]]:
        """The producers that were fenced without a reason, each once, as (at_ms, broker,
        transactional id, what was answered); called at the end of the run."""
        fenced, self._fenced = self._fenced, []
        for at_ms, broker, of, fact in fenced:
            is_alone = len(self._clients.get(of, ())) <= 1
            if is_alone and self._aborted.get(of, -1) <= fact.producer_epoch:
                yield at_ms, broker, of, fact

    # ---------------------------------------------------------------------------- groups

    def _forget(self, group: str) -> None:
        """Forget a group that begins anew: it was deleted, by an administrator or because it was
        empty."""
        self._assigned.pop(group, None)
        self._assignments.pop(group, None)
        for key in [key for key in self._commits if key[0] == group]:
            del self._commits[key]

    def _join(
        self, broker: int, request: Request, answer: m.JoinGroupResponse, leader_epoch: LeaderEpoch
    ) -> Iterator[BrokenPromise]:
        group = request.body.group_id
        if answer.generation_id == _FIRST:
            self._forget(group)
        known = self._assigned.get(group)
        is_older = known is not None and answer.generation_id < known[0]
        if answer.error_code or known is None or not is_older or group in self._with_epochs:
            return
        epoch = leader_epoch(broker, group)
        if epoch is not None and epoch >= known[1]:
            back = GroupWentBack(Measure.GENERATION, known[0], answer.generation_id)
            yield "generation-back", f"group {group}", back

    def _sync(
        self, broker: int, request: Request, answer: m.SyncGroupResponse, leader_epoch: LeaderEpoch
    ) -> Iterator[BrokenPromise]:
        if answer.error_code or request.body.group_id in self._with_epochs:
            return
        body: m.SyncGroupRequest = request.body
        group, generation = body.group_id, body.generation_id
        epoch = leader_epoch(broker, group)
        if generation >= self._assigned.get(group, (-1, -1))[0] and epoch is not None:
            self._assigned[group] = (generation, epoch)
        newest, assignments = self._assignments.get(group, (-1, {}))
        if generation > newest:
            newest, assignments = self._assignments[group] = (generation, {})
        if generation == newest:
            assignment = bytes(answer.assignment)
            if assignments.setdefault(body.member_id, assignment) != assignment:
                assignments[body.member_id] = assignment
                twice = AssignedTwice(body.member_id, generation)
                yield "assignment-differs", f"group {group}", twice

    def _heartbeat(
        self, request: Request, answer: m.ConsumerGroupHeartbeatResponse
    ) -> Iterator[BrokenPromise]:
        asked = request.body.member_epoch
        if answer.member_epoch == _FIRST:
            self._forget(request.body.group_id)
        if not answer.error_code and asked > answer.member_epoch >= 0:
            back = GroupWentBack(
                Measure.MEMBER_EPOCH, asked, answer.member_epoch, request.body.member_id
            )
            yield "member-epoch-back", f"group {request.body.group_id}", back

    def _commit(self, request: Request, answer: m.OffsetCommitResponse) -> Iterator[BrokenPromise]:
        body: m.OffsetCommitRequest = request.body
        generation, member = body.generation_id_or_member_epoch, body.member_id
        if generation < 0:
            return
        group = body.group_id
        self._commit_answers += 1
        # A commit is refused or appended when it arrives, and may be answered much later.
        answers_before, is_current = self._arrivals.pop(request, (self._commit_answers, False))
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    continue
                key = (group, topic.name, topic.topic_id, partition.partition_index)
                before = self._commits.get(key)
                if before is not None and before[2] > answers_before:
                    continue
                if group in self._with_epochs and topic.name in self._deleted_topics:
                    continue
                owner = self._owner_of(group, topic.name, topic.topic_id, partition.partition_index)
                is_owner = owner is None or owner == member
                if is_current and not is_owner:
                    continue  # Kafka looks at the epoch of the member only
                if before is not None and before[0] != member and before[1] > generation:
                    stale = StaleCommit(member, generation, before[0], before[1])
                    yield "stale-commit", f"group {group}", stale
                    continue
                # A member with a newer epoch may commit a partition that another member still has.
                if is_owner:
                    self._commits[key] = (member, generation, self._commit_answers)

    # ------------------------------------------------------------------------- producers

    def _give(self, request: Request, producer_id: int) -> Iterator[BrokenPromise]:
        transactional_id = request.body.transactional_id
        owner = f"request {request.correlation_id} of connection {request.connection_id}"
        if transactional_id is not None:
            owner = f"transaction {transactional_id}"
        first = self._owners.setdefault(producer_id, owner)
        forget_oldest(self._owners)
        if first != owner:
            twice = GivenTwice(producer_id, first, owner)
            yield "producer-id-twice", f"producer {producer_id}", twice

    def _note_fence(self, broker: int, request: Request, error: ErrorCode, now_ms: int) -> None:
        """Record that a producer was fenced, unless there is a reason.  A client that has closed
        the connection does not count: it may have retried and advanced the epoch since."""
        body = request.body
        is_given_up = request.connection_id in self._closed
        if error not in _FENCED or is_given_up or body.transactional_id in self._unmarked:
            return
        asked = (body.transactional_id, body.producer_epoch)
        if self._asked.get(asked, self._coordinators) != self._coordinators:
            return
        if self._may_be_timed_out(body.transactional_id, now_ms):
            return
        if body.producer_epoch >= 0 and body.transactional_id is not None:
            fenced = FencedAlone(body.producer_id, body.producer_epoch, error.name)
            self._fenced.append((now_ms, broker, body.transactional_id, fenced))
            del self._fenced[:-MAX_KEPT]

    def _may_be_timed_out(self, transactional_id: str | None, now_ms: int) -> bool:
        """Whether a transaction may have timed out.  Its coordinator fences the producer before the
        abort is committed, even if the decision to abort is then lost."""
        if transactional_id is None:
            return False
        timeout_ms = self._timeouts_ms.get(transactional_id)
        since_ms = self._idle_ms.get(transactional_id)
        return timeout_ms is not None and since_ms is not None and now_ms - since_ms > timeout_ms


def forget_oldest(known: dict[K, V]) -> None:
    """Drop the oldest of too many entries: a long-lived cluster must not fill the memory."""
    if len(known) > MAX_KEPT:
        del known[next(iter(known))]
