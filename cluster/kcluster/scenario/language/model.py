"""The parts of a scenario as checked values: workload, steps, checks.

Owns: these types, what their keys may hold.  Never: reads files (scenario.py, loader.py), runs
(runner.py).
Kafka: no counterpart; Trogdor's task specs come nearest.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Struct

from kcluster.checks.anomalies import ANOMALIES
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.clients.producer.settings import ProducerSettings
from kcluster.config.files.problems import Place, unknown
from kcluster.evidence.causes import MEANINGS
from kcluster.operations.conditions import EVENTS, Condition
from kcluster.operations.names import PartitionName, partition_name
from kcluster.protocol.errors import ErrorCode
from kcluster.scenario.actions.base import Action
from kcluster.scenario.language.client_configs import ClientConfigs
from kcluster.scenario.language.fields import (
    Explained,
    Flag,
    ListOf,
    MapOf,
    OneOf,
    Whole,
    Words,
    duration,
    rate,
    size,
    text,
)
from kcluster.scenario.language.words import CONDITION, COUNT, MOMENT, CountCheck, MomentRange

CLIENTS_OWN_ERRORS: Final = (
    "DISCONNECTED",
    "REQUEST_TIMED_OUT",
    "LOG_TRUNCATION",
    "NO_OFFSET_FOR_PARTITION",
)


def _error_name(word: str) -> str:
    names = [error.name for error in ErrorCode]
    if word in names or word in CLIENTS_OWN_ERRORS:
        return word
    raise ValueError(unknown("error of Kafka", word, names))


def _event_name(word: str) -> str:
    if word in EVENTS:
        return word
    raise ValueError(unknown("event", word, EVENTS))


def _anomaly_name(word: str) -> str:
    if word in ANOMALIES:
        return word
    raise ValueError(unknown("anomaly", word, ANOMALIES))


_CAUSE: Final = Explained(
    what="cause",
    meanings={str(cause): meaning for cause, meaning in MEANINGS.items()},
    others=tuple(dict.fromkeys((*(x.name for x in ErrorCode if x), *CLIENTS_OWN_ERRORS))),
    other="an error that a client got, by Kafka's name",
)
_ACKS: Final = OneOf("acks", ("0", "1", "all", "-1"))
_ERROR: Final = Words("an error by Kafka's name", _error_name)


class ProducerSpec(Struct, frozen=True):
    """A producer of the workload: what it sends, how fast, and its configs by Kafka's names."""

    topic: Annotated[str, text()]
    name: Annotated[str, text()] = ""
    partition: Annotated[int | None, Whole()] = None
    """The partition of all records; None: chosen as by the Java client."""
    rate_per_s: Annotated[float, rate()] = 50.0
    size_bytes: Annotated[int, size(1, 1 << 20)] = 100
    keys: Annotated[int, Whole(0, 1_000_000)] = 0
    """The number of different keys; 0: records without keys."""
    count: Annotated[int | None, Whole(1)] = None
    start_ms: Annotated[int, duration()] = 0
    stop_ms: Annotated[int | None, duration()] = None
    acks: Annotated[str, _ACKS] = "all"
    idempotent: Annotated[bool | None, Flag()] = None
    retries: Annotated[int | None, Whole()] = None
    linger_ms: Annotated[int | None, duration()] = None
    in_flight: Annotated[int | None, Whole(1, 100)] = None
    request_timeout_ms: Annotated[int | None, duration(1)] = None
    delivery_timeout_ms: Annotated[int | None, duration(1)] = None
    retry_backoff_ms: Annotated[int | None, duration()] = None
    batch_size_bytes: Annotated[int | None, size()] = None
    config: Annotated[dict[str, Any], ClientConfigs(ProducerSettings, "producer config")] = {}
    """By the fields of ProducerSettings; in files by Kafka's names."""


