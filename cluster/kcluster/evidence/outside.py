"""The ledger of clients that keep none, made from the requests and answers at the brokers.

Owns: the ledger of outside clients, and the names of their records.  Never: adds a client that
keeps its own ledger.  Kafka: no counterpart.

An outside client is assumed to have received every answer of a broker, which cannot be known.
Its values may be equal: a record whose value was sent before is named by the value and a number.
Its sends are in the order in which brokers first saw their batches, refused ones too (attempts.py).
Several producers under one client id are one producer here, whose sends are in the log's order.
A position is not among what is known: a client that has died would be taken for one that has read
to the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.broker.serving.reading import READ_COMMITTED
from kcluster.broker.share.configs import is_dead_letter_queue
from kcluster.clients.consumer.completed_fetch import AbortedTransactions
from kcluster.clients.ledger import ClientError, Ledger, Outcome, Partition, ReadRecord, SentRecord
from kcluster.contract import Request
from kcluster.evidence.attempts import (
    NOT_REFUSED,
    Attempt,
    SentBatch,
    arrival,
    batches_by_request,
    crcs_in,
    shared_client_ids,
)
from kcluster.evidence.group_history import Commit, FetchedOffset, offset_answers
from kcluster.evidence.recorder import Answer, PartitionAnswer, Recorder
from kcluster.invariants.observed import Append, ObservedPartition
from kcluster.operations.controller import controller_image
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import error_of
from kcluster.protocol.records.batches import CRC_AT, CRC_START, Batch, InvalidRecords

FROM_THE_START: Final = -(1 << 62)

Names = dict[Batch, list[bytes]]
"""The name of each record of a batch, by batch."""

Taken = dict[tuple[Partition, bytes], int]
"""The number in the last name that was made from a value, by partition and value or name."""

IsInside = Callable[[str | None], bool]
"""Whether a client id belongs to a client with its own ledger."""


def outside_ledger(
    recorder: Recorder, inside: Ledger, is_inside: IsInside, commits_since_ms: int = FROM_THE_START
) -> tuple[Ledger, Names]:
    """The ledger of all clients without their own, and the names of their records.  Commits have no
    time in a ledger, so commits before `commits_since_ms` are left out."""
    ledger = Ledger()
    names: Names = {}
    if not _has_any(recorder, is_inside):
        return ledger, names
    _attribute_verified(recorder)
    asked = _Asked(recorder, is_inside)
    taken: Taken = dict.fromkeys(((send.partition, send.value) for send in inside.sends), 1)
    image = controller_image(recorder.dispatcher)
    for observed in recorder.partitions.values():
        if not is_dead_letter_queue(image, observed.topic):
            _add_sends(recorder, observed, asked, ledger, names, taken)
    for answer in asked.answers:
        if answer.error_code:
            _add_error(ledger, answer, "Produce")
    _add_reads(recorder, ledger, is_inside)
    _add_commits(recorder, ledger, is_inside, commits_since_ms)
    return ledger, names


def _has_any(recorder: Recorder, is_inside: IsInside) -> bool:
    """Whether an outside client received an answer, or wrote something."""
    asked = {answer[2].request.client_id: None for answer in recorder.answers}
    for observed in recorder.partitions.values():
        asked.update(
            (append.request.client_id, None)
            for append in observed.appends
            if append.request is not None
        )
    return not all(map(is_inside, asked))


def _attribute_verified(recorder: Recorder) -> None:
    """Find the request of each append of a transaction that waited for the coordinator first
    (KIP-890), because the appending step handled the coordinator's answer."""
    appends = {
        (append.broker, (observed.topic, observed.partition), append.base_offset): append
        for observed in recorder.partitions.values()
        for append in observed.appends
        if append.request is None and append.batch.is_transactional and not append.batch.is_control
    }
    if not appends:
        return
    for answer in recorder.partition_answers(ApiKey.PRODUCE, _is_transactional):
        append = appends.get((answer.broker, answer.partition, answer.base_offset))
        if append is not None and append.request is None and not answer.error_code:
            append.request = answer.reply.request
    rest = [(place, append) for place, append in appends.items() if append.request is None]
    names = {key[0]: observed.topic for key, observed in recorder.partitions.items()}
    for broker, request, _ in recorder.invariants.replies.unanswered() if rest else ():
        if request.api_key != ApiKey.PRODUCE or request.body.transactional_id is None:
            continue
        named = {
            (names.get(topic.topic_id) or topic.name, data.index)
            for topic in request.body.topic_data
            for data in topic.partition_data
        }
        for place, append in rest:
            if place[0] == broker and place[1] in named and append.request is None:
                append.request = request
                named.remove(place[1])


