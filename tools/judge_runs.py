"""The runs on which the judge of histories is measured, drawn from their numbers.

Owns: the five kinds of runs, the drawn scenarios, the consumers with a bug.  Never: judges.  Kafka:
no counterpart.

Most runs last 2 s to 4 s of virtual time, so that many fit into an hour.  The broken cores are
those of the tests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple

import pytest
from msgspec.structs import replace

from kcluster.clients.consumer.fetcher import Fetcher
from kcluster.clients.consumer.positions import Position
from kcluster.protocol.records.records import Record
from kcluster.scenario.language.model import ConsumerSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_files, library_path
from kcluster.scenario.play import virtual
from tests.checks import test_broken_coordinators as coordinators
from tests.property import test_mutations as cores

READER: Final = "judge"
BROKEN_CALM_MS: Final = 10_000
"""The longest time in which a broken core must come to rest: most never do."""
DRAWN: Final = 500
"""The number of different scenarios of each kind; seeds draw the faults of each."""
Patch = Callable[[pytest.MonkeyPatch], None]
Collected = list[tuple[Position, list[Record]]]


class RunKind(StrEnum):
    """The kind of a run."""

    SAFE = "safe settings"
    UNSAFE = "unsafe settings"
    SHIPPED = "shipped scenarios"
    BROKEN_CORE = "broken cores"
    BROKEN_CONSUMER = "broken consumers"


SHARES: Final = (
    (RunKind.SHIPPED, 3),
    (RunKind.BROKEN_CORE, 47),
    (RunKind.BROKEN_CONSUMER, 20),
    (RunKind.UNSAFE, 50),
    (RunKind.SAFE, 80),
)
"""The runs of each kind among 200."""


class MeasuredRun(NamedTuple):
    """One run: its kind, the shipped scenario or the bug ("" for none), and its seed."""

    kind: RunKind
    name: str
    seed: int


def run_of(number: int) -> MeasuredRun:
    """The run with this number, from 0."""
    block, place = divmod(number, sum(share for _, share in SHARES))
    for kind, share in SHARES:
        if place < share:
            names = NAMES[kind]
            seed, name = divmod(block * share + place, len(names))
            return MeasuredRun(kind, names[name], seed + 1)
        place -= share
    raise AssertionError(number)


@contextmanager
def prepared(run: MeasuredRun) -> Iterator[Scenario]:
    """The scenario of a run, while its bug is in place."""
    if run.kind is RunKind.SHIPPED:
        yield _shipped(run.name)
        return
    scenario = _drawn(run.kind, run.seed % DRAWN, run.name in _IN_TRANSACTIONS)
    with pytest.MonkeyPatch.context() as patch:
        if run.name:
            BUGS[run.name](patch)
            patch.setattr(virtual, "CALM_LIMIT_MS", BROKEN_CALM_MS)
        yield scenario


@lru_cache(100)
def _shipped(name: str) -> Scenario:
    path = library_path(LibraryKind.SCENARIO, name)
    assert path is not None
    return with_reader(Scenario.load(path))


@lru_cache(4 * DRAWN)
def _drawn(kind: RunKind, number: int, has_transactions: bool) -> Scenario:
    rng = Random(f"{kind} {number}")
    is_safe = kind in (RunKind.SAFE, RunKind.BROKEN_CONSUMER)
    if kind is RunKind.BROKEN_CORE:
        is_safe = rng.random() < 0.5
    return with_reader(Scenario.parse(_drawn_text(rng, is_safe, has_transactions)))


def with_reader(scenario: Scenario) -> Scenario:
    """The scenario with the reader of all partitions of its topics."""
    partitions = tuple(
        (topic.name, number)
        for topic in scenario.topology.topics.values()
        for number in range(topic.partitions)
    )
    reader = ConsumerSpec(
        name=READER, partitions=partitions, isolation="read_committed", commit="never"
    )
    workload = scenario.workload
    consumers = (*workload.consumers, reader)
    return replace(scenario, workload=replace(workload, consumers=consumers))


# ------------------------------------------------------------------------------ drawn scenarios

_SCENARIO: Final = """
topology:
  brokers: 3
  topics:
    orders: {{partitions: {partitions}, replication_factor: 3, config: {{{topic_config}}}}}
  config:
    broker.session.timeout.ms: 700
    broker.heartbeat.interval.ms: 200
    replica.lag.time.max.ms: 800
    replica.high.watermark.checkpoint.interval.ms: 300
    group.min.session.timeout.ms: 1000
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 3
    transaction.state.log.num.partitions: 1
    transaction.state.log.replication.factor: 3
    group.initial.rebalance.delay.ms: 0
