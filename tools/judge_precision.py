"""How often the judge of histories is right, measured on simulated runs whose truth is known.

Owns: the comparison of judgements from outside with the truth, the runs that were played, the sums,
the page.  Never: draws a run (judge_runs.py does), judges.  Kafka: no counterpart.

The judge gets what the clients of a run saw, with the positions of consumers when they were closed,
and no log; the truth is the verdict from inside.  One more consumer reads every partition with
read_committed from the beginning.  Both name the records of each anomaly; a record that both name
is found, one that only the truth names is missed, one that only the judge names is a false alarm.

The sums of each thousand runs are a line of `judge_results.jsonl`; the same command goes on where
it ended, on another machine, too.  The runs themselves are kept in a directory, so that a repaired
judge judges them again within minutes (`--again`).

    python -m tools.judge_precision --runs 100000 --jobs 2 --page docs/reference/judge.md
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import sys
import time
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from kcluster.checks.anomalies import Anomaly, find_anomalies
from kcluster.checks.anomalies.facts import AckedOnly
from kcluster.clients.consumer import fetcher
from kcluster.clients.ledger import Ledger, Partition
from kcluster.evidence.history import FinalLog
from kcluster.judge.history import history_of_ledger
from kcluster.judge.parts import PROVABLE, TORN, judged_parts, merged
from kcluster.scenario.outcome import REST
from kcluster.scenario.play.phases import RunCrash, RunResult
from kcluster.scenario.play.running import try_scenario
from tools.judge_runs import MeasuredRun, RunKind, prepared, run_of

RUNS: Final = Path("build/judge-runs")
RESULTS: Final = Path(__file__).with_name("judge_results.jsonl")
POLL_SKIP: Final = "poll-skip"
OF_READERS: Final = (POLL_SKIP, "nonmonotonic-poll")
"""Anomalies that concern a consumer, not only a record."""
LOST: Final = "lost-write"
NOT_RECEIVED: Final = (LOST, "unseen", POLL_SKIP)
"""Names of a record that a consumer should have received: which of them is right depends on whether
the log has it, and only the inside knows that."""
OF_ACKS: Final = ("inconsistent-offsets", "nonmonotonic-send")
BLOCK: Final = 1_000
"""The runs in one line of the results."""
PART: Final = 50
"""The runs in one file."""
COLLECT_EVERY: Final = 10

Named = tuple[str, tuple[str, int], bytes | None, str]
"""A record of an anomaly: (anomaly, partition, value, consumer or "")."""
Findings = dict[Named, bytes | None]
"""The records of anomalies, each with the missing record of its torn transaction, or the record of
the other ack, else None."""


class PlayedRun(NamedTuple):
    """A run that was played: what its clients saw, and the logs at its end.  `crash`: the exception
    with which its bug ended it, "" for none."""

    number: int
    run: MeasuredRun
    crash: str
    outcome: str = ""
    is_drained: bool = False
    compacted: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    logs: dict[Partition, FinalLog] = {}


class Measured(NamedTuple):
    """One run.  By anomaly, the records that both name, that only the truth and that only the judge
    names; `renamed`: records that both name, by different names; `undecided`: records that the
    truth names and the judge calls undecided."""

    number: int
    run: MeasuredRun
    outcomes: tuple[str, str] = ("", "")
    """From inside, and from outside."""
    sent: int = 0
    read: int = 0
    found: Counter[str] = Counter()
    renamed: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    without_trace: int = 0
    """The missed records of which no client could know."""
    undecided: Counter[str] = Counter()
    false_alarms: Counter[str] = Counter()
    examples: tuple[str, ...] = ()


def play(number: int) -> PlayedRun:
    """Play the run with this number."""
    run = run_of(number)
    with prepared(run) as scenario:
        result = try_scenario(scenario, "virtual", run.seed)
    if isinstance(result, RunCrash):
        return PlayedRun(number, run, result.error)
    judged = result.recorder.judged
    assert judged is not None
    topics = result.scenario.topology.topics.values()
    return PlayedRun(
        number=number,
        run=run,
        crash="",
        outcome=result.verdict.outcome,
        is_drained=is_drained(result),
        compacted=tuple(
            topic.name for topic in topics if "compact" in str(topic.config.get("cleanup.policy"))
        ),
        ledger=judged.ledger,
        logs=dict(judged.logs),
    )


def is_drained(result: RunResult) -> bool:
    """Whether consumers had the time to read to the end."""
    is_at_rest = all(each.check != REST for each in result.failed)
    return result.scenario.heal and is_at_rest and not result.verdict.refused


def play_part(folder: Path, first: int) -> None:
    """Play the runs of one file."""
    gc.disable()  # runs are short: one collection after several of them is cheaper
    runs: list[PlayedRun] = []
    for number in range(first, first + PART):
        runs.append(play(number))
        if number % COLLECT_EVERY == 0:
            gc.collect()
    path = part_path(folder, first)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(zlib.compress(pickle.dumps(runs), 1))
    unfinished.replace(path)


def part_path(folder: Path, first: int) -> Path:
    """The file of the runs from this number on."""
    return folder / f"{first:07}.runs"


def judge_part(folder: Path, first: int) -> list[Measured]:
    """Judge the runs of one file."""
    runs: list[PlayedRun] = pickle.loads(zlib.decompress(part_path(folder, first).read_bytes()))
    return [compared(run) for run in runs]


def compared(played: PlayedRun) -> Measured:
    """The records that the truth and the judge name."""
    run = played.run
    if played.crash:
        return Measured(played.number, run, examples=(f"crashed {played.crash}",))
    drained = played.is_drained
    history = history_of_ledger(played.ledger, run.name, drained)
    history.compacted = {*played.compacted}
    history.is_read_from_start = True
    parts = judged_parts(history)
    judgment = merged(parts)
    truth = named(find_anomalies(played.ledger, played.logs, drained))
    claimed = named(proven.anomaly for proven in judgment.proven)
    both = truth.keys() & claimed.keys()
    renamed = same_records(truth, claimed) - both
    missed = truth.keys() - both - renamed
    known = same_records(claimed, truth) | explained(played, claimed, truth)
    false_alarms = claimed.keys() - both - known
    doubtful = {(send.partition, send.value) for part in parts for send in part.doubtful}
    of_values = {value for _, value in doubtful}
    undecided = {
        each
        for each in missed
        if each[1:3] in doubtful
        or truth[each] in of_values
        or (each[0] in NOT_RECEIVED and each[1][0] in history.compacted)
    }
    return Measured(
        number=played.number,
        run=run,
        outcomes=(played.outcome, judgment.outcome),
        sent=judgment.sent,
        read=judgment.read,
        found=Counter(each[0] for each in both),
        renamed=Counter(each[0] for each in renamed),
        missed=Counter(each[0] for each in missed - undecided),
        without_trace=sum(is_without_trace(played.ledger, each) for each in missed - undecided),
        undecided=Counter(each[0] for each in undecided),
        false_alarms=Counter(each[0] for each in false_alarms),
        examples=tuple(
            f"{what} {each[0]} {each[1]} {each[2]!r:.40} {each[3]}"
            for what, those in (("false", false_alarms), ("missed", missed - undecided))
            for each in sorted(those, key=repr)[:3]
        ),
    )


def is_without_trace(ledger: Ledger, record: Named) -> bool:
    """Whether no client could know of a missed record: it was read before it was lost, nothing that
    was sent or read afterwards had its offset or a lower one, and no consumer's position was there
    or below; or it was skipped, and its producer was promised nothing, and nobody received it."""
    name, partition, value, _ = record
    reads = [read for read in ledger.reads if read.partition == partition]
    own = [read for read in reads if read.value == value]
    if name == POLL_SKIP and not own:
        return not any(send.is_promised and send.value == value for send in ledger.sends)
    if name != LOST or not own:
        return False
    offset, last_ms = own[0].offset, max(read.at_ms for read in own)
    is_acked_later = any(
        send.partition == partition and send.sent_ms > last_ms and 0 <= send.offset <= offset
        for send in ledger.sends
    )
    is_below_later = any(
        at.partition == partition and at.offset <= offset and at.at_ms > last_ms
        for at in ledger.positions
    )
    return not (is_acked_later or is_below_later) and all(
        read.at_ms <= last_ms or read.offset > offset for read in reads
    )


def same_records(some: Findings, others: Findings) -> set[Named]:
    """The records of `some` that consumers should have received, and that `others` name, too, by
    any name, or as what a torn transaction lacks."""
    known = {each[1:3] for each in others if each[0] in NOT_RECEIVED}
    values = {value for _, value in known}
    lacking = {missing for each, missing in others.items() if each[0] == TORN}
    return {
        each
        for each, missing in some.items()
        if (each[0] in NOT_RECEIVED and (each[1:3] in known or each[2] in lacking))
        or missing in values
    }


def explained(played: PlayedRun, claimed: Findings, truth: Findings) -> set[Named]:
    """The records whose anomaly is right, although the truth names none for them: promised ones
    that consumers have passed, by their positions, and nobody has received; transactions of which
    read_committed consumers have passed one in this way, and none of them has received it; those of
    a torn transaction; those of a committed transaction that has lost its marker; acks that
    contradict each other, since a record was lost."""
    ledger = played.ledger
    torn = {each[1:3] for each in truth if each[0] == TORN}
    transactions = [
        send.transaction
        for send in ledger.sends
        if send.transaction is not None and (send.partition, send.value) in torn
    ]
    of_torn = {
        (send.partition, send.value)
        for send in ledger.sends
        if any(send.transaction is transaction for transaction in transactions)
    }
    lost = {each[2] for each in truth if each[0] in NOT_RECEIVED}
    withheld = without_marker(played)
    withheld |= passed_by(ledger, {at.consumer for at in ledger.positions})
    from_committed = {value for _, value in passed_by(ledger, ledger.read_committed)}
    return {
        each
        for each, other in claimed.items()
        if (each[0] in NOT_RECEIVED and each[1:3] in of_torn | withheld)
        or (each[0] == TORN and other in from_committed)
        or (each[0] in OF_ACKS and (each[2] in lost or other in lost))
    }


def without_marker(played: PlayedRun) -> set[tuple[Partition, bytes | None]]:
    """The promised records that the logs hide from read_committed consumers, behind the beginning
    of a transaction that will stay open."""
    promised = {(send.partition, send.value) for send in played.ledger.sends if send.is_promised}
    hidden = {
        (partition, value)
        for partition, log in played.logs.items()
        for offset, value in log.records
        if offset in log.hidden
        and any(offset >= one.first_offset and not one.is_owned for one in log.open_transactions)
    }
    return hidden & promised


def passed_by(ledger: Ledger, consumers: Collection[str]) -> set[tuple[Partition, bytes]]:
    """The promised records that these consumers have passed, by their positions, and that none of
    them has received."""
    received = {(read.partition, read.value) for read in ledger.reads if read.consumer in consumers}
    ends: dict[Partition, int] = {}
    for at in ledger.positions:
        if at.consumer in consumers:
            ends[at.partition] = max(at.offset, ends.get(at.partition, -1))
    passed = {
        (send.partition, send.value)
        for send in ledger.sends
        if send.is_promised and 0 <= send.offset < ends.get(send.partition, -1)
    }
    return passed - received


def named(anomalies: Iterable[Anomaly]) -> Findings:
    """The records of the anomalies that a judge can prove."""
    found: Findings = {}
    for anomaly in anomalies:
        if anomaly.name in PROVABLE:
            for finding in anomaly.findings:
                client = finding.client if anomaly.name in OF_READERS else ""
                is_of_two = anomaly.name == TORN or isinstance(finding.fact, AckedOnly)
                missing = finding.other_value if is_of_two else None
                found[anomaly.name, anomaly.partition, finding.value, client] = missing
    return found


# -------------------------------------------------------------------------------------- the sums


class KindSums(Struct):
    """The runs of one kind: their number, and how many of them had what."""

    runs: int = 0
    with_anomalies: int = 0
    with_false_alarms: int = 0
    with_misses: int = 0
    ended_by_bug: int = 0


class Sums(Struct):
    """What the runs of a block showed, or those of several.  `first`: the number of its first run;
    `date`: of the judge; `records`: by the names of Measured, then by anomaly; `outcomes`: `from
    inside/from outside` -> runs."""

    first: int = 0
    date: str = ""
    runs: int = 0
    sent: int = 0
    read: int = 0
    without_trace: int = 0
    kinds: dict[RunKind, KindSums] = msgspec.field(default_factory=dict)
    records: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)


COLUMNS: Final = ("found", "renamed", "undecided", "missed", "false_alarms")


def sums_of(first: int, date: str, measured: Iterable[Measured]) -> Sums:
    """The sums of a block."""
    sums = Sums(first, date)
    for each in measured:
        sums.runs += 1
        sums.sent += each.sent
        sums.read += each.read
        sums.without_trace += each.without_trace
        kind = sums.kinds.setdefault(each.run.kind, KindSums())
        kind.runs += 1
        kind.with_anomalies += bool(each.found or each.undecided or each.missed)
        kind.with_false_alarms += bool(each.false_alarms)
        kind.with_misses += bool(each.missed)
        kind.ended_by_bug += not each.outcomes[0]
        for column in COLUMNS:
            _add(sums.records.setdefault(column, {}), getattr(each, column))
        if each.outcomes[0]:
            _add(sums.outcomes, {"/".join(each.outcomes): 1})
    return sums


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def total(blocks: Iterable[Sums]) -> Sums:
    """The sums of several blocks."""
    whole = Sums()
    for block in blocks:
        whole.runs += block.runs
        whole.sent += block.sent
        whole.read += block.read
        whole.without_trace += block.without_trace
        for name, kind in block.kinds.items():
            known = whole.kinds.setdefault(name, KindSums())
            for field in KindSums.__struct_fields__:
                setattr(known, field, getattr(known, field) + getattr(kind, field))
        for column, counts in block.records.items():
            _add(whole.records.setdefault(column, {}), counts)
        _add(whole.outcomes, block.outcomes)
    return whole


# ------------------------------------------------------------------------------------- the page


def page(blocks: Sequence[Sums]) -> Iterator[str]:
    """The page with the figures."""
    sums = total(blocks)
    dates = sorted({block.date for block in blocks})
    days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    yield HEAD.format(days=days, runs=sums.runs, sent=sums.sent, read=sums.read)
    for name in PROVABLE:
        numbers = [sums.records[column].get(name, 0) for column in COLUMNS]
        found, renamed, undecided, missed, false_alarms = numbers
        right = found + renamed
        precision = share(right, right + false_alarms)
        recall = share(right, right + missed + undecided)
        cells = " | ".join(f"{count:,}" for count in numbers)
        yield f"| {name} | {cells} | {precision} | {recall} |"
    yield ""
    yield WITHOUT_TRACE.format(count=sums.without_trace)
    yield "| runs | number | with anomalies | with false alarms | with misses | ended by a bug |"
    yield "|---|---|---|---|---|---|"
    for kind in RunKind:
        cells = " | ".join(f"{n:,}" for n in astuple(sums.kinds.get(kind, KindSums())))
        yield f"| {kind} | {cells} |"
    yield ""
    yield from SETTINGS
    yield ""
    yield "| verdict from inside | judgement from outside | runs |"
    yield "|---|---|---|"
    for pair, count in sorted(sums.outcomes.items()):
        yield f"| {pair.replace('/', ' | ')} | {count:,} |"
    yield ""
    yield "The verdict from inside also judges what no client can see, such as a leader that should"
    yield "not have been elected."


HEAD: Final = """\
# The judge of histories, measured