def _is_transactional(answer: Answer) -> bool:
    return answer[2].request.body.transactional_id is not None


class _Asked:
    """The Produce requests of outside clients, and their answers.

    `answers`: in order of time; `of_partition`: these answers by partition; `refused`: by
    partition, the attempts that were refused before an append; `shared`: client ids of several
    producers.
    """

    def __init__(self, recorder: Recorder, is_inside: IsInside) -> None:
        self.is_inside = is_inside
        self.answers = list(
            recorder.partition_answers(
                ApiKey.PRODUCE, lambda entry: not is_inside(entry[2].request.client_id)
            )
        )
        self.of_partition: dict[Partition, list[PartitionAnswer]] = {}
        for answer in self.answers:
            self.of_partition.setdefault(answer.partition, []).append(answer)
        self.shared = shared_client_ids(
            dict.fromkeys((answer.broker, answer.reply.request) for answer in self.answers)
        )
        self.refused = self._refused(recorder)

    def _refused(self, recorder: Recorder) -> dict[Partition, list[Attempt]]:
        appended = {
            (append.request, (observed.topic, observed.partition))
            for observed in recorder.partitions.values()
            for append in observed.appends
        }
        ended_ms: dict[Request, dict[Partition, int]] = {}
        for answer in self.answers:
            request = answer.reply.request
            if answer.error_code and (request, answer.partition) not in appended:
                ended_ms.setdefault(request, {})[answer.partition] = answer.at_ms
        topic_names = {key[0]: observed.topic for key, observed in recorder.partitions.items()}
        found: dict[Partition, list[Attempt]] = {}
        for request, times in ended_ms.items():
            for partition, crc in crcs_in(request, topic_names):
                if partition in times:
                    attempt = Attempt(request, crc, refused_ms=times[partition])
                    found.setdefault(partition, []).append(attempt)
        return found


def _add_sends(
    recorder: Recorder,
    observed: ObservedPartition,
    asked: _Asked,
    ledger: Ledger,
    names: Names,
    taken: Taken,
) -> None:
    partition = (observed.topic, observed.partition)
    answers = asked.of_partition.get(partition, [])
    acked = {
        (answer.client, answer.base_offset): answer for answer in answers if not answer.error_code
    }
    errors = {answer.reply.request: answer for answer in answers if answer.error_code}
    carried: list[tuple[Append, Request, PartitionAnswer | None, bool]] = []
    attempts = list(asked.refused.get(partition, ()))
    for append in observed.appends:
        request = append.request
        if request is None or asked.is_inside(request.client_id):
            continue
        answer = acked.get((request.client_id or "", append.base_offset))
        if answer is not None and answer.at_ms < append.at_ms:
            answer = None
        is_acked = request.body.acks == 0 or answer is not None
        error = errors.get(request)
        refused_ms = NOT_REFUSED if error is None else error.at_ms
        crc = bytes(append.batch.buffer[CRC_AT:CRC_START])
        attempts.append(Attempt(request, crc, is_acked, refused_ms))
        carried.append((append, request, answer if is_acked else error, is_acked))
    batches = batches_by_request(attempts)
    sent: dict[str, list[SentBatch]] = {}
    for append, request, answer, is_acked in carried:
        batch = batches[request]
        if not batch.sends:
            batch.sends = _sends(recorder, append, batch, partition, taken)
            _end(batch.sends, append, answer, is_acked)
            sent.setdefault(request.client_id or "", []).append(batch)
        names[append.batch] = [send.value for send in batch.sends]
    for client, own in sent.items():
        if client not in asked.shared:
            own.sort(key=lambda batch: arrival(batch.first))
        for batch in own:
            ledger.sends += batch.sends


