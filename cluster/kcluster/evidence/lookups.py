"""Looking things up in what was recorded: who lived, led, held or was told what, and when.

Owns: indexes over a recorder's notes, appends, moves and answers.  Never: tells a story (causes.py,
availability.py do), judges.  Kafka: no counterpart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kcluster.clients.ledger import Partition, Send
from kcluster.contract import Note, NoteId, Request
from kcluster.evidence.history import Ledger, Link
from kcluster.evidence.recorder import Answer, Recorder
from kcluster.invariants.ground import Append, Ground, Move
from kcluster.metadata.image import PartitionRegistration
from kcluster.runtime.dispatch import RUNTIME_ID
from kcluster.trace import kinds

CHANGES_OF_STATE: Final = {
    kinds.BROKER_STARTED: "up", kinds.BROKER_RESUMED: "up", kinds.BROKER_DOWN: "down",
    kinds.BROKER_PAUSED: "paused",
}  # fmt: skip
OF_LEADERS: Final = (kinds.LEADER_ELECTED, kinds.PARTITION_OFFLINE)
MANY: Final = 2
LOSING: Final = ("power", "wipe")


class Facts:
    """One run's, when it is over."""

    def __init__(
        self, recorder: Recorder, ledger: Ledger, clients: Mapping[str, int] | None = None
    ) -> None:
        self.recorder = recorder
        self.clients = {} if clients is None else clients
        """Ids in the fabric by name."""
        self._client_names = {number: name for name, number in self.clients.items()}
        self.ledger = ledger
        self.notes = recorder.notes
        self.by_id: dict[NoteId, Note] = {note.note_id: note for note in self.notes}
        self._of_partition: dict[Partition, list[Note]] = {}
        self._of_broker: dict[int, list[Note]] = {}
        self.of_links: list[Note] = []
        self._sets_changed: dict[tuple[str, int], Note] = {}
        """When links were cut or healed by sets, which is told once for all of them."""
        for note in self.notes:
            self._index(note)
        self._answers: dict[tuple[int, int], Answer] | None = None
        self._places: dict[Partition, dict[bytes | None, list[tuple[Ground, Append, int]]]] = {}
        self._sends: dict[tuple[Partition, bytes | None], Send] | None = None

    def _index(self, note: Note) -> None:
        data = note.data
        if "partition" in data and "topic" in data:
            key = (data["topic"], data["partition"])
            self._of_partition.setdefault(key, []).append(note)
        if note.kind in (kinds.LINK_CUT, kinds.LINK_HEALED):
            self.of_links.append(note)
        elif note.kind == kinds.NETWORK_CUT:
            self._sets_changed[kinds.LINK_CUT, note.at_ms] = note
        elif note.kind == kinds.NETWORK_HEALED:
            self._sets_changed[kinds.LINK_HEALED, note.at_ms] = note
        elif isinstance(data.get("broker"), int) and "topic" not in data:
            self._of_broker.setdefault(data["broker"], []).append(note)

    def client_name(self, client_id: int) -> str:
        """What a client is called, by its id in the fabric."""
        return self._client_names.get(client_id, f"client {client_id}")

    # ---------------------------------------------------------------------------- of notes

    def is_deed(self, note: Note) -> bool:
        """Whether it tells what was done to the cluster, and no other note tells more of it."""
        if note.note_id[0] != RUNTIME_ID:
            return False
        return (note.kind, note.at_ms) not in self._sets_changed

    def of_partition(self, partition: Partition, *wanted: str) -> list[Note]:
        """Its notes, oldest first; of these kinds only, if any are named."""
        notes = self._of_partition.get(partition, [])
        return [note for note in notes if not wanted or note.kind in wanted]

    def of_broker(self, broker: int, *wanted: str) -> list[Note]:
        """The same of a broker as a process."""
        notes = self._of_broker.get(broker, [])
        return [note for note in notes if not wanted or note.kind in wanted]

    def state(self, broker: int, at_ms: int) -> tuple[str, Note | None]:
        """`up`, `down` or `paused` at that time, and the note of when it became so."""
        last = None
        for note in self.of_broker(broker, *CHANGES_OF_STATE):
            if note.at_ms > at_ms:
                break
            last = note
        return ("up", None) if last is None else (CHANGES_OF_STATE[last.kind], last)

    def cut(self, source: int, destination: int, at_ms: int) -> Note | None:
        """The note by which this link was cut, if it was at that time."""
        last = None
        for note in self.of_links:
            if note.at_ms > at_ms:
                break
            if (note.data.get("source"), note.data.get("to")) == (source, destination):
                last = note
        return last if last is not None and last.kind == kinds.LINK_CUT else None

    def causes_of(self, note: Note) -> list[Note]:
        """What led to `note`, as notes say, the nearest first; where they say no more, the last
        thing that was done to the broker that they name."""
        found: list[Note] = []
        seen = {note.note_id}
        current = note
        while current.cause is not None and current.cause in self.by_id:
            current = self.by_id[current.cause]
            if current.note_id in seen:
                break
            seen.add(current.note_id)
            found.append(current)
        broker = current.data.get("broker")
        if current.kind == kinds.BROKER_FENCED and isinstance(broker, int):
            deed = self.deed_before(broker, current.at_ms)
            if deed is not None:
                found.append(deed)
        return found

    def with_causes(self, note: Note) -> list[Link]:
        """A note and what led to it, the cause before the effect."""
        return [*(link(cause) for cause in reversed(self.causes_of(note))), link(note)]

    def deed_before(self, broker: int, at_ms: int) -> Note | None:
        """What was done to a broker last, as a process or on its links, if it has not been undone:
        why nobody heard of it."""
        state, note = self.state(broker, at_ms)
        if state != "up":
            return note
        for link in reversed(self.of_links):
            if (
                link.at_ms <= at_ms and link.kind == kinds.LINK_CUT
                and broker in (link.data.get("source"), link.data.get("to"))
                and self.cut(link.data["source"], link.data["to"], at_ms) is link
            ):  # fmt: skip
                return self._sets_changed.get((link.kind, link.at_ms), link)
        return None

    # ------------------------------------------------------------------------- of partitions

    def registration(self, ground: Ground, at_ms: int) -> PartitionRegistration | None:
        """A partition as the controller had it at that time."""
        at = bisect_right(ground.registrations, at_ms, key=lambda entry: entry[0])
        return ground.registrations[at - 1][1] if at else None

    def log_end(self, ground: Ground, broker: int, at_ms: int) -> int | None:
        """Where a replica's log ended at that time; None before it was seen."""
        at = bisect_right(ground.moves, at_ms, key=lambda move: move.at_ms)
        for move in reversed(ground.moves[:at]):
            if move.broker == broker:
                return move.log_end_offset
        return None

    def reached(self, ground: Ground, append: Append, broker: int) -> int | None:
        """When a replica first had all of `append`, as far as it did in that epoch."""
        for move in self._moves_since(ground, append.at_ms):
            if move.broker == broker and move.log_end_offset > append.last_offset:
                return move.at_ms
        return None

    def _moves_since(self, ground: Ground, at_ms: int) -> Iterator[Move]:
        first = bisect_right(ground.moves, at_ms - 1, key=lambda move: move.at_ms)
        for index in range(first, len(ground.moves)):
            yield ground.moves[index]

    # ---------------------------------------------------------------------- of single records

    def appends_at(
        self, partition: Partition, offset: int, value: bytes | None = None
    ) -> list[tuple[Ground, Append]]:
        """Every append that held `offset`, oldest first; with `value`, only those in which it
        stands there."""
        contents = self.recorder.contents
        return [
            (ground, append)
            for ground in self.recorder.of_partition(partition)
            for append in ground.appends
            if append.base_offset <= offset <= append.last_offset
            and (value is None or (offset, value) in contents.of(append.batch))
        ]

    def places(self, partition: Partition, value: bytes | None) -> list[tuple[Ground, Append, int]]:
        """Wherever a value was ever appended: (ground, append, offset), oldest first."""
        known = self._places.get(partition)
        if known is None:
            known = self._places[partition] = {}
            for ground in self.recorder.of_partition(partition):
                for append in ground.appends:
                    for offset, own in self.recorder.contents.of(append.batch):
                        known.setdefault(own, []).append((ground, append, offset))
        return known.get(value, [])

    def send(self, partition: Partition, value: bytes | None) -> Send | None:
        """The send of a value."""
        if self._sends is None:
            self._sends = {(send.partition, send.value): send for send in self.ledger.sends}
        return self._sends.get((partition, value))

    def rule_hit(self, request: Request) -> Note | None:
        """The note of the rule that a request met, if it met one."""
        for note in self.notes:
            if (
                note.kind == kinds.RULE_HIT
                and note.data.get("connection") == request.connection_id
                and note.data.get("correlation") == request.correlation_id
            ):
                return note
        return None

    def shaped(self, at_ms: int) -> Note | None:
        """The note of how links were shaped last, if they still were at that time."""
        shaped = [
            note for note in self.notes if note.kind == kinds.NETWORK_SHAPED and note.at_ms <= at_ms
        ]
        return shaped[-1] if shaped and not shaped[-1].data.get("restored") else None

    def answer(self, request: Request | None) -> Answer | None:
        """What the broker answered to a request, if it did."""
        if request is None:
            return None
        if self._answers is None:
            self._answers = {
                (answer[2].request.connection_id, answer[2].request.correlation_id): answer
                for answer in self.recorder.answers
            }
        return self._answers.get((request.connection_id, request.correlation_id))