`python -m tools.judge_precision`, {days}: {runs:,} runs in virtual time with {sent:,} sends and
{read:,} records read, judged from outside, with the truth hidden ([how a history is
judged](histories.md)). Records are counted. *Found*: the truth and the judge name it. *Renamed*:
both do, one as lost-write and the other as unseen or poll-skip, or as what a torn transaction
lacks: to clients, a record that nobody received is the same whether the log has it or not.
*Undecided*: the truth names it; the judge says that the history does not show it, or the topic is
compacted, so that a record that a consumer did not get may have been removed. *Missed*: the truth
alone names it. *False alarms*: the judge alone names it. Precision is the share of found and
renamed records among those that the judge names, recall among those that the truth names. The
history has the positions of consumers when they were closed, and one consumer that read all from
the beginning. The truth knows no positions: promised records that consumers passed by them, and
that nobody received, are no false alarms; neither are torn transactions of which read_committed
consumers passed a record by them that none of them received, nor unseen records of a committed
transaction whose marker was lost: the truth calls it a hanging transaction.

| anomaly | found | renamed | undecided | missed | false alarms | precision | recall |
|---|---|---|---|---|---|---|---|"""
WITHOUT_TRACE: Final = """\
No client could know of {count:,} of the missed records: lost ones that had been read before, and
nothing sent or read afterwards, and no consumer's last position, was at their offset or a lower
one; and skipped ones that nobody received, whose producers were promised nothing.
"""
SETTINGS: Final = (
    "*Safe settings*: acks=all, min.insync.replicas 2 of 3, idempotent or transactional producers,",
    "and failures that overlap. *Unsafe settings*: acks=0 or 1, no idempotence, unclean elections,",
    "lost disks and power. *Shipped scenarios*: all files of `scenarios/`. *Broken cores*: a rule",
    "of Kafka's is broken on purpose. *Broken consumers*: members of a group lose, repeat or",
    "reorder records between the fetch and the application.",
)


def share(part: int, whole: int) -> str:
    """A share in percent, rounded down: 100.00 % means all; - of nothing."""
    return f"{10_000 * part // whole / 100:.2f} %" if whole else "-"


# ------------------------------------------------------------------------------------ the command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=BLOCK, help="in all, rounded up to thousands")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no block after them")
    parser.add_argument("--directory", type=Path, default=RUNS, help="where runs are kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, help="the page to write")
    parser.add_argument("--again", action="store_true", help="judge again what is kept")
    options = parser.parse_args()
    if not str(fetcher.__file__).endswith(".py"):
        parser.error(
            "play it on the pure source: compiled code keeps its methods, without the bugs"
        )
    folder: Path = options.directory
    folder.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    blocks = read_results(options.results)
    with ProcessPoolExecutor(options.jobs) as pool:
        for first in range(0, options.runs, BLOCK):
            is_kept = all(part_path(folder, at).exists() for at in parts_of(first))
            if first in blocks and not (options.again and is_kept):
                continue
            if time.monotonic() - began_s > 60 * options.minutes:
                break
            blocks[first] = measured_block(pool, folder, first)
            write_results(options.results, blocks)
            print(f"{first + BLOCK:,} runs, {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    text = "\n".join(page([*blocks.values()])) + "\n"
    if options.page is not None:
        options.page.write_text(text)
    print(text)


def parts_of(first: int) -> range:
    """The numbers of the first runs in the files of a block."""
    return range(first, first + BLOCK, PART)


def measured_block(pool: ProcessPoolExecutor, folder: Path, first: int) -> Sums:
    """Play the runs of a block that are not kept, and judge all of them."""
    left = [at for at in parts_of(first) if not part_path(folder, at).exists()]
    for _ in pool.map(partial(play_part, folder), left):
        pass
    judged = pool.map(partial(judge_part, folder), parts_of(first))
    measured = [one for part in judged for one in part]
    for one in measured:
        where = f"{one.number} {one.run.kind} {one.run.name} seed {one.run.seed}"
        for example in one.examples:
            print(f"{where}: {example}", file=sys.stderr)
    return sums_of(first, datetime.now(UTC).date().isoformat(), measured)


def read_results(path: Path) -> dict[int, Sums]:
    """The blocks that were measured, by the number of their first run."""
    if not path.exists():
        return {}
    lines = path.read_text().splitlines()
    return {one.first: one for one in (msgspec.json.decode(line, type=Sums) for line in lines)}


def write_results(path: Path, blocks: Mapping[int, Sums]) -> None:
    """Write the blocks, in the order of their runs."""
    lines = [msgspec.json.encode(blocks[first]).decode() for first in sorted(blocks)]
    path.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
