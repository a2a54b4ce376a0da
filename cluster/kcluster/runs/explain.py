"""A run as text: each change with its cause, and each replica's log drawn as a bar of cells.

Owns: the choice of the notes, the drawing of logs.  Never: reads files or prints.  Colours are rich
markup; `plain` removes it.
Kafka: no counterpart; operators correlate controller.log, state-change.log and kafka-dump-log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kcluster.checks.processing_words import shown
from kcluster.events import AnyEvent
from kcluster.events.partitions import LeaderChange, LogTruncated, PartitionEvent
from kcluster.events.render import ECHOES, one_line
from kcluster.events.words import is_said_by, sentence_of, text_after_subject
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.bars import Glyph, bar, block, legend, offsets_per_cell
from kcluster.runs.moment import partition_at
from kcluster.runs.record import AppendRow, NoteRow, RunRecord

LABEL_CHARS: Final = 9
"""The least width of the labels beside the logs."""


def explain(record: RunRecord, partition: str = "", glyph: Glyph = block) -> Iterator[str]:
    """The lines of the story of a run, with rich markup; with `partition` (`orders-0`), only the
    lines about this partition. KeyError if the run has no such partition."""
    names = partitions_of(record)
    if partition and partition not in names:
        raise KeyError(partition)
    chosen = [partition] if partition else names
    info = record.info
    ground = f", {_escaped(info.ground)}" if info.ground else ""
    head = f"[bold]{_escaped(info.name)}[/]  {info.clock}{ground}, seed {info.seed}"
    yield f"{head}: [bold]{info.outcome}[/]"
    if info.story:
        yield from (f"  [italic]{_escaped(line)}[/]" for line in info.story.strip().splitlines())
    yield ""
    notes = {note.id: note for note in record.notes}
    for note in record.notes:
        if not _belongs(note.event, chosen, bool(partition)):
            continue
        yield _line(note, notes, info.began_ms)
        event = note.event
        if isinstance(event, LeaderChange | LogTruncated) and event.subject in chosen:
            yield from drawing(record, event.subject, note.at_ms, glyph)
    yield ""
    for name in chosen:
        yield f"at the end, {name}:"
        yield from drawing(record, name, info.ended_ms, glyph)
    yield from _legend(record, chosen, glyph)
    if record.processed or record.problems:
        yield ""
        yield from _processing(record, chosen)
    if "outcome" in record.verdict:
        yield ""
        for key in ("degraded_lines", "outage_lines"):
            yield from (_escaped(line) for line in record.verdict.get(key, ()))
        yield _escaped(f"{record.verdict['outcome']}: {record.verdict.get('reason', '')}")


def _processing(record: RunRecord, chosen: Sequence[str]) -> Iterator[str]:
    """The lines about the records that the application reported as processed, and the problems of
    its processing."""
    count = sum(f"{row.topic}-{row.partition}" in chosen for row in record.processed)
    yield f"the application processed {count:,} records:"
    problems = [row for row in record.problems if f"{row.topic}-{row.partition}" in chosen]
    yield from (f"  {_escaped(line)}" for line in shown([row.text for row in problems]))
    if not problems:
        yield "  none was missed, processed twice or out of order"


def partitions_of(record: RunRecord) -> list[str]:
    """The names of a run's partitions, sorted, without partitions of internal topics."""
    found = {(row.topic, row.partition): None for row in record.leaders}
    return [
        f"{topic}-{number}" for topic, number in sorted(found) if not has_internal_prefix(topic)
    ]


def _belongs(event: AnyEvent, chosen: Sequence[str], only_one: bool) -> bool:
    if isinstance(event, ECHOES) or event.is_internal:
        return False
    return not only_one or not isinstance(event, PartitionEvent) or event.subject in chosen


def _line(note: NoteRow, notes: dict[tuple[int, int], NoteRow], began_ms: int) -> str:
    event, at = note.event, f"{note.at_ms - began_ms:>+8} ms"
    text = _escaped(text_after_subject(event))
    line = f"{at}  [bold]{event.kind}[/]  {_escaped(event.subject)}: {text}"
    cause = notes.get(note.cause) if note.cause is not None else None
    if cause is None or is_said_by(event, cause.event):
        return line
    return f"{line}\n{'':>13}because {_escaped(sentence_of(cause.event))}"


# ------------------------------------------------------------------------------------ drawing


def drawing(record: RunRecord, partition: str, at_ms: int, glyph: Glyph = block) -> Iterator[str]:
    """The log of each replica of a partition at `at_ms`.  A cell stands for a few offsets and shows
    the epoch that wrote them; `|` is the high watermark; beyond the log end it is blank."""
    topic, number = partition.rsplit("-", 1)
    key = (topic, int(number))
    found = partition_at(record, key, at_ms)
    replicas = () if found is None else found.logs
    end = max((replica.log_end_offset for replica in replicas), default=0)
    if not end:
        return
    per_cell = offsets_per_cell(0, end)
    appends = [row for row in record.appends if (row.topic, row.partition) == key]
    width = max(LABEL_CHARS, *(len(replica.standing) for replica in replicas))
    for replica in sorted(replicas, key=lambda each: each.broker):
        ends, watermark = (0, replica.log_end_offset, end), replica.high_watermark
        cells = bar(
            ends, watermark, per_cell, lambda offset: _epoch_of(offset, appends, at_ms), glyph
        )
        yield (
            f"{'':>13}broker {replica.broker} {replica.standing:<{width}} {''.join(cells)}"
            f"  end {replica.log_end_offset}, hw {watermark}"
        )


def _epoch_of(offset: int, appends: Sequence[AppendRow], at_ms: int) -> int:
    """The epoch of the latest append of `offset` until `at_ms`."""
    for row in reversed(appends):
        if row.at_ms <= at_ms and row.base_offset <= offset <= row.last_offset:
            return row.epoch
    return 0


def _legend(record: RunRecord, chosen: Sequence[str], glyph: Glyph) -> Iterator[str]:
    epochs = sorted(
        {row.epoch for row in record.appends if f"{row.topic}-{row.partition}" in chosen}
    )
    if epochs:
        yield f"{'':>13}{legend(epochs, glyph)}"


def _escaped(text: str) -> str:
    """`text` on one line, with its brackets escaped, so that it contains no markup."""
    return one_line(text).replace("[", "\\[")


def plain(line: str) -> str:
    """A line without its markup."""
    unmarked = re.sub(r"(?<!\\)\[/?[a-z_ ]*\]", "", line)
    return unmarked.replace("\\[", "[")
