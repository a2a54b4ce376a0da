"""The past of a live cluster, played again in virtual time, to fork it.

Owns: the scenario that stands for the past, and its differences from that past.  Never:
plays it (play/fork.py does), changes the live cluster.
Kafka: no counterpart.

The actions so far are known exactly: they left events.  The requests of other programs' clients are
not: the project's own clients stand in for them (seen_clients.py).  Long times without an action
are shortened, because everything must have settled in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.actions.recording import RecordedStep
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.runs.record import RunRecord
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.fork import Futures, fork
from kcluster.scenario.recorded import RecordedClient, scenario_text, steps_of, without_auto_created
from kcluster.scenario.seen_clients import MAX_RATE_PER_S, PAUSE_MS, SeenClient, seen_clients
from kcluster.scenario.started import StartedClient, clients_started

Leaders = dict[tuple[str, int], tuple[int, tuple[int, ...]]]
"""The leader and the ISR of each partition."""

MAX_DIFFERENCES: Final = 5
"""The most partitions that are named because they differ."""


class _Past(Struct):
    """A cluster's past until a moment, as a scenario.  Times count from the moment at which clients
    could connect.  `skipped_ms`: the difference between the past and the shorter scenario.
    `unknown_s`: the number of the last seconds for which the record has the clients' requests; 0 if
    it has them all."""

    text: str
    moment_ms: int
    skipped_ms: int
    seen: list[SeenClient]
    leaders: Leaders
    dropped_events: int
    unknown_s: int


def fork_cluster(
    cluster: Cluster, actions: Sequence[Step], at_ms: int | None, for_ms: int
) -> Futures:
    """Both futures of a live cluster from `at_ms` on its clock, by default now, each `for_ms` long.
    The times in the answer are times of the run in virtual time.  ClusterError for a moment that is
    not in the cluster's record."""
    started = clients_started(cluster)
    past = cluster.call(lambda: _past(cluster, at_ms, started))
    scenario = Scenario.parse(past.text, "the past of the cluster")
    futures = fork(scenario, cluster.seed, past.moment_ms, actions, for_ms)
    assumptions = (*futures.assumptions, *_assumptions(past, futures))
    return replace(futures, assumptions=assumptions)


def _past(cluster: Cluster, at_ms: int | None, started: list[StartedClient]) -> _Past:
    recorder, topology = cluster.recorder, cluster.topology
    recorder.check_last_step()
    began_ms, now_ms = recorder.began_ms, cluster.driver.now_ms()
    moment_ms = now_ms if at_ms is None else at_ms
    if not began_ms <= moment_ms <= now_ms:
        raise ClusterError(
            f"{moment_ms} ms is not a moment of this cluster, which is recorded from {began_ms} to"
            f" {now_ms} ms"
        )
    notes = [note for note in recorder.notes if note.at_ms <= moment_ms]
    brokers = tuple(broker.id for broker in topology.brokers)
    steps = steps_of(notes, tuple(topology.topics), began_ms, brokers)
    members = {name for one in started for name in (one.name, *one.members)}
    seen = seen_clients(recorder, moment_ms, members.__contains__)
    known = set(cluster.verbs.settled.image.topics)
    clients = list(_clients(started, seen, known, moment_ms))
    for client in clients:
        client.start_ms = max(0, client.start_ms - began_ms)
        client.stop_ms = None if client.stop_ms is None else max(1, client.stop_ms - began_ms)
    steps = without_auto_created(steps, clients)
    skipped_ms = shorten(steps, clients, moment_ms - began_ms, round(cluster.settle_limit_s * 1000))
    played_ms = moment_ms - began_ms - skipped_ms
    text = scenario_text(cluster.name, topology, steps, clients, max(1, played_ms))
    return _Past(
        text=text,
        moment_ms=played_ms,
        skipped_ms=skipped_ms,
        seen=seen,
        leaders=_leaders_live(recorder, moment_ms),
        dropped_events=recorder.dropped_notes,
        unknown_s=(now_ms - recorder.merged_before_ms) // 1000
        if recorder.merged_before_ms > 0
        else 0,
    )