def _sends(
    recorder: Recorder, append: Append, batch: SentBatch, partition: Partition, taken: Taken
) -> list[SentRecord]:
    sends = []
    for _, value in recorder.contents.of(append.batch):
        name = value or b""
        key = (partition, name)
        number = taken.get(key, 0) + 1
        if number > 1:
            while (partition, name := b"%b (%d)" % (value or b"", number)) in taken:
                number += 1
            taken[partition, name] = 1
        taken[key] = number
        sends.append(
            SentRecord(
                batch.first.client_id or "",
                partition,
                name,
                batch.first.body.acks,
                append.batch.producer_id >= 0,
                sent_ms=batch.first.arrived_ms,
                attempts=batch.attempts,
            )
        )
    return sends


def _end(
    sends: list[SentRecord], append: Append, answer: PartitionAnswer | None, is_acked: bool
) -> None:
    """The outcome of the first attempt that was appended; without an answer it is unknown, unless
    none was requested."""
    for index, send in enumerate(sends):
        if is_acked:
            send.outcome = Outcome.ACKED
            send.offset = append.base_offset + index if answer is not None else -1
        if answer is not None:
            send.ended_ms = answer.at_ms
            send.error = error_of(answer.error_code).name if answer.error_code else ""


def _add_reads(recorder: Recorder, ledger: Ledger, is_inside: IsInside) -> None:
    positions: dict[tuple[str, Partition], int] = {}
    passed_to: dict[Partition, int] = {}
    """The offset below which clients have received all, by partition."""
    known_from = {
        partition: observed.known_from for partition, observed in recorder.present().items()
    }
    for answer in recorder.partition_answers(
        ApiKey.FETCH, lambda entry: not is_inside(entry[2].request.client_id)
    ):
        if answer.error_code:
            _add_error(ledger, answer, "Fetch")
            continue
        hiding: AbortedTransactions | None = None
        if answer.reply.request.body.isolation_level == READ_COMMITTED:
            ledger.read_committed[answer.client] = None
            hiding = AbortedTransactions(list(answer.aborted))
        if answer.batches:
            after, partition = answer.last + 1, answer.partition
            if answer.first > passed_to.get(partition, 0):
                ledger.late_starts[answer.client] = None
            passed_to[partition] = max(after, passed_to.get(partition, 0))
        for batch in answer.batches:
            if hiding is not None and batch.is_control:
                try:
                    hiding.pass_marker(batch)
                except InvalidRecords as problem:
                    recorder.contents.unreadable[batch] = problem
            elif hiding is not None and hiding.hides(batch):
                continue
            for offset, value in recorder.contents.of(batch):
                key = (answer.client, answer.partition)
                position = positions.get(key, -1)
                if batch.base_offset < position and offset < position <= batch.last_offset:
                    continue  # the first batch of a fetch may start before the requested offset
                is_next = offset == position
                positions[key] = offset + 1
                if offset < known_from.get(answer.partition, 0):
                    continue  # its sender is unknown
                ledger.reads.append(
                    ReadRecord(
                        answer.client, answer.partition, offset, value, not is_next, answer.at_ms
                    )
                )


def _add_error(ledger: Ledger, answer: PartitionAnswer, api: str) -> None:
    error = error_of(answer.error_code).name
    ledger.errors.append(ClientError(answer.at_ms, answer.client, api, error, answer.partition))


def _add_commits(recorder: Recorder, ledger: Ledger, is_inside: IsInside, since_ms: int) -> None:
    acked: dict[tuple[str, Partition], list[Commit]] = {}
    answers = (
        answer
        for answer in recorder.answers
        if answer[0] >= since_ms and not is_inside(answer[2].request.client_id)
    )
    for each in offset_answers(recorder, answers):
        commits = acked.setdefault((each.group, each.partition), [])
        if isinstance(each, FetchedOffset):
            if each.offset >= 0:
                before = (x.offset for x in reversed(commits) if x.at_ms < each.asked_ms)
                known = next(before, -1)
                ledger.add_fetched(each.group, each.partition, each.offset, known)
        elif each.is_accepted:
            commits.append(each)
            ledger.add_commit(each.group, each.partition, each.offset)
