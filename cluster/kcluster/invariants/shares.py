"""The promises of share coordinators and of share partitions' leaders, as their answers show them.

Owns: the stored state of each share partition as its leaders know it, the records that members
hold, and each answer that contradicts these.  Never: looks into a coordinator or a leader.
Kafka: ShareCoordinatorShard, SharePartition; KIP-932.

    stale-share-write   a leader's write is stored, though a later leader has read the state (see
                        also share_beginnings.py)
    share-state-back    a leader reads a state that is older than what was stored (see also
                        replayed_shares.py)
    foreign-ack         a member's acknowledgement is accepted for a record that another member
                        holds
    acquired-twice      a member gets a record while another one holds it
    stale-share-leader  a broker that lost the partition and leads it again delivers records before
                        it has loaded the state again
    lock-lost           a member loses a record that it holds: the acknowledgement is refused, or
                        the leader drops the share partition when another member's connection ends
    lock-differs        a leader's answer names a lock duration that differs from its metadata
    share-overcounted   a leader stores a delivery-complete count above the number of records from
                        the start offset on that no member holds

A member holds a record from the answer that delivers it until the member acknowledges it, the lock
or the session ends, or the leader loads the state again.  A confirmed renewal begins a new lock.
share_answers.py compares answers with requests.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.facts import Measure, Outdated, OutOfBounds, WentBack
from kcluster.invariants.group_facts import HeldBy, Locked, NotLoaded
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.invariants.share_answers import ShareAnswers
from kcluster.invariants.share_beginnings import Beginnings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

SHARE_APIS: Final = (int(ApiKey.SHARE_FETCH), int(ApiKey.SHARE_ACKNOWLEDGE))
MAX_HELD: Final = 10_000
"""The number of records of a share partition that are remembered."""


class Led(NamedTuple):
    """A partition that a broker leads: the topic's name, the leader epoch, the log's bounds."""

    topic: str
    leader_epoch: int
    log_start: int
    log_end: int


LedBy = Callable[[int, bytes, int], Led | None]
"""(broker, topic id, partition) -> the partition, if the broker leads it."""
LockMs = Callable[[int, str], int | None]
"""(broker, group) -> share.record.lock.duration.ms of the group by the broker's metadata; None if
it is not known."""
_ShareKey = tuple[str, bytes, int]
"""(group, topic id, partition)."""
IsNewest = Callable[[int, str, bytes, int], bool]
"""(broker, group, topic id, partition) -> whether the broker coordinates that state, without a
successor."""
Progress = tuple[int, int]
"""(delivery count, delivery state): the greater one is the later one."""
NO_PROGRESS: Final[Progress] = (-1, -1)
_ENDS_OF_STATES: Final = (m.InitializeShareGroupStateRequest, m.DeleteShareGroupStateRequest)
_READS_AND_WRITES: Final = (m.WriteShareGroupStateRequest, m.ReadShareGroupStateRequest)
_OF_STATES: Final = (*_ENDS_OF_STATES, *_READS_AND_WRITES)
STATE_ANSWERS: Final = (
    m.WriteShareGroupStateResponse, m.ReadShareGroupStateResponse,
    m.InitializeShareGroupStateResponse,
)  # fmt: skip
"""The bodies of share coordinators' answers about states.  Nodes exchange many other messages, so
these are tuples, and made once."""
_OPENS: Final = 0
"""The epoch that opens a share session; a smaller epoch closes the session."""
_RENEW: Final = 4
"""The type of an acknowledgement that only asks for more time; a group may not allow it."""
_NOT_HELD: Final = ErrorCode.INVALID_RECORD_STATE


class OffsetRange(Protocol):
    """An inclusive range of offsets in a message, which may come from any client and be of any
    size."""

    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...


class StoredBatch(OffsetRange, Protocol):
    """The state of a range of records, in a message or a log."""

    @property
    def delivery_count(self) -> int: ...
    @property
    def delivery_state(self) -> int: ...


class _StoredState(Struct):
    """The state of a share partition as its leaders know it; the stored state must be at least
    this."""

    leader_epoch: int = -1
    start_offset: int = -1
    progress: dict[int, Progress] = {}


class _Hold(Struct):
    """A member's hold on a record, which `broker` delivered as leader in this leader epoch."""

    member: str
    connection: int
    broker: int
    leader_epoch: int
    until_ms: int


class _Loss(Struct):
    """The end of a broker's leadership.  `arrivals`: the number of requests that had arrived by
    then; `loaded`: the groups whose state the broker has loaded since."""

    arrivals: int
    loaded: dict[str, None] = {}