class ConsumerSpec(Struct, frozen=True):
    """A consumer of the workload, in a group or with assigned partitions."""

    topics: Annotated[tuple[str, ...], ListOf(text(), "topics")] = ()
    partitions: Annotated[
        tuple[PartitionName, ...],
        ListOf(Words("a partition like orders-0", partition_name), "partitions"),
    ] = ()
    name: Annotated[str, text()] = ""
    group: Annotated[str | None, text()] = None
    members: Annotated[int, Whole(1, 100)] = 1
    """The number of equal members, named name-1, name-2, ..."""
    start_ms: Annotated[int, duration()] = 0
    stop_ms: Annotated[int | None, duration()] = None
    isolation: Annotated[str, OneOf("isolation level", ("read_uncommitted", "read_committed"))] = (
        "read_uncommitted"
    )
    reset: Annotated[str, OneOf("reset policy", ("earliest", "latest", "none"))] = "earliest"
    commit: Annotated[str, OneOf("commit style", ("auto", "after_poll", "never"))] = "auto"
    config: Annotated[dict[str, Any], ClientConfigs(ConsumerSettings, "consumer config")] = {}
    """By the fields of ConsumerSettings; in files by Kafka's names."""
    rack: Annotated[str | None, text()] = None


class WorkloadSpec(Struct, frozen=True):
    """The producers and consumers.  Live, clients from outside may take part too."""

    producers: tuple[ProducerSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()


class Trigger(Struct, frozen=True):
    """When a step is played: once all its triggers have fired, one after the other.

    `at`: time since the start of the scenario; `after`: time since the previous step was done;
    `when`: as soon as the condition holds; `every`: repeatedly, `times` times or until the end."""

    at: Annotated[MomentRange | None, MOMENT] = None
    after: Annotated[MomentRange | None, MOMENT] = None
    when: Annotated[Condition | None, CONDITION] = None
    every: Annotated[MomentRange | None, MOMENT] = None
    times: Annotated[int | None, Whole(1, 100_000)] = None
    within_ms: Annotated[int | None, duration(1)] = None
    """The run fails if `when` does not hold within this time; None: by the scenario's end."""


class StepOptions(Struct, frozen=True):
    """The keys of a step besides its trigger and its action."""

    for_: Annotated[MomentRange | None, MOMENT] = None
    """The time after which it is undone."""
    as_: Annotated[str, text()] = ""
    """A name for the same brokers, for later steps."""


class Step(Struct, frozen=True):
    """One action, and when it is performed."""

    verb: str
    action: Action
    trigger: Trigger = Trigger()
    options: StepOptions = StepOptions()
    place: Place = Place(0, 0)


class Checks(Struct, frozen=True):
    """What must be true in the end; without any check the verdict must be valid."""

    verdict: Annotated[str | None, OneOf("verdict", ("valid", "invalid", "unknown"))] = None
    """None: invalid if anomalies are expected, else valid."""
    anomalies: Annotated[dict[str, CountCheck], MapOf(COUNT, "anomalies", _anomaly_name)] = {}
    """How many of each; an anomaly that is not named must not occur."""
    causes: Annotated[tuple[str, ...], ListOf(_CAUSE, "causes")] = ()
    """Each must be among the causes, or the errors of clients, that explain an anomaly."""
    errors: Annotated[tuple[str, ...], ListOf(_ERROR, "errors")] = ()
    """Clients must receive each of these at least once."""
    no_errors: Annotated[tuple[str, ...], ListOf(_ERROR, "errors")] = ()
    events: Annotated[
        tuple[str, ...], ListOf(Words("an event of the cluster", _event_name), "events")
    ] = ()
    no_events: Annotated[
        tuple[str, ...], ListOf(Words("an event of the cluster", _event_name), "events")
    ] = ()
    at_end: Annotated[tuple[Condition, ...], ListOf(CONDITION, "conditions")] = ()
    sent: Annotated[CountCheck | None, COUNT] = None
    acked: Annotated[CountCheck | None, COUNT] = None
    failed: Annotated[CountCheck | None, COUNT] = None
    unknown: Annotated[CountCheck | None, COUNT] = None
    read: Annotated[CountCheck | None, COUNT] = None
    writes_unavailable_ms: Annotated[CountCheck | None, COUNT] = None
    """Of the partition that was unavailable for writes longest."""
    reads_unavailable_ms: Annotated[CountCheck | None, COUNT] = None
