"""The data of the timeline page: page.py embeds it in the HTML file, html/*.js draw it.

Owns: the counts of clients over time, indexes instead of names.
Never: draws, makes HTML, reads files, decides how an event is shown (note_values.py).
Kafka: no counterpart.

`values_of` returns plain values for JSON.  Times are whole ms since the run began.  A note is
referred to by its index in `notes`, -1 for none.  Lanes: `actions` has faults and the steps of the
scenario, `control` the controller and consumer groups, `b<id>` a broker, `p<index>` a partition by
its index in `partitions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct, field

from kcluster.clients.ledger import Partition
from kcluster.events.brokers import BrokerStarted
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.events.partitions import LogTruncated, PartitionEvent, ReassignmentStarted
from kcluster.events.standing import AHEAD, BASE_LABELS, BEHIND
from kcluster.events.topics import TopicDeleted
from kcluster.events.words import short_text, text_after_subject
from kcluster.json_types import JsonObject
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.application_data import application_counts, application_lanes, marks_in_logs
from kcluster.runs.broker_states import Spans, broker_spans, link_spans
from kcluster.runs.note_values import ACTIONS, NO_LANE, lane_beside_partitions, mood_of, sets_among
from kcluster.runs.record import NoteRow, RunRecord
from kcluster.runs.replica_series import Series, steps, thin

MAX_POINTS: Final = 60_000
"""The most points of all replicas together; above it they are thinned, except for decreases."""
MAX_TIMES: Final = 4_000
"""The most times of a client's sends or reads; above it adjacent times are merged."""


class _Partition(Struct):
    """The lane of a partition.  `leaders`: rows of (ms, leader, epoch, ISR, ELR); leader -2 means
    that it was deleted."""

    name: str
    internal: bool
    replicas: tuple[int, ...] = ()
    leaders: list[tuple[Any, ...]] = field(default_factory=list)
    series: dict[int, Series] = field(default_factory=dict)
    changed: bool = False


class _Client(Struct):
    """The lane of a client: counts by time."""

    name: str
    sent: dict[int, int] = field(default_factory=dict)
    ended: dict[int, list[int]] = field(default_factory=dict)
    """By time: acked, failed, unknown, and the longest duration among them."""
    reads: dict[int, int] = field(default_factory=dict)
    errors: dict[tuple[int, str, str, str], int] = field(default_factory=dict)


def values_of(record: RunRecord) -> JsonObject:
    """The data of the page; units are in the docstring of the module."""
    return _PageData(record).values()


