"""The project's own clients that are started on a running cluster, and stopped.

Owns: start_client, stop_client, the list of clients that were started, the workload of a scenario
that is played on a cluster.  Never: knows what a client
does (clients/), reads a file.  Kafka: kafka-console-producer.sh and kafka-console-consumer.sh.

    start_client(cluster, {"producer": {"topic": "orders", "rate": "10/s", "acks": "all"}})

The keys are as in a scenario's workload.  A client's name is its client.id, and the cluster treats
it as a client from outside: the brokers' answers show the promises to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.producer import Producer
from kcluster.config.files.problems import Problem, unknown
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.evidence.rows import WaitingRow
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.protocol.names import has_internal_prefix
from kcluster.scenario.language.loader import Claims, ScenarioError, read_workload
from kcluster.scenario.language.model import Checks, WorkloadSpec
from kcluster.scenario.language.naming import check_names
from kcluster.scenario.perform import running_stage
from kcluster.scenario.play.running_stage import RunningStage
from kcluster.scenario.play.workload import (
    WorkloadConsumer,
    client_accesses,
    make_clients,
    names_of_members,
)
from kcluster.scenario.recorded import RecordedClient

KINDS: Final = ("producer", "consumer", "processor")
MAX_CLIENTS: Final = 200
"""The most clients that may run at a time."""
MAX_ENDED: Final = 200
"""The most stopped clients that are remembered."""
FORGET_EVERY_US: Final = 10_000_000
KEPT_RECORDS: Final = 1_000


class StartedClient(Struct):
    """A client that was started on a cluster.  `kind`: producer, consumer or processor.  `keys`:
    its keys in the words of a workload.  `members`: the client.ids; a single member has the name
    itself.  `stopped_ms`: -1 while it runs."""

    name: str
    kind: str
    keys: JsonObject
    members: tuple[str, ...]
    started_ms: int
    stopped_ms: int = -1

    @property
    def is_running(self) -> bool:
        """Whether the client has not been stopped."""
        return self.stopped_ms < 0


class _Running(Struct):
    """The clients of one StartedClient, and their own notes."""

    clients: tuple[Producer | WorkloadConsumer, ...]
    ledger: Ledger


class _Started:
    """All clients that were started on a cluster."""

    def __init__(self) -> None:
        self.all: list[StartedClient] = []
        self.running: dict[str, _Running] = {}
        self.numbers: dict[str, int] = {}
        self.is_forgetting = False


def start_client(cluster: ClusterVerbs, spec: Mapping[str, object]) -> str:
    """Start a client; returns its name, which is `producer-1` and so on unless the spec has one.
    Raises ScenarioError for wrong keys, with the path of each; ClusterError for a name that is
    taken."""
    kind, keys = _kind_and_keys(spec)
    named = keys.get("name") or cluster.call(lambda: _free_name(_started(cluster), kind))
    keys["name"] = named
    workload = _read(cluster, kind, keys)
    return cluster.call(lambda: _start(cluster, kind, keys, workload))


def stop_client(cluster: ClusterVerbs, name: str) -> None:
    """Stop a client: a producer sends its remaining records, a consumer commits and leaves its
    group.  ClusterError if no client of this name runs."""
    cluster.call(lambda: _stop(cluster, name))


def clients_started(cluster: ClusterVerbs) -> list[StartedClient]:
    """The clients that were started, oldest first, including stopped ones."""
    return cluster.call(lambda: [replace(client) for client in _started(cluster).all])


def waiting_records(cluster: ClusterVerbs) -> list[WaitingRow]:
    """Producers' records without an outcome so far, including a record whose send() blocks, by
    producer and partition; called in the driver's thread."""
    now_ms = cluster.driver.now_ms()
    return [
        WaitingRow(now_ms, client.name, topic, partition, count, oldest_ms)
        for running in _started(cluster).running.values()
        for client in running.clients
        if isinstance(client, Producer)
        for (topic, partition), count, oldest_ms in client.unanswered()
    ]


def recorded_clients(cluster: ClusterVerbs, began_ms: int) -> list[RecordedClient]:
    """The clients that were started, as clients of a scenario file.  `began_ms`: the time from
    which the file's times count."""
    return [
        RecordedClient(
            f"{one.kind}s",
            one.keys,
            max(0, one.started_ms - began_ms),
            None if one.is_running else max(1, one.stopped_ms - began_ms),
        )
        for one in clients_started(cluster)
    ]


class _Workload(Struct, frozen=True):
    """The clients of a scenario that is played on the cluster since `began_ms`."""

    spec: WorkloadSpec
    began_ms: int


def note_workload(cluster: ClusterVerbs, spec: WorkloadSpec) -> None:
    """Take note that a scenario's clients start on the cluster now, so that its past has them;
    called in the driver's thread."""
    cluster.parts.of(_Workload, lambda: _Workload(spec, cluster.driver.now_ms()))