def _clients(
    started: list[StartedClient], seen: list[SeenClient], topics: set[str], moment_ms: int
) -> Iterator[RecordedClient]:
    """The workload that stands in for the clients of the past, each with its own name; times on the
    cluster's clock."""
    names: set[str] = set()

    def named(name: str) -> str:
        name = name or "client"
        while name in names:
            name += "'"
        names.add(name)
        return name

    for one in started:
        if one.started_ms <= moment_ms:
            stop_ms = one.stopped_ms if 0 <= one.stopped_ms <= moment_ms else None
            keys = one.keys | {"name": named(one.name)}
            names.update(one.members)
            yield RecordedClient(f"{one.kind}s", keys, one.started_ms, stop_ms)
    for client in seen:
        keys = client.keys | {"name": named(client.keys["name"])}
        reads = [keys["topic"]] if "topic" in keys else keys.get("topics", [])
        has_ended = moment_ms - client.last_ms > PAUSE_MS or not topics.issuperset(reads)
        stop_ms = client.last_ms + 1 if has_ended else None
        yield RecordedClient(client.kind, keys, client.first_ms, stop_ms)


def shorten(
    steps: list[RecordedStep], clients: list[RecordedClient], moment_ms: int, quiet_ms: int
) -> int:
    """Shorten each longer time without an action to `quiet_ms`; returns the time by which the
    moment is earlier."""
    times = {0, moment_ms}
    for step in steps:
        times |= {step.at_ms, step.at_ms + (step.for_ms or 0)}
    for client in clients:
        times |= {client.start_ms, client.stop_ms or 0}
    earlier: dict[int, int] = {}
    skipped_ms, last_ms = 0, 0
    for time_ms in sorted(times):
        skipped_ms += max(0, time_ms - last_ms - quiet_ms)
        earlier[time_ms], last_ms = time_ms - skipped_ms, time_ms
    for step in steps:
        if step.for_ms is not None:
            step.for_ms = earlier[step.at_ms + step.for_ms] - earlier[step.at_ms]
        step.at_ms = earlier[step.at_ms]
    for client in clients:
        client.start_ms = earlier[client.start_ms]
        client.stop_ms = None if client.stop_ms is None else earlier[client.stop_ms]
    return moment_ms - earlier[moment_ms]


# ------------------------------------------------------------------------------- assumptions


def _leaders_live(recorder: Recorder, until_ms: int) -> Leaders:
    leaders: Leaders = {}
    for (topic, number), observed in recorder.present().items():
        for at_ms, found in observed.registrations:
            if at_ms <= until_ms:
                leaders[topic, number] = (found.leader, tuple(sorted(found.isr)))
    return leaders


def _leaders_played(record: RunRecord, until_ms: int) -> Leaders:
    return {
        (row.topic, row.partition): (row.leader, tuple(sorted(row.isr)))
        for row in record.leaders
        if row.at_ms <= until_ms
    }


def _assumptions(past: _Past, futures: Futures) -> Iterator[str]:
    """The reasons why the played past differs from the real one, one line each."""
    for client in past.seen:
        keys = client.keys
        if client.kind == "producers":
            acks = f"acks={keys['acks']}, {keys['rate']}"
            yield f"{keys['name']}: a producer of kcluster stands in for it ({acks})"
        else:
            what = keys.get("topics") or keys["partitions"]
            yield f"{keys['name']}: a consumer of kcluster stands in for it ({', '.join(what)})"
        if client.is_slowed:
            yield f"{keys['name']}: it sends faster; {MAX_RATE_PER_S} records/s are played"
    if past.skipped_ms:
        skipped_s = past.skipped_ms / 1000
        yield f"{skipped_s:g} s in which nobody did anything are left out"
    if past.unknown_s:
        yield f"who sent what is known of the last {past.unknown_s} s only"
    if past.dropped_events:
        yield f"the oldest {past.dropped_events} events are not kept, nor the actions in them"
    played = _leaders_played(futures.here.record, futures.at_ms)
    differing = [name for name, state in past.leaders.items() if played.get(name) != state]
    for name in differing[:MAX_DIFFERENCES]:
        (leader, isr), (here, here_isr) = past.leaders[name], played.get(name, (-1, ()))
        yield (
            f"{name[0]}-{name[1]}: led by {here} with ISR {_ids(here_isr)} in the played past, by"
            f" {leader} with ISR {_ids(isr)} in the cluster"
        )
    if len(differing) > MAX_DIFFERENCES:
        yield f"{len(differing) - MAX_DIFFERENCES} more partitions differ"


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"