workload:
  producers:
{producers}
  consumers:
{consumers}
duration: {duration_ms}ms
steps:
{steps}
"""
_SAFE_FAULTS: Final = (
    "kill: any broker",
    "stop: any broker",
    "pause: any broker",
    "restart: {brokers: any broker, how: kill, down: 50ms}",
    "isolate: any broker",
    "isolate: {nodes: any broker, others: controller}",
    "isolate: {nodes: any broker, others: any broker}",
    "isolate: {nodes: any broker, others: any broker, one_way: true}",
    "isolate: {nodes: any broker, others: clients}",
    "slow: {nodes: any broker, latency: 20ms, jitter: 50ms, distribution: exponential}",
    "lose: {nodes: any broker, share: 20%}",
    "move: {partition: orders-0, to: any broker}",
    "rule: {api: [Produce, EndTxn], drop: reply, close: true, probability: 30%}",
    "rule: {api: Fetch, drop: reply, close: true, probability: 30%}",
    "rule: {api: Produce, delay: 300ms, jitter: 300ms, of: request, probability: 30%}",
)
_UNSAFE_FAULTS: Final = (
    "kill: {brokers: any broker, how: power}",
    "kill: {brokers: any broker, how: wipe}",
    "kill: {brokers: any broker, how: power}",
)


def _drawn_text(rng: Random, is_safe: bool, has_transactions: bool) -> str:
    topic = ["min.insync.replicas: 2"] if is_safe else _unsafe_topic(rng)
    if not has_transactions and rng.random() < 0.05:
        topic += ["cleanup.policy: compact", "segment.ms: 500", "min.cleanable.dirty.ratio: 0.01"]
    names = ("shop", "desk", "till")[: rng.choice((1, 2, 2, 3))]
    share = 1.0 if has_transactions else 0.3
    return _SCENARIO.format(
        partitions=2 if has_transactions else rng.choice((1, 2, 2, 3)),
        topic_config=", ".join(topic),
        producers="\n".join(_producer(rng, name, is_safe, share) for name in names),
        consumers="\n".join(_consumers(rng)),
        duration_ms=rng.choice((1_500, 2_000, 3_000)),
        steps="\n".join(_faults(rng, is_safe)) or "  []",
    )


def _unsafe_topic(rng: Random) -> list[str]:
    config = [f"min.insync.replicas: {rng.choice((1, 1, 2))}"]
    if rng.random() < 0.5:
        config.append("unclean.leader.election.enable: true")
    if rng.random() < 0.3:
        config.append("flush.messages: 5")
    return config


def _producer(rng: Random, name: str, is_safe: bool, transactional: float) -> str:
    keys = [f"topic: orders, name: {name}, rate: {rng.choice((5, 10, 20))}/s"]
    config = ["request.timeout.ms: 1000", "delivery.timeout.ms: 20000"]
    if rng.random() < transactional:
        every, abort = rng.choice((2, 5)), rng.choice((0, 30))
        # A late EndTxn of version 1 may end the next transaction.
        version = 2 if is_safe else rng.choice((1, 2))
        transactions = f"every: {every}, abort: {abort}%, timeout: 3s, version: {version}"
        keys.append(f"transactions: {{{transactions}}}")
    elif is_safe:
        keys.append("in_flight: 1")  # more may be duplicated: safe_settings_overlapping.yaml
    else:
        keys.append(f"acks: {rng.choice(('0', '1', '1', 'all'))}, idempotent: false")
        keys.append(f"in_flight: {rng.choice((1, 5))}, retries: {rng.choice((0, 10, 1000))}")
        config[1] = f"delivery.timeout.ms: {rng.choice((1_500, 20_000))}"
    if rng.random() < 0.3:
        keys.append(f"linger: {rng.choice((20, 100))}ms")
    if rng.random() < 0.3:
        keys.append("keys: 5")
    keys.append(f"config: {{{', '.join(config)}}}")
    return f"    - {{{', '.join(keys)}}}"


def _consumers(rng: Random) -> Iterator[str]:
    timeouts = "config: {session.timeout.ms: 2000, heartbeat.interval.ms: 600}"
    isolation = rng.choice(("read_committed", "read_uncommitted"))
    members = rng.choice((1, 2))
    group = f"group: readers, members: {members}, isolation: {isolation}"
    yield f"    - {{topics: orders, name: reader, {group}, {timeouts}}}"
    if rng.random() < 0.4:
        start_ms = rng.choice((0, 500, 1_500))
        yield f"    - {{partitions: [orders-0], name: other, start: {start_ms}ms}}"


def _faults(rng: Random, is_safe: bool) -> Iterator[str]:
    if is_safe and rng.random() < 0.1:
        return
    kinds = rng.sample(_SAFE_FAULTS, rng.randint(2, 8))
    if not is_safe:
        kinds += _UNSAFE_FAULTS
    yield "  - at: 200ms"
    yield "    faults:"
    yield "      profile:"
    yield f"        every: 50ms..{rng.choice((300, 800))}ms"
    yield f"        repair: 100ms..{rng.choice((1, 3))}s"
    yield f"        at_once: {rng.choice((1, 2, 3))}"
    yield f"        waits_for_sync: {'false' if rng.random() < 0.8 else 'true'}"
    yield "        kinds:"
    for kind in kinds:
        yield f"          - {{weight: 1, {kind}}}"


# ------------------------------------------------------------------------- consumers with a bug


def _broken(patch: pytest.MonkeyPatch, change: Callable[[Random, Collected], None]) -> None:
    """Change what the members of groups return to their applications; other consumers are sound."""
    sound = Fetcher.collect
    rng = Random(1)

    def collect(self: Fetcher, limit: int) -> Collected:
        collected = sound(self, limit)
        if self._settings.group_id and rng.random() < 0.15:
            change(rng, collected)
        return collected

    patch.setattr(Fetcher, "collect", collect)


def records_are_dropped(patch: pytest.MonkeyPatch) -> None:
    """A consumer loses a record between its fetch and the application."""

    def drop(rng: Random, collected: Collected) -> None:
        for _, records in collected:
            del records[rng.randrange(len(records))]

    _broken(patch, drop)


def records_are_returned_again(patch: pytest.MonkeyPatch) -> None:
    """A consumer returns the last records of an earlier poll again."""
    last: dict[Position, deque[Record]] = {}

    def repeat(rng: Random, collected: Collected) -> None:
        for position, records in collected:
            known = last.setdefault(position, deque(maxlen=3))
            again = [*known][-rng.randint(1, 3) :]
            known.extend(records)
            records[:0] = again

    _broken(patch, repeat)


def records_are_reordered(patch: pytest.MonkeyPatch) -> None:
    """A consumer returns the records of a poll in a wrong order."""

    def shuffle(rng: Random, collected: Collected) -> None:
        for _, records in collected:
            rng.shuffle(records)

    _broken(patch, shuffle)


BROKEN_CONSUMERS: Final[Sequence[Patch]] = (
    records_are_dropped,
    records_are_returned_again,
    records_are_reordered,
)
BROKEN_CORES: Final[Sequence[Patch]] = (
    cores.watermark_is_the_log_end,
    cores.followers_do_not_truncate,
    cores.acks_do_not_wait,
    cores.sequences_are_not_checked,
    cores.consumers_read_to_the_end,
    cores.any_follower_joins_the_isr,
    cores.any_replica_is_elected,
    cores.fencing_leaves_the_isr_alone,
    cores.epochs_are_not_bumped,
    cores.records_are_invented,
    cores.consumers_are_moved_past_records,
    cores.producers_are_not_replayed,
    cores.late_answers_are_reported_as_failures,
    coordinators.read_committed_reads_all,
    coordinators.batches_are_not_verified,
    coordinators.a_commit_is_of_any_epoch,
    coordinators.commits_are_aborts,
    coordinators.one_partition_gets_the_wrong_marker,
    coordinators.zombie_coordinators_are_not_fenced,
)
BUGS: Final = {each.__name__: each for each in (*BROKEN_CONSUMERS, *BROKEN_CORES)}
_IN_TRANSACTIONS: Final = frozenset(
    each.__name__ for each in BROKEN_CORES if each.__module__ == coordinators.__name__
)
"""The bugs that only transactions show."""
NAMES: Final[dict[RunKind, Sequence[str]]] = {
    RunKind.SAFE: ("",),
    RunKind.UNSAFE: ("",),
    RunKind.SHIPPED: [each.name for each in library_files(LibraryKind.SCENARIO)],
    RunKind.BROKEN_CORE: [each.__name__ for each in BROKEN_CORES],
    RunKind.BROKEN_CONSUMER: [each.__name__ for each in BROKEN_CONSUMERS],
}
"""The names of the runs of each kind."""