class _Arrived(Struct):
    """A member's request that has no answer yet.  `number`: counts the requests in order of
    arrival.  By partition, `refused`: what is broken if the acknowledgements are accepted; `owned`:
    what is broken if they are refused with INVALID_RECORD_STATE; `renewed`: the held records for
    which the member asks for more time."""

    number: int
    broker: int
    at_ms: int
    refused: dict[tuple[bytes, int], BrokenPromise]
    owned: dict[tuple[bytes, int], BrokenPromise]
    renewed: dict[tuple[bytes, int], dict[int, _Hold]]


def _unknown_lock_ms(_broker: int, _group: str) -> int | None:
    return None


class SharePromises:
    """The promises to all share groups of one cluster."""

    def __init__(self) -> None:
        self.lock_ms: LockMs = _unknown_lock_ms
        self._stored: dict[_ShareKey, _StoredState] = {}
        self._asked: dict[tuple[int, int], tuple[PeerRequest, dict[_ShareKey, _StoredState]]] = {}
        """Each request about states, with what was stored when it arrived, by node and id.
        The id has the node's life, because each life counts from the beginning."""
        self._holds: dict[_ShareKey, dict[int, _Hold]] = {}
        self._arrived: dict[Request, _Arrived] = {}
        self._arrivals = 0
        self._given_up: dict[tuple[int, str, bytes, int], int] = {}
        """The number of arrivals when a broker could not store an acknowledgement for a share
        partition (broker, group, topic id, partition): it forgets who has which record."""
        self._losses: dict[tuple[int, str, int], _Loss | None] = {}
        """The last loss of each partition by each broker that has loaded its state."""
        self._beginnings = Beginnings()
        self.answers = ShareAnswers()
        self._shortest_ms: dict[str, int] = {}
        """The shortest lock that members of a group were told of."""
        self.reconfigured: dict[str, None] = {}
        """The groups whose configs have changed: each broker learns of that at a different time, so
        the duration of its locks is not known."""

    def on_configured(self, group: str) -> None:
        """Record that a group has new configs, such as share.record.lock.duration.ms."""
        self.reconfigured[group] = None

    def forget(self) -> None:
        """Discard the known states: the share coordinators' logs may have lost records."""
        self._stored = {}
        self._asked = {}
        self._beginnings.forget()

    def on_resigned(self, broker: int, topic: str, partition: int) -> None:
        """Record that a broker has learned that it no longer leads a partition."""
        if (broker, topic, partition) in self._losses:
            self._losses[broker, topic, partition] = _Loss(self._arrivals)

    def on_loaded(self, broker: int, group: str, topic: str, partition: int) -> None:
        """Record that a leader has loaded a share partition's state: no member holds its records
        any more."""
        loss = self._losses.setdefault((broker, topic, partition), None)
        if loss is not None:
            loss.loaded[group] = None
        for key in [key for key in self._holds if (key[0], key[2]) == (group, partition)]:
            del self._holds[key]

    def held_at(
        self, broker: int, led_by: LedBy, now_ms: int
    ) -> Iterator[tuple[_ShareKey, BrokenPromise]]:
        """The share partitions whose records members hold from a broker, each with what is broken
        if the broker drops it."""
        for key, held in self._holds.items():
            led = led_by(broker, *key[1:])
            for offset, hold in held.items() if led is not None else ():
                if led is not None and _is_valid(hold, broker, led, offset, now_ms):
                    lost = Locked(offset, hold.until_ms, now_ms, hold.member)
                    yield key, ("lock-lost", _subject(key), lost)
                    break

    def on_closed(self, connection_id: int) -> None:
        """Record the end of a connection, and so of its share session."""
        for session in self.answers.on_closed(connection_id):
            self._release_all(*session)
        self._release(connection_id)

    def _release_all(self, broker: int, group: str, member: str) -> None:
        """Record the end of a member's session: it releases every record that the member got from
        this broker, even through another connection."""
        for key, held in self._holds.items():
            if key[0] == group:
                of_member = [
                    at for at, one in held.items() if (one.broker, one.member) == (broker, member)
                ]
                for offset in of_member:
                    del held[offset]

    def _release(self, connection_id: int) -> None:
        for held in self._holds.values():
            for offset in [at for at, one in held.items() if one.connection == connection_id]:
                del held[offset]

    # ---------------------------------------------------------------------- coordinators

    def on_peer_request(self, node: int, request: PeerRequest, is_newest: IsNewest) -> None:
        """Record a request about share states when it arrives at a coordinator.  Only the newest
        coordinator is bound by what is stored: a deposed coordinator may answer with an older
        state."""
        body = request.body
        if not isinstance(body, _OF_STATES):
            return
        named = [
            (body.group_id, topic.topic_id, row.partition)
            for topic in body.topics
            for row in topic.partitions
        ]
        newest = [key for key in named if is_newest(node, *key)]
        self._beginnings.on_request(request, newest)
        if isinstance(body, _ENDS_OF_STATES):
            for key in named:
                self._stored.pop(key, None)
        else:
            known = {
                key: _StoredState(one.leader_epoch, one.start_offset, dict(one.progress))
                for key in newest
                if (one := self._stored.get(key))
            }
            self._asked[request.source, request.request_id] = (request, known)
            forget_oldest(self._asked)

    def overcounted(
        self, request: PeerRequest, led_by: LedBy, now_ms: int
    ) -> Iterator[BrokenPromise]:
        """What a leader's write breaks if its delivery-complete count is too high; called when the
        write arrives at a coordinator."""
        body: m.WriteShareGroupStateRequest = request.body
        for topic in body.topics:
            for row in topic.partitions:
                led = led_by(request.source, topic.topic_id, row.partition)
                count, start = row.delivery_complete_count, row.start_offset
                if led is None or led.leader_epoch != row.leader_epoch or count <= 0 or start < 0:
                    continue
                key = (body.group_id, topic.topic_id, row.partition)
                held = sum(
                    _is_valid(hold, request.source, led, offset, now_ms)
                    for offset, hold in self._holds.get(key, {}).items()
                    if offset >= start
                )
                most = led.log_end - start - held
                if count > most:
                    many = OutOfBounds(Measure.SETTLED, count, Measure.UNHELD, most)
                    yield "share-overcounted", _subject(key), many

    def on_peer_response(
        self, node: int, number: int, response: PeerResponse
    ) -> Iterator[BrokenPromise]:
        """What a coordinator's answer (a body in STATE_ANSWERS) breaks when it arrives at a node.
        `number`: the id that was recorded when the request arrived."""
        answer = response.body
        yield from self._beginnings.on_answer(node, number, response)
        request, known = self._asked.pop((node, number), (None, {}))
        if request is None:
            return
        body = request.body
        asked = {
            (one.topic_id, row.partition): row for one in body.topics for row in one.partitions
        }
        for topic in answer.results:
            for row in topic.partitions:
                at = (topic.topic_id, row.partition)
                if row.error_code or at not in asked:
                    continue
                key = (body.group_id, *at)
                if isinstance(row, m.WriteShareGroupStateResponse.PartitionResult):
                    yield from self._written(key, asked[at], known.get(key))
                else:
                    yield from self._read(key, asked[at], row, known.get(key))

    def _written(
        self,
        key: _ShareKey,
        row: m.WriteShareGroupStateRequest.PartitionData,
        before: _StoredState | None,
    ) -> Iterator[BrokenPromise]:
        if before is not None and row.leader_epoch < before.leader_epoch:
            bound = (Measure.LEADER_EPOCH, before.leader_epoch)
            fact = OutOfBounds(Measure.LEADER_EPOCH, row.leader_epoch, *bound)
            yield "stale-share-write", _subject(key), fact
            return
        now = self._stored.setdefault(key, _StoredState())
        forget_oldest(self._stored)
        now.start_offset = max(now.start_offset, row.start_offset)
        for batch in row.state_batches:
            progress = (batch.delivery_count, batch.delivery_state)
            for offset in offsets_of(batch, now.start_offset):
                now.progress[offset] = max(progress, now.progress.get(offset, NO_PROGRESS))
        for offset in [one for one in now.progress if one < now.start_offset]:
            del now.progress[offset]

    def _read(
        self,
        key: _ShareKey,
        asked: m.ReadShareGroupStateRequest.PartitionData,
        row: m.ReadShareGroupStateResponse.PartitionResult,
        before: _StoredState | None,
    ) -> Iterator[BrokenPromise]:
        now = self._stored.setdefault(key, _StoredState())
        now.leader_epoch = max(now.leader_epoch, asked.leader_epoch)
        if before is None:
            return
        if row.start_offset < before.start_offset:
            back = WentBack(Measure.SHARE_START, before.start_offset, row.start_offset)
            yield "share-state-back", _subject(key), back
            return
        for offset, progress in before.progress.items():
            read = progress_at(row.state_batches, offset)
            if offset >= row.start_offset and read < progress:
                back = WentBack(Measure.DELIVERIES, progress[0], read[0])
                yield "share-state-back", f"{_subject(key)}, offset {offset}", back
                return

    # --------------------------------------------------------------------------- members

    def on_request(self, broker: int, request: Request, led_by: LedBy, now_ms: int) -> None:
        """Record a member's request when it arrives at a leader, and which of its acknowledgements
        must be refused or accepted.  The member no longer holds the records that it
        acknowledges."""
        body: m.ShareFetchRequest | m.ShareAcknowledgeRequest = request.body
        group, member = body.group_id or "", body.member_id or ""
        if body.share_session_epoch <= _OPENS:
            self._release(request.connection_id)
        if body.share_session_epoch < _OPENS:
            self._release_all(broker, group, member)
        self.answers.on_request(broker, request)
        refused: dict[tuple[bytes, int], BrokenPromise] = {}
        owned: dict[tuple[bytes, int], BrokenPromise] = {}
        renewed: dict[tuple[bytes, int], dict[int, _Hold]] = {}
        for topic in body.topics:
            for row in topic.partitions:
                key = (group, topic.topic_id, row.partition_index)
                held, led = self._holds.get(key, {}), led_by(broker, *key[1:])
                own = _all_held(held, row.acknowledgement_batches, request.connection_id)
                if led and own and group not in self.reconfigured:
                    offset, until_ms = min(own), min(one.until_ms for one in own.values())
                    if all(_is_valid(one, broker, led, at, now_ms) for at, one in own.items()):
                        lost = Locked(offset, until_ms, now_ms, member)
                        owned[key[1:]] = ("lock-lost", _subject(key), lost)
                renewed[key[1:]] = _renewed(held, row.acknowledgement_batches, member)
                for offset in _named(held, row.acknowledgement_batches) if led else ():
                    hold = held[offset]
                    if hold.member == member:
                        del held[offset]
                    elif led is not None and _is_valid(hold, broker, led, offset, now_ms):
                        fact = HeldBy(member, hold.member, offset)
                        refused[key[1:]] = ("foreign-ack", _subject(key), fact)
        self._arrivals += 1
        self._arrived[request] = _Arrived(self._arrivals, broker, now_ms, refused, owned, renewed)
        forget_oldest(self._arrived)

    def _give_up(self, key: tuple[int, str, bytes, int]) -> None:
        self._given_up[key] = self._arrivals
        forget_oldest(self._given_up)
        held = self._holds.get(key[1:], {})
        for offset in [offset for offset, hold in held.items() if hold.broker == key[0]]:
            del held[offset]

    def on_decided(
        self, reply: Reply, led_by: LedBy, now_ms: int
    ) -> Iterator[tuple[int, BrokenPromise]]:
        """What an answer breaks, with its broker.  Called once the answer is decided, and perhaps
        again when it is sent."""
        yield from self.answers.on_decided(reply)
        request, answer = reply.request, reply.body
        arrived = self._arrived.pop(request, None)
        if arrived is None or answer is None or answer.error_code:
            return
        broker, refused = arrived.broker, arrived.refused
        lock_ms = self.lock_ms(broker, request.body.group_id or "")
        if lock_ms is not None and lock_ms != answer.acquisition_lock_timeout_ms:
            differs = Outdated(Measure.LOCK_MS, answer.acquisition_lock_timeout_ms, lock_ms)
            yield broker, ("lock-differs", f"group {request.body.group_id}", differs)
        body: m.ShareFetchRequest | m.ShareAcknowledgeRequest = request.body
        # The records may have been acquired under earlier configs, with a shorter lock.
        told_ms = answer.acquisition_lock_timeout_ms
        shortest_ms = self._shortest_ms.get(body.group_id or "", told_ms)
        self._shortest_ms[body.group_id or ""] = min(told_ms, shortest_ms)
        forget_oldest(self._shortest_ms)
        for topic in answer.responses:
            for row in topic.partitions:
                at = (topic.topic_id, row.partition_index)
                is_fetched = isinstance(row, m.ShareFetchResponse.PartitionData)
                error = row.acknowledge_error_code if is_fetched else row.error_code
                given_up = (broker, body.group_id or "", *at)
                if error not in (ErrorCode.NONE, _NOT_HELD):
                    self._give_up(given_up)
                if at in refused and not error:
                    yield broker, refused[at]
                elif (
                    at in arrived.owned
                    and error == _NOT_HELD
                    and self._given_up.get(given_up, -1) < arrived.number
                ):
                    yield broker, arrived.owned[at]
                for offset, hold in arrived.renewed.get(at, {}).items() if not error else ():
                    until_ms = arrived.at_ms + self._shortest_ms[body.group_id or ""]
                    held = self._holds.setdefault((body.group_id or "", *at), {})
                    held[offset] = replace(hold, until_ms=until_ms)
                led = led_by(broker, *at) if is_fetched and row.acquired_records else None
                if led is None:
                    continue
                key = (body.group_id or "", *at)
                loss = self._losses.get((broker, led.topic, at[1]))
                if loss and loss.arrivals >= arrived.number:
                    continue  # the records may be lent in the tenure that the broker has lost
                if loss and key[0] not in loss.loaded:
                    unread = NotLoaded(led.leader_epoch, row.acquired_records[0].first_offset)
                    yield broker, ("stale-share-leader", _subject(key), unread)
                # The answer may have waited for acknowledgements to be stored, while the lock ran.
                until_ms = arrived.at_ms + self._shortest_ms[key[0]]
                held_in = (request.connection_id, broker, led.leader_epoch)
                own = _Hold(body.member_id or "", *held_in, until_ms)
                held = self._holds.setdefault(key, {})
                for some in row.acquired_records:
                    for offset in range(some.first_offset, some.last_offset + 1):
                        other = held.get(offset, own)
                        is_held = all(
                            _is_valid(one, broker, led, offset, now_ms) for one in (own, other)
                        )
                        if is_held and other.member != own.member:
                            fact = HeldBy(own.member, other.member, offset)
                            yield broker, ("acquired-twice", _subject(key), fact)
                        held[offset] = max(own, other, key=lambda one: one.until_ms)
                for _ in range(len(held) - MAX_HELD):
                    del held[next(iter(held))]


