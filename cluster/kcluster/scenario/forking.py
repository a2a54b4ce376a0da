"""The past of a live cluster, played again in virtual time, to fork it.

Owns: the scenario that stands for the past, and its differences from that past.  Never:
plays it (play/fork.py does), changes the live cluster.
Kafka: no counterpart.

The actions so far are known exactly: they left events.  The requests of other programs' clients are
not: the project's own clients stand in for them (seen_clients.py).

Time passes in the played past as it did in the cluster, because the controller moves leaders by the
clock too.  Only in a past that is longer than LONGEST_PAST_MS, times without an action are
shortened, by whole periods of these moves.  If the played past still has another leader or ISR than
the real one at the moment, the fork is refused: its futures would be those of another cluster.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.actions.recording import RecordedStep
from kcluster.config.topology.model import Topology
from kcluster.events.words.base import counted
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.record import RunRecord
from kcluster.scenario.language.model import Step, WorkloadSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.fork import Futures, fork
from kcluster.scenario.recorded import RecordedClient, scenario_text, steps_of, without_auto_created
from kcluster.scenario.seen_clients import MAX_RATE_PER_S, PAUSE_MS, SeenClient, seen_clients
from kcluster.scenario.started import StartedClient, clients_started, workload_since

Led = tuple[int, tuple[int, ...]]
"""The leader of a partition, -1 for none, and its ISR in order of ids."""
LeaderHistory = dict[tuple[str, int], list[tuple[int, Led]]]
"""The leader and the ISR of each partition from each time on, in ms after the start."""

LONGEST_PAST_MS: Final = 600_000
"""The longest past that is played at its whole length: ten minutes take seconds."""
CHECKS_MS: Final = 300_000
"""The interval of the brokers' periodic checks of logs and groups, which are not configured."""
TIMING_MS: Final = 1_000
"""The greatest delay of an event, in the cluster or in the played past, that is only timing."""
MAX_DIFFERENCES: Final = 5
"""The most partitions that are named because they differ."""


class _Past(Struct):
    """A cluster's past until a moment, as a scenario.  Times count from the moment at which clients
    could connect.  `at_ms`: the moment in the cluster; `moment_ms`: in the scenario, `skipped_ms`
    earlier.  `unknown_s`: the number of the last seconds for which the record has the clients'
    requests; 0 if it has them all.  `workload`: the clients of a scenario that is played on the
    cluster; the text does not have them.  `has_clients`: whether the text has any; if there are no
    clients at all, it has a producer for each topic."""

    text: str
    moment_ms: int
    skipped_ms: int
    seen: list[SeenClient]
    leaders: LeaderHistory
    at_ms: int
    dropped_events: int
    unknown_s: int
    has_clients: bool
    workload: WorkloadSpec


class ClusterPast(Struct, frozen=True):
    """A cluster's past until a moment, as a scenario.  `at_ms`: the moment on the scenario's clock,
    which begins with the scenario."""

    scenario: Scenario
    seed: int
    at_ms: int
    _past: _Past

    def assumptions(self, record: RunRecord, problems: Sequence[str]) -> tuple[str, ...]:
        """The reasons why the played past differs from the real one, one line each.  `record`: of a
        run of the scenario; `problems`: what was not possible in it until the moment.  ClusterError
        if it has another leader or ISR at the moment."""
        past = self._past
        found = differences(past.leaders, past.at_ms, _history_played(record), self.at_ms)
        others = [each for each in found if not each.is_timing]
        if others:
            reasons = "; ".join([*problems, *difference_texts(others)])
            raise ClusterError(
                f"the past cannot be played again as it was: {reasons}; choose another moment"
            )
        return (*problems, *_assumptions(past), *difference_texts(found))


def past_of(cluster: Cluster, at_ms: int | None) -> ClusterPast:
    """The past of a live cluster until `at_ms` on its clock, by default now.  ClusterError for a
    moment that is not in the cluster's record."""
    started = clients_started(cluster)
    past = cluster.call(lambda: _past(cluster, at_ms, started))
    scenario = Scenario.parse(past.text, "the past of the cluster")
    if past.workload != WorkloadSpec():
        workload = _together(scenario.workload if past.has_clients else None, past.workload)
        scenario = replace(scenario, workload=workload)
    return ClusterPast(scenario, cluster.seed, past.moment_ms, past)


def _together(one: WorkloadSpec | None, other: WorkloadSpec) -> WorkloadSpec:
    if one is None:
        return other
    return WorkloadSpec(
        (*one.producers, *other.producers),
        (*one.consumers, *other.consumers),
        (*one.processors, *other.processors),
    )


