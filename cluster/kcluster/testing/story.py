"""The report of a failed test: its timeline with the test's own lines, commits, refused requests.

Owns: the content of the report, its order, and its words for commits, lookups and refusals.  Never:
judges; prints.  Kafka: no counterpart.

Columns of a timeline as in events/render.py.  Commits of one member without other events between
them are one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.checks.processing_words import shown
from kcluster.events.render import api_name, event_line, offset_text, one_line
from kcluster.events.words import member_name
from kcluster.evidence.group_history import (
    EARLIEST,
    Commit,
    OffsetLookup,
    commits_of,
    lookups_of,
    refusals,
)
from kcluster.evidence.recorder import Recorder
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.record import RunRecord
from kcluster.scenario.report import noted_lines
from kcluster.testing.callers import CallingLine

IN_THE_VERDICT: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
"""APIs whose errors the verdict counts."""
UNSEEN: Final = (
    "not seen: what clients outside of the cluster did without a broker: connections refused by"
    " brokers that were down, their own time-outs and exceptions"
)
_COMMITTERS = tuple[str, str, int, str]
"""(group, member, generation, error)."""


def story_lines(
    recorder: Recorder,
    callers: Iterable[CallingLine],
    began_ms: int,
    more: Iterable[tuple[int, str]] = (),
) -> Iterator[str]:
    """The timeline: events, the lines of the test that acted on the cluster, commits, lookups.
    `more`: further lines, each with its time."""
    notes = recorder.notes
    places = {note.note_id: place for place, note in enumerate(notes)}
    entries: list[tuple[int, float, str | Commit]] = [
        (note.at_ms, places[note.note_id], line) for note, line in noted_lines(notes, began_ms)
    ]
    for caller in callers:
        if caller.at_ms < began_ms:
            continue  # the event belongs to an earlier test
        at_ms = min([caller.at_ms, *(note.at_ms for note in notes[caller.notes_before :][:1])])
        source = f"{caller.source}  raised {caller.error}" if caller.error else caller.source
        line = event_line(at_ms, began_ms, "test", caller.place, source)
        entries.append((at_ms, caller.notes_before - 0.5, line))
    behind = len(notes)
    entries += [(at_ms, behind, line) for at_ms, line in more]
    entries += [(x.at_ms, behind, _lookup_line(x, began_ms)) for x in _different_lookups(recorder)]
    entries += [
        (x.at_ms, -1, x)  # a member that commits and leaves within one ms commits first
        for x in commits_of(recorder)
        if not has_internal_prefix(x.partition[0])
    ]
    entries = [entry for entry in entries if entry[0] >= began_ms]
    entries.sort(key=lambda entry: entry[:2])
    pending: dict[_COMMITTERS, list[Commit]] = {}
    for _, _, entry in entries:
        if isinstance(entry, Commit):
            committer = (entry.group, entry.member, entry.generation, entry.error)
            pending.setdefault(committer, []).append(entry)
            continue
        yield from _commit_lines(pending, began_ms)
        yield entry
    yield from _commit_lines(pending, began_ms)


def _commit_lines(pending: dict[_COMMITTERS, list[Commit]], began_ms: int) -> Iterator[str]:
    in_order = sorted(pending.items(), key=lambda entry: entry[1][-1].at_ms)
    for (group, member, generation, error), commits in in_order:
        latest = {x.partition: x.offset for x in commits}
        offsets = ", ".join(f"{topic}-{number}: {at}" for (topic, number), at in latest.items())
        first, last = commits[0], commits[-1]
        who = f"generation {generation}, {member_name(member)}" if generation >= 0 else first.client
        text = f"{who}: {offsets}" + (f"; refused with {error}" if error else "")
        if first.at_ms < last.at_ms:
            text += f" ({len(commits)} offsets since {first.at_ms - began_ms:+} ms)"
        kind = "commit_refused" if error else "committed"
        yield event_line(last.at_ms, began_ms, kind, f"group {group}", text)
    pending.clear()


def _different_lookups(recorder: Recorder) -> Iterator[OffsetLookup]:
    """Lookups whose answer differs from the client's last answer."""
    before: dict[tuple[object, ...], int] = {}
    for lookup in lookups_of(recorder):
        key = (lookup.client, lookup.partition, lookup.asked)
        if before.get(key) != lookup.offset:
            before[key] = lookup.offset
            yield lookup


def _lookup_line(lookup: OffsetLookup, began_ms: int) -> str:
    topic, number = lookup.partition
    which = "start" if lookup.asked == EARLIEST else "end"
    text = (
        f"client {lookup.client} asked for the {which} of the log and got {lookup.offset}"
        " (auto.offset.reset, or a call of its own)"
    )
    return event_line(lookup.at_ms, began_ms, "offset_lookup", f"{topic}-{number}", text)


def problem_lines(record: RunRecord) -> Iterator[str]:
    """The records that the application missed, or processed twice or out of order; none if the test
    keeps no ledger."""
    yield from shown([row.text for row in record.problems])


def client_lines(
    recorder: Recorder, connections: Iterable[tuple[int, str]], began_ms: int
) -> Iterator[str]:
    """The errors that clients met, according to the brokers, and a note on errors that brokers
    cannot see."""
    for refused in refusals(recorder):
        if refused.api in IN_THE_VERDICT or refused.last_ms < began_ms:
            continue
        times = f"{refused.count:,} time{'s' if refused.count > 1 else ''}"
        first, last = refused.first_ms - began_ms, refused.last_ms - began_ms
        when = f"at {first:+} ms" if refused.count == 1 else f"{first:+} to {last:+} ms"
        client = refused.client or "a client without an id"
        yield f"{client} got {refused.error} for its {api_name(refused.api)} {times} ({when})"
    for at_ms, line in connections:
        if at_ms < began_ms:
            continue
        yield f"{offset_text(at_ms, began_ms)}  {one_line(line)}"
    yield UNSEEN