def offsets_of(batch: OffsetRange, from_offset: int) -> range:
    """The offsets of a stored batch from `from_offset` on.  None of them if there are more than may
    be in flight: then the batch was written by some other client, not by a leader."""
    first = max(batch.first_offset, from_offset)
    return range(first, batch.last_offset + 1 if batch.last_offset - first < MAX_HELD else first)


def progress_at(batches: Sequence[StoredBatch], offset: int) -> Progress:
    """A record's progress according to stored batches, which are sorted by offset."""
    at = bisect_left(batches, offset, key=lambda one: one.last_offset)
    if at == len(batches) or batches[at].first_offset > offset:
        return NO_PROGRESS
    return (batches[at].delivery_count, batches[at].delivery_state)


def _named(held: Iterable[int], batches: Sequence[OffsetRange]) -> list[int]:
    """The held offsets within any of the batches.  Batches may overlap and be of any size."""
    if not batches:
        return []
    ranges = sorted((one.first_offset, one.last_offset) for one in batches)
    ends = list(accumulate((last for _, last in ranges), max))
    firsts = [first for first, _ in ranges]
    at = ((offset, bisect_right(firsts, offset)) for offset in held)
    return [offset for offset, number in at if number and ends[number - 1] >= offset]


def _all_held(
    held: dict[int, _Hold],
    batches: Sequence[
        m.ShareFetchRequest.AcknowledgementBatch | m.ShareAcknowledgeRequest.AcknowledgementBatch
    ],
    connection: int,
) -> dict[int, _Hold]:
    """The records that a request acknowledges, if its connection holds all of them, none is named
    twice, and none is renewed; otherwise none."""
    count = sum(one.last_offset - one.first_offset + 1 for one in batches)
    if not 0 < count <= len(held) or any(_RENEW in one.acknowledge_types for one in batches):
        return {}
    offsets = {at for one in batches for at in range(one.first_offset, one.last_offset + 1)}
    own = {at: hold for at in offsets if (hold := held.get(at)) and hold.connection == connection}
    return own if len(own) == count else {}


def _renewed(
    held: dict[int, _Hold],
    batches: Sequence[
        m.ShareFetchRequest.AcknowledgementBatch | m.ShareAcknowledgeRequest.AcknowledgementBatch
    ],
    member: str,
) -> dict[int, _Hold]:
    """A member's held records that a request renews without also acknowledging them."""
    only = [one for one in batches if set(one.acknowledge_types) == {_RENEW}]
    others = _named(held, [one for one in batches if one not in only]) if only else []
    return {
        offset: held[offset]
        for offset in _named(held, only)
        if held[offset].member == member and offset not in others
    }


def _is_valid(hold: _Hold, broker: int, led: Led, offset: int, now_ms: int) -> bool:
    """Whether a member still holds a record, as far as its leader knows."""
    is_same = (hold.broker, hold.leader_epoch) == (broker, led.leader_epoch)
    return is_same and now_ms < hold.until_ms and offset >= led.log_start


def _subject(key: _ShareKey) -> str:
    return f"group {key[0]}, partition {key[2]}"