def workload_since(cluster: ClusterVerbs, began_ms: int) -> WorkloadSpec:
    """The clients of the scenario that is played on the cluster, with times since `began_ms`; none
    if there is no scenario.  Called in the driver's thread."""
    noted = cluster.parts.of(_Workload, lambda: _Workload(WorkloadSpec(), began_ms))
    later_ms, spec = noted.began_ms - began_ms, noted.spec

    def later(stop_ms: int | None) -> int | None:
        return None if stop_ms is None else stop_ms + later_ms

    return WorkloadSpec(
        tuple(
            replace(each, start_ms=each.start_ms + later_ms, stop_ms=later(each.stop_ms))
            for each in spec.producers
        ),
        tuple(
            replace(each, start_ms=each.start_ms + later_ms, stop_ms=later(each.stop_ms))
            for each in spec.consumers
        ),
        tuple(replace(each, start_ms=each.start_ms + later_ms) for each in spec.processors),
    )


def _started(cluster: ClusterVerbs) -> _Started:
    return cluster.parts.of(_Started, _Started)


def _kind_and_keys(spec: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    if len(spec) != 1:
        raise _wrong("", f"a client is one of {', '.join(KINDS)}, with its keys")
    ((kind, keys),) = spec.items()
    if kind not in KINDS:
        raise _wrong(str(kind), unknown("kind of client", str(kind), KINDS))
    if not isinstance(keys, Mapping):
        raise _wrong(kind, f"a {kind} has keys, such as topic")
    keys = dict(keys)
    if kind == "consumer" and "topic" in keys and "topics" not in keys:
        keys["topics"] = keys.pop("topic")
    return kind, keys


def _wrong(path: str, text: str) -> ScenarioError:
    return ScenarioError([Problem("", 0, 0, path, text)])


def _start(
    cluster: ClusterVerbs, kind: str, keys: dict[str, object], workload: WorkloadSpec
) -> str:
    started = _started(cluster)
    if len(started.running) >= MAX_CLIENTS:
        raise ClusterError(f"{MAX_CLIENTS} clients run already; stop some")
    specs: tuple[Any, ...] = (*workload.producers, *workload.consumers, *workload.processors)
    (spec,) = specs
    names = (spec.name, *names_of_members(spec.name, getattr(spec, "members", 1)))
    taken = {name for one in started.all if one.is_running for name in (one.name, *one.members)}
    for name in names:
        if name in taken:
            raise ClusterError(f"a client {name} runs already")
    ledger, stage = Ledger(), running_stage(cluster)
    producers, consumers = make_clients(workload, cluster.topology.profile, ledger)
    clients: tuple[Producer | WorkloadConsumer, ...] = (*producers, *consumers)
    accesses = client_accesses(workload, cluster.topology)
    for client in clients:
        stage.add_outside_client(client.name, client, accesses[client.name])
    started.running[spec.name] = _Running(clients, ledger)
    members = tuple(client.name for client in clients)
    started.all.append(StartedClient(spec.name, kind, keys, members, cluster.driver.now_ms()))
    if not started.is_forgetting:
        started.is_forgetting = True
        _forget_later(started, stage)
    return str(spec.name)


def _free_name(started: _Started, kind: str) -> str:
    """An unused name: `producer-1`, `producer-2`, ... No name is used again, so that each name
    stands for one client."""
    taken = {name for one in started.all for name in (one.name, *one.members)}
    while True:
        number = started.numbers[kind] = started.numbers.get(kind, 0) + 1
        if f"{kind}-{number}" not in taken:
            return f"{kind}-{number}"


def _read(cluster: ClusterVerbs, kind: str, keys: dict[str, object]) -> WorkloadSpec:
    """A client's keys as a checked workload, on the present topics."""
    node = from_python({f"{kind}s": keys})
    reading = TreeReader("")
    known = cluster.call(lambda: list(cluster.verbs.settled.image.topics))
    topics = [name for name in known if not has_internal_prefix(name)]
    claims = Claims(topics=topics)
    workload = read_workload(reading, node, claims)
    check_names(reading, {"workload": node}, cluster.topology, workload, (), Checks(), claims)
    if reading.problems:
        raise ScenarioError(
            [replace(x, path=x.path.removeprefix(f"workload.{kind}s.")) for x in reading.problems]
        )
    return workload


def _stop(cluster: ClusterVerbs, name: str) -> None:
    started = _started(cluster)
    running = started.running.pop(name, None)
    if running is None:
        names = list(started.running)
        known = unknown("running client", name, names) if names else "no client runs"
        raise ClusterError(f"{name}: {known}")
    now_ms = cluster.driver.now_ms()
    for client in running.clients:
        running_stage(cluster).stop_outside_client(client.name, client)
    for one in started.all:
        if one.name == name and one.is_running:
            one.stopped_ms = now_ms
    ended = [one for one in started.all if not one.is_running]
    for one in ended[:-MAX_ENDED]:
        started.all.remove(one)


def _forget_later(started: _Started, stage: RunningStage) -> None:
    """Drop the clients' own notes, every ten seconds: the verdict uses the brokers' record only."""

    def forget() -> None:
        for running in started.running.values():
            ledger = running.ledger
            for noted in (
                ledger.sends, ledger.reads, ledger.commits, ledger.transactions, ledger.deliveries,
                ledger.errors,
            ):  # fmt: skip
                del noted[:-KEPT_RECORDS]
        if started.running:
            _forget_later(started, stage)
        else:
            started.is_forgetting = False

    stage.driver.at(stage.driver.dispatcher.now_us + FORGET_EVERY_US, forget)