def link(note: Note, text: str | None = None) -> Link:
    """A note as a link of a chain."""
    shown = note.text if text is None else text
    if text is None and not note.text.startswith((note.subject, "broker ")):
        shown = f"{note.subject}: {note.text}"
    return Link(note.at_ms, shown, note.note_id)


def told_once(notes: Iterable[Note]) -> list[Link]:
    """Each as a link; many links of the network that were cut or healed at once as one."""
    links: list[Link] = []
    of_links: dict[tuple[str, int], list[Note]] = {}
    for note in notes:
        if note.kind in (kinds.LINK_CUT, kinds.LINK_HEALED):
            of_links.setdefault((note.kind, note.at_ms), []).append(note)
        else:
            links.append(link(note))
    for same in of_links.values():
        if len(same) <= MANY:
            links += [link(note) for note in same]
        else:
            text = f"{len(same)} links, from {same[0].subject} on: {same[0].text}"
            links.append(Link(same[0].at_ms, text, same[0].note_id))
    return links


def between(
    notes: list[Note], from_ms: int, to_ms: int, holds: Callable[[Note], bool] | None = None
) -> list[Note]:
    """Those of that time, both ends included."""
    return [
        note for note in notes if from_ms <= note.at_ms <= to_ms and (holds is None or holds(note))
    ]