class _PageData:
    """Collects the data from a record, table by table."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._began_ms = record.info.began_ms
        self._end_ms = max(record.info.ended_ms - self._began_ms, 1)
        self._cell_ms = max(1, self._end_ms // MAX_TIMES)
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._clients: dict[str, _Client] = {}
        self._ordered: list[_Partition] = []
        self._places: dict[tuple[str, int], int] = {}
        self._kinds: dict[str, int] = {}

    def values(self) -> dict[str, object]:
        record = self._record
        info, verdict = record.info, record.verdict
        self._read_leaders()
        self._read_moves()
        self._sort()
        self._read_clients()
        self._marks = marks_in_logs(record, self._began_ms)
        notes = self._notes()
        # Before the partitions: windows and anomalies mark theirs as changed.
        windows = [self._window(each) for each in verdict.get("windows", ())]
        anomalies = [self._anomaly(each) for each in verdict.get("anomalies", ())]
        return {
            "run": {
                "name": info.name,
                "clock": info.clock,
                "seed": info.seed,
                "outcome": info.outcome,
                "application": application_counts(record),
                "passed": info.passed,
                "failures": info.failures,
                "reason": verdict.get("reason", ""),
                "story": info.story.strip(),
                "replay": info.replay,
                "source": info.source,
                "version": info.version,
                "scenario": record.scenario,
                "end": self._end_ms,
                "counts": self._counts(),
            },
            "kinds": list(self._kinds),
            "labels": {"base": BASE_LABELS, "ahead": AHEAD, "behind": BEHIND},
            "notes": notes,
            "brokers": self._brokers(),
            "partitions": [self._partition(*entry) for entry in self._partitions.items()],
            "clients": [self._client(each) for each in self._clients.values()],
            "windows": windows,
            "anomalies": anomalies,
            "violations": [self._violation(each) for each in verdict.get("violations", ())],
            "problems": [each.text for each in record.problems],
            "degraded": verdict.get("degraded_lines", []),
            "applications": application_lanes(record, self._began_ms, self._cell_ms),
        }

    def _since(self, at_ms: int) -> int:
        return at_ms - self._began_ms

    # ---------------------------------------------------------------------- partitions

    def _of(self, topic: str, number: int) -> _Partition:
        found = self._partitions.get((topic, number))
        if found is None:
            name = f"{topic}-{number}"
            found = self._partitions[topic, number] = _Partition(name, has_internal_prefix(topic))
        return found

    def _read_leaders(self) -> None:
        for row in self._record.leaders:
            partition = self._of(row.topic, row.partition)
            partition.replicas = tuple(dict.fromkeys((*partition.replicas, *row.replicas)))
            at = self._since(row.at_ms)
            partition.leaders.append((at, row.leader, row.leader_epoch, row.isr, row.elr))
        deleted: dict[str, list[int]] = {}
        for note in self._record.notes:
            if isinstance(note.event, TopicDeleted):
                deleted.setdefault(note.event.topic, []).append(self._since(note.at_ms))
        for (topic, _), partition in self._partitions.items():
            partition.leaders += [(at, -2, -1, (), ()) for at in deleted.get(topic, ())]
            partition.leaders.sort(key=_in_order)
            partition.leaders = list({row[0]: row for row in partition.leaders}.values())
            partition.changed = sum(row[0] > 0 for row in partition.leaders) > 0

    def _read_moves(self) -> None:
        for row in self._record.moves:
            series = self._of(row.topic, row.partition).series
            one = series.get(row.broker)
            if one is None:
                one = series[row.broker] = Series()
            one.add(row.at_ms - self._began_ms, row.log_end_offset, row.high_watermark)
        every = [one for each in self._partitions.values() for one in each.series.values()]
        if sum(len(one.times) for one in every) > MAX_POINTS:
            budget = max(MAX_POINTS // len(every), 20)
            for one in every:
                thin(one, -(-self._end_ms // budget))

    def _sort(self) -> None:
        self._partitions = dict(sorted(self._partitions.items()))
        self._ordered = list(self._partitions.values())
        self._places = {key: place for place, key in enumerate(self._partitions)}

    def _partition(self, key: Partition, each: _Partition) -> dict[str, object]:
        marks = self._marks.get(key, [])
        series = [
            {
                "broker": broker,
                "t": steps(one.times),
                "end": steps(one.ends),
                "hw": steps(one.watermarks),
            }
            for broker, one in sorted(each.series.items())
        ]
        return {
            "name": each.name,
            "internal": each.internal,
            "changed": each.changed or bool(marks),
            "marks": marks,
            "replicas": each.replicas,
            "leaders": each.leaders,
            "series": series,
        }

    # ------------------------------------------------------------------------- clients

    def _client_of(self, name: str) -> _Client:
        found = self._clients.get(name)
        if found is None:
            found = self._clients[name] = _Client(name)
        return found

    def _read_clients(self) -> None:
        cell = self._cell_ms
        began_ms = self._began_ms
        places = {"acked": 0, "failed": 1}
        for send in self._record.sends:
            client = self._client_of(send.producer)
            if send.sent_ms >= 0:
                at = (send.sent_ms - began_ms) // cell * cell
                client.sent[at] = client.sent.get(at, 0) + 1
            if send.ended_ms >= 0:
                at = (send.ended_ms - began_ms) // cell * cell
                counts = client.ended.get(at)
                if counts is None:
                    counts = client.ended[at] = [0, 0, 0, 0]
                counts[places.get(send.outcome, 2)] += 1
                counts[3] = max(counts[3], send.ended_ms - max(send.sent_ms, began_ms))
        for read in self._record.reads:
            client = self._client_of(read.consumer)
            at = (read.at_ms - began_ms) // cell * cell
            client.reads[at] = client.reads.get(at, 0) + 1
        for row in self._record.errors:
            client = self._client_of(row.client)
            about = "" if row.topic is None else f"{row.topic}-{row.partition}"
            key = ((row.at_ms - began_ms) // cell * cell, row.api, row.error, about)
            client.errors[key] = client.errors.get(key, 0) + 1

    def _client(self, each: _Client) -> dict[str, object]:
        return {
            "name": each.name,
            "sent": sorted(each.sent.items()),
            "ended": [(at, *counts) for at, counts in sorted(each.ended.items())],
            "reads": sorted(each.reads.items()),
            "errors": [(*key, count) for key, count in sorted(each.errors.items())],
        }

    # --------------------------------------------------------------------------- notes

    def _notes(self) -> list[tuple[Any, ...]]:
        """Rows of (ms, index of the kind, lane, subject, text, cause, short text of an action,
        mood)."""
        self._numbers = {note.id: number for number, note in enumerate(self._record.notes)}
        # A set of links that is cut or healed is shown as a whole, without its links.
        self._sets = sets_among(self._record.notes)
        rows = []
        for note in self._record.notes:
            event, lane = note.event, self._lane(note)
            kind = self._kinds.setdefault(event.kind, len(self._kinds))
            if isinstance(event, LogTruncated) and lane.startswith("p"):
                self._partition_at(int(lane[1:])).changed = True
            rows.append(
                (
                    self._since(note.at_ms),
                    kind,
                    lane,
                    event.subject,
                    text_after_subject(event),
                    self._number(note.cause),
                    short_text(event) if lane == ACTIONS else "",
                    mood_of(event),
                )
            )
        return rows

    def _partition_at(self, place: int) -> _Partition:
        return self._ordered[place]

    def _lane(self, note: NoteRow) -> str:
        event = note.event
        if isinstance(event, LinkCut | LinkHealed):
            return NO_LANE if note.at_ms in self._sets else ACTIONS
        if isinstance(event, PartitionEvent):
            place = self._places.get((event.topic, event.partition))
            if place is not None and not isinstance(event, ReassignmentStarted):
                return f"p{place}"
        return lane_beside_partitions(note, self._began_ms)

    def _number(self, note_id: Any) -> int:
        return -1 if note_id is None else self._numbers.get(tuple(note_id), -1)

    def _brokers(self) -> list[JsonObject]:
        notes = self._record.notes
        known = [each["id"] for each in self._record.info.topology.get("brokers", ())]
        seen = [note.event.broker for note in notes if isinstance(note.event, BrokerStarted)]
        replicas = [broker for each in self._partitions.values() for broker in each.replicas]
        racks = {
            each["id"]: each.get("rack") for each in self._record.info.topology.get("brokers", ())
        }
        ids = sorted(dict.fromkeys((*known, *seen, *replicas)))
        states, fenced = broker_spans(notes, ids)
        cuts = link_spans(notes, ids)
        return [
            {
                "id": broker,
                "rack": racks.get(broker) or "",
                "states": self._spans(states[broker]),
                "fenced": self._spans(fenced[broker]),
                "cuts": self._spans(cuts[broker]),
            }
            for broker in ids
        ]

    def _spans(self, spans: Spans) -> list[tuple[int, int, str, int]]:
        """(from, to, text, note that began it); the last one lasts until the end of the run."""
        over = (self._end_ms + self._began_ms, "", None)
        return [
            (self._since(at), self._since(end), what, self._number(note))
            for (at, what, note), (end, *_) in pairwise((*spans, over))
            if what and end > at
        ]

    # ------------------------------------------------------------------------- verdict

    def _counts(self) -> dict[str, int]:
        names = ("sent", "acked", "failed", "unknown", "read")
        return {name: self._record.verdict.get(name, 0) for name in names}

    def _chain(self, links: Iterable[JsonObject]) -> list[tuple[int, str, int]]:
        return [
            (self._since(link["at_ms"]), _shorter(link["text"]), self._number(link.get("note_id")))
            for link in links
        ]

    def _window(self, each: JsonObject) -> dict[str, object]:
        return {
            "kind": each["kind"],
            "partition": self._place(each["partition"]),
            "from": self._since(each["from_ms"]),
            "to": self._since(each["to_ms"]),
            "over": each["is_over"],
            "clients": each["clients"],
            "errors": each["errors"],
            "chain": self._chain(each["reasons"]),
        }

    def _anomaly(self, each: JsonObject) -> dict[str, object]:
        chain = self._chain(each["chain"])
        at = each["at_ms"] if each["at_ms"] >= 0 else self._began_ms
        return {
            "name": each["name"],
            "partition": self._place(each["partition"]),
            "where": "-".join(map(str, each["partition"])),
            "text": _shorter(each["text"]),
            "count": each["count"],
            "client": each["client"],
            "allowed": each["allowed"],
            "at": self._since(at),
            "chain": chain,
        }

    def _violation(self, each: JsonObject) -> dict[str, object]:
        return {
            "name": each["name"],
            "subject": each["subject"],
            "text": each["text"],
            "at": self._since(each["at_ms"]),
        }

    def _place(self, partition: list[Any]) -> int:
        place = self._places.get((partition[0], partition[1]), -1)
        if place >= 0:
            self._partition_at(place).changed = True
        return place


def _in_order(row: tuple[Any, ...]) -> tuple[int, int]:
    """Sort key by time.  If a topic is deleted and created again in one ms, the new one is last."""
    at, leader, epoch, *_ = row
    return at, 1 if leader == -2 else 2 if epoch == 0 else 0


def _shorter(text: str) -> str:
    """Text without the padding of records, for which workloads use dots."""
    return re.sub(r"\.{6,}", "…", text)