def fork_cluster(
    cluster: Cluster, actions: Sequence[Step], at_ms: int | None, for_ms: int
) -> Futures:
    """Both futures of a live cluster from `at_ms` on its clock, by default now, each `for_ms` long.
    The times in the answer are times of the run in virtual time.  ClusterError for a moment that is
    not in the cluster's record, and for a past that cannot be played again as it was."""
    if cluster.real_version:
        raise ClusterError("a real Kafka has one future: its brokers cannot be copied from outside")
    past = past_of(cluster, at_ms)
    futures = fork(past.scenario, past.seed, past.at_ms, actions, for_ms)
    assumptions = past.assumptions(futures.here.record, futures.assumptions)
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
    at_ms, skipped_ms = moment_ms - began_ms, 0
    if at_ms > LONGEST_PAST_MS:
        quiet_ms = round(cluster.settle_limit_s * 1000)
        skipped_ms = shorten(steps, clients, at_ms, quiet_ms, _period_ms(topology))
    played_ms = at_ms - skipped_ms
    text = scenario_text(cluster.name, topology, steps, clients, max(1, played_ms))
    return _Past(
        text=text,
        moment_ms=played_ms,
        skipped_ms=skipped_ms,
        seen=seen,
        leaders=_history_live(recorder, began_ms),
        at_ms=at_ms,
        dropped_events=recorder.dropped_notes,
        has_clients=bool(clients),
        workload=workload_since(cluster, began_ms),
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


def _period_ms(topology: Topology) -> int:
    """The time after which all periodic checks of a cluster repeat."""
    config = topology.broker_config(topology.brokers[0].id)
    return math.lcm(CHECKS_MS, config.leader_imbalance_check_interval_seconds * 1000)


def shorten(
    steps: list[RecordedStep],
    clients: list[RecordedClient],
    moment_ms: int,
    quiet_ms: int,
    period_ms: int,
) -> int:
    """Shorten each long time without an action by whole periods, so that no periodic check moves;
    `quiet_ms` and at least one period remain.  Returns the time by which the moment is earlier."""
    times = {0, moment_ms}
    for step in steps:
        times |= {step.at_ms, step.at_ms + (step.for_ms or 0)}
    for client in clients:
        times |= {client.start_ms, client.stop_ms or 0}
    earlier: dict[int, int] = {}
    skipped_ms, last_ms = 0, 0
    for time_ms in sorted(times):
        skipped_ms += max(0, time_ms - last_ms - quiet_ms - period_ms) // period_ms * period_ms
        earlier[time_ms], last_ms = time_ms - skipped_ms, time_ms
    for step in steps:
        if step.for_ms is not None:
            step.for_ms = earlier[step.at_ms + step.for_ms] - earlier[step.at_ms]
        step.at_ms = earlier[step.at_ms]
    for client in clients:
        client.start_ms = earlier[client.start_ms]
        client.stop_ms = None if client.stop_ms is None else earlier[client.stop_ms]
    return moment_ms - earlier[moment_ms]


# --------------------------------------------------------------------- both pasts, compared


class PastDifference(Struct, frozen=True):
    """A partition whose state in the played past is not that of the cluster at the moment; None: it
    does not exist.  `is_timing`: the other past has this state too, up to TIMING_MS earlier or
    later."""

    topic: str
    partition: int
    live: Led | None
    played: Led | None
    is_timing: bool


def differences(
    live: LeaderHistory, live_ms: int, played: LeaderHistory, played_ms: int
) -> list[PastDifference]:
    """The cluster's partitions that differ at the moment; `live_ms`, `played_ms`: the moment in
    both."""
    found = []
    for name in sorted(live):
        states = live[name], played.get(name, [])
        now = _led_at(states[0], live_ms), _led_at(states[1], played_ms)
        if now[0] != now[1]:
            is_timing = now[0] in _led_around(states[1], played_ms) or now[1] in _led_around(
                states[0], live_ms
            )
            found.append(PastDifference(*name, *now, is_timing))
    return found


def _led_at(states: list[tuple[int, Led]], at_ms: int) -> Led | None:
    index = bisect_right(states, at_ms, key=lambda state: state[0])
    return states[index - 1][1] if index else None


def _led_around(states: list[tuple[int, Led]], at_ms: int) -> list[Led | None]:
    """The states from TIMING_MS before a time to TIMING_MS after it."""
    first = _led_at(states, at_ms - TIMING_MS)
    return [first, *(led for time_ms, led in states if abs(time_ms - at_ms) <= TIMING_MS)]


def _history_live(recorder: Recorder, began_ms: int) -> LeaderHistory:
    return {
        name: [
            (at_ms - began_ms, (found.leader, tuple(sorted(found.isr))))
            for at_ms, found in observed.registrations
        ]
        for name, observed in recorder.present().items()
        if not has_internal_prefix(name[0])
    }


def _history_played(record: RunRecord) -> LeaderHistory:
    history: LeaderHistory = {}
    for row in record.leaders:
        if not has_internal_prefix(row.topic):
            led = (row.leader, tuple(sorted(row.isr)))
            states = history.setdefault((row.topic, row.partition), [])
            states.append((row.at_ms - record.info.began_ms, led))
    return history


# ------------------------------------------------------------------------------- assumptions


def _assumptions(past: _Past) -> Iterator[str]:
    """The reasons why the played past differs from the real one, one line each."""
    if not past.has_clients and past.workload == WorkloadSpec():
        yield "no client was there: a producer of 50 records/s stands in for each topic"
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
        yield f"{skipped_s:g} s without an action are left out, with what clients wrote in them"
    if past.unknown_s:
        yield f"who sent what is known of the last {past.unknown_s} s only"
    if past.dropped_events:
        yield f"the oldest {past.dropped_events} events are not kept, nor the actions in them"


def difference_texts(found: Sequence[PastDifference]) -> Iterator[str]:
    """The first differences, one line each, and the number of the others."""
    yield from map(_difference_text, found[:MAX_DIFFERENCES])
    if len(found) > MAX_DIFFERENCES:
        yield f"{counted(len(found) - MAX_DIFFERENCES, 'more partition')} differ"


def _difference_text(found: PastDifference) -> str:
    name = f"{found.topic}-{found.partition}"
    live, played = _led_text(found.live), _led_text(found.played)
    return f"{name} {live} in the cluster, and {played} when the past is played again"


def _led_text(led: Led | None) -> str:
    if led is None:
        return "does not exist"
    leader, isr = led
    led_by = f"is led by {leader}" if leader >= 0 else "has no leader"
    return f"{led_by} with ISR {', '.join(map(str, isr)) or 'none'}"
