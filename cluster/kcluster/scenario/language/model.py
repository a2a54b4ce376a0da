"""The parts of a scenario as checked values: workload, steps, checks.

Owns: these types, and the values that their keys may hold.  Never: reads files (scenario.py,
loader.py), runs (runner.py).  Kafka: no counterpart; Trogdor's task specs come nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Final

from msgspec import Struct

from kcluster.actions.base import Action
from kcluster.checks.anomalies import ANOMALIES
from kcluster.clients.consumer.settings import GROUP_PROTOCOLS, ConsumerSettings
from kcluster.clients.producer.settings import ProducerSettings
from kcluster.config.files.fields import (
    Explained,
    Flag,
    ListOf,
    MapOf,
    OneOf,
    StructOf,
    Whole,
    Words,
    duration,
    fraction,
    rate,
    size,
    text,
)
from kcluster.config.files.problems import Place, unknown
from kcluster.evidence.causes import MEANINGS
from kcluster.invariants.violations import VIOLATIONS
from kcluster.operations.conditions import EVENTS, Condition
from kcluster.operations.names import PartitionName, partition_name
from kcluster.operations.targets import AnyTarget
from kcluster.protocol.errors import ErrorCode
from kcluster.scenario.language.client_configs import ClientConfigs
from kcluster.scenario.language.words import (
    CONDITION,
    COUNT,
    MOMENT,
    TIME_CHECK,
    CountCheck,
    MomentRange,
)

CLIENTS_OWN_ERRORS: Final = (
    "DISCONNECTED",
    "REQUEST_TIMED_OUT",
    "LOG_TRUNCATION",
    "SSL_HANDSHAKE_FAILED",
    "NO_OFFSET_FOR_PARTITION",
)


def _name_of(what: str, names: Iterable[str], others: tuple[str, ...] = ()) -> Callable[[str], str]:
    """The check of a word that must be one of these names, or of `others`."""
    known = (*names,)

    def check(word: str) -> str:
        if word in known or word in others:
            return word
        raise ValueError(unknown(what, word, known))

    return check


_CAUSE: Final = Explained(
    what="cause",
    meanings={str(cause): meaning for cause, meaning in MEANINGS.items()},
    others=tuple(dict.fromkeys((*(x.name for x in ErrorCode if x), *CLIENTS_OWN_ERRORS))),
    other="an error that a client got, by Kafka's name",
)
_ANOMALY: Final = OneOf("anomaly", tuple(ANOMALIES))
_KNOWN_ANOMALY: Final = _name_of("anomaly", ANOMALIES)
_GROUP_PROTOCOL: Final = OneOf("group protocol", GROUP_PROTOCOLS)
_OF_GROUP_PROTOCOL: Final = (
    "Kafka's group.protocol; streams: as the clients of a Kafka Streams application (KIP-1071)."
)
_ACKS: Final = OneOf("acks", ("0", "1", "all", "-1"))
_ERROR: Final = Words(
    "an error by Kafka's name",
    _name_of("error of Kafka", (error.name for error in ErrorCode), CLIENTS_OWN_ERRORS),
    brief="error such as NOT_ENOUGH_REPLICAS",
)
_EVENT: Final = Words(
    "an event of the cluster", _name_of("event", EVENTS), brief="event such as isr_shrunk"
)

_Members = Annotated[int, Whole(1, 100), "The number of equal members, named name-1, name-2, ..."]
_Start = Annotated[int, duration(), "When it starts, since the scenario's start."]
_Stop = Annotated[int | None, duration(), "When it stops; without it, at the scenario's end."]
_Aborted = Annotated[
    float, fraction(), "The share of transactions that the application aborts, evenly spread."
]
_TransactionTimeout = Annotated[int | None, duration(1), "Kafka's transaction.timeout.ms."]

_User = Annotated[
    str | None,
    text(),
    "The user as whom it logs in; without it, by a PLAINTEXT listener if there is one, else as the"
    " first user of the topology.",
]
_Listener = Annotated[
    str | None, text(), "The listener by which it comes; without it, the first that lets it in."
]


class TransactionSpec(Struct, frozen=True):
    """A client's use of transactions."""

    every: Annotated[int, Whole(1, 1_000_000), "Records per transaction."] = 20
    abort: _Aborted = 0.0
    id: Annotated[str, text(), "Kafka's transactional.id; without it the client's name."] = ""
    timeout_ms: _TransactionTimeout = None
    version: Annotated[
        str,
        OneOf("transaction protocol", ("1", "2")),
        "The latest protocol that the client speaks: 2 (KIP-890) as Java since 4.0, 1 as older"
        " clients and librdkafka.",
    ] = "2"


class ProducerSpec(Struct, frozen=True):
    """A producer of the workload: its records, their rate, and its configs by Kafka's names."""

    topic: Annotated[str, text(), "The topic that it writes to."]
    name: Annotated[
        str, text(), "Its name in targets, conditions and reports; producer if none is given."
    ] = ""
    partition: Annotated[
        int | None,
        Whole(),
        "The partition of all records; without it the producer chooses as the Java client does.",
    ] = None
    rate_per_s: Annotated[float, rate(), "Records per second."] = 50.0
    size_bytes: Annotated[int, size(1, 1 << 20), "Bytes of each record's value."] = 100
    keys: Annotated[
        int, Whole(0, 1_000_000), "The number of different keys; 0: records have no key."
    ] = 0
    tombstones: Annotated[
        float,
        fraction(),
        "The share of records without a value, which delete their key from a compacted topic; needs"
        " keys.",
    ] = 0.0
    count: Annotated[
        int | None, Whole(1), "The number of records; without it, it sends until it is stopped."
    ] = None
    start_ms: _Start = 0
    stop_ms: _Stop = None
    acks: Annotated[str, _ACKS, "Kafka's acks; all and -1 mean the same."] = "all"
    idempotent: Annotated[
        bool | None, Flag(), "Kafka's enable.idempotence; without it as in the Java client."
    ] = None
    retries: Annotated[int | None, Whole(), "Kafka's retries."] = None
    linger_ms: Annotated[int | None, duration(), "Kafka's linger.ms."] = None
    in_flight: Annotated[
        int | None, Whole(1, 100), "Kafka's max.in.flight.requests.per.connection."
    ] = None
    request_timeout_ms: Annotated[int | None, duration(1), "Kafka's request.timeout.ms."] = None
    delivery_timeout_ms: Annotated[int | None, duration(1), "Kafka's delivery.timeout.ms."] = None
    retry_backoff_ms: Annotated[int | None, duration(), "Kafka's retry.backoff.ms."] = None
    batch_size_bytes: Annotated[int | None, size(), "Kafka's batch.size."] = None
    transactions: Annotated[
        TransactionSpec | None,
        StructOf(TransactionSpec, "key of transactions"),
        "Records are sent in transactions.",
    ] = None
    config: Annotated[
        dict[str, object],
        ClientConfigs(ProducerSettings, "producer config"),
        "Other configs of the producer by Kafka's names.",
    ] = {}
    """The configs, by the fields of ProducerSettings."""
    user: _User = None
    listener: _Listener = None
    path: str = ""
    """The producer's place in the file, for messages: `workload.producers[1]`."""


class ConsumerSpec(Struct, frozen=True):
    """A consumer of the workload, in a group (`topics`, `group`) or with assigned `partitions`."""

    topics: Annotated[
        tuple[str, ...], ListOf(text(), "topics"), "Topics to subscribe to; needs group."
    ] = ()
    partitions: Annotated[
        tuple[PartitionName, ...],
        ListOf(Words("a partition like orders-0", partition_name), "partitions"),
        "Partitions to read without a group's assignment, instead of topics.",
    ] = ()
    name: Annotated[
        str, text(), "Its name in targets, conditions and reports; consumer if none is given."
    ] = ""
    group: Annotated[str | None, text(), "The consumer group (group.id)."] = None
    group_protocol: Annotated[str, _GROUP_PROTOCOL, _OF_GROUP_PROTOCOL] = "classic"
    by_pattern: Annotated[
        bool,
        Flag(),
        "It subscribes to its topics by a regular expression, as with SubscriptionPattern; needs"
        " group_protocol: consumer.",
    ] = False
    share: Annotated[bool, Flag(), "It is a share consumer (KIP-932), and group a share group."] = (
        False
    )
    release: Annotated[
        float,
        fraction(),
        "With share: the share of records that the application releases, evenly spread.",
    ] = 0.0
    renew: Annotated[
        float,
        fraction(),
        "With share and share.acknowledgement.mode: explicit: the share of records for which the"
        " application takes longer than their lock lasts, so that it renews the lock (KIP-1222).",
    ] = 0.0
    members: _Members = 1
    start_ms: _Start = 0
    stop_ms: _Stop = None
    isolation: Annotated[
        str,
        OneOf("isolation level", ("read_uncommitted", "read_committed")),
        "Kafka's isolation.level.",
    ] = "read_uncommitted"
    reset: Annotated[
        str, OneOf("reset policy", ("earliest", "latest", "none")), "Kafka's auto.offset.reset."
    ] = "earliest"
    commit: Annotated[
        str,
        OneOf("commit style", ("auto", "after_poll", "never")),
        "When it commits: as enable.auto.commit does, after each poll, or never.",
    ] = "auto"
    config: Annotated[
        dict[str, object],
        ClientConfigs(ConsumerSettings, "consumer config"),
        "Other configs of the consumer by Kafka's names.",
    ] = {}
    """The configs, by the fields of ConsumerSettings."""
    rack: Annotated[
        str | None,
        text(),
        "Kafka's client.rack: if the brokers have replica.selector.class, it reads from a follower "
        "in its rack.",
    ] = None
    user: _User = None
    listener: _Listener = None
    path: str = ""
    """The consumer's place in the file, for messages: `workload.consumers[1]`."""


class ProcessorSpec(Struct, frozen=True):
    """A processor of the workload: it makes one record of `to` from each record of `topic`, and
    commits its outputs and offsets in one transaction for each poll (read-process-write)."""

    topic: Annotated[str, text(), "The topic that it reads, with read_committed."]
    to: Annotated[str, text(), "The topic that it writes to."]
    group: Annotated[str, text(), "The consumer group (group.id)."]
    name: Annotated[
        str, text(), "Its name in targets, conditions and reports; processor if none is given."
    ] = ""
    members: _Members = 1
    start_ms: _Start = 0
    abort: _Aborted = 0.0
    timeout_ms: _TransactionTimeout = None
    version: Annotated[
        str,
        OneOf("transaction protocol", ("1", "2")),
        "The latest transaction protocol that the client speaks, as of a producer.",
    ] = "2"
    group_protocol: Annotated[str, _GROUP_PROTOCOL, _OF_GROUP_PROTOCOL] = "classic"
    producer_config: Annotated[
        dict[str, object],
        ClientConfigs(ProducerSettings, "producer config"),
        "Other configs of its producer by Kafka's names.",
    ] = {}
    consumer_config: Annotated[
        dict[str, object],
        ClientConfigs(ConsumerSettings, "consumer config"),
        "Other configs of its consumer by Kafka's names.",
    ] = {}
    user: _User = None
    listener: _Listener = None
    path: str = ""
    """The processor's place in the file, for messages: `workload.processors[1]`."""


class WorkloadSpec(Struct, frozen=True):
    """The clients of the project.  Live, clients from outside may take part too."""

    producers: tuple[ProducerSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    processors: tuple[ProcessorSpec, ...] = ()


class Trigger(Struct, frozen=True):
    """The trigger of a step: the step is played once all parts of the trigger have fired, one after
    the other."""

    at: Annotated[MomentRange | None, MOMENT, "Time since the start of the scenario."] = None
    after: Annotated[MomentRange | None, MOMENT, "Time since the step before it was done."] = None
    when: Annotated[Condition | None, CONDITION, "Wait until the condition holds."] = None
    delay: Annotated[MomentRange | None, MOMENT, "Time after the condition of `when` held."] = None
    every: Annotated[
        MomentRange | None, MOMENT, "Repeat after this time, `times` times or until the end."
    ] = None
    times: Annotated[int | None, Whole(1, 100_000), "How often `every` repeats it."] = None
    within_ms: Annotated[
        int | None,
        duration(1),
        "How long `when` may take; else the run fails, or with if_possible the step is skipped."
        "  Without it, until the scenario's end.",
    ] = None


class StepOptions(Struct, frozen=True):
    """The keys of a step besides its trigger and its action."""

    for_: Annotated[MomentRange | None, MOMENT, "Undo the action after this time."] = None
    until: Annotated[
        Condition | None,
        CONDITION,
        "Undo the action as soon as this condition holds, or after the time of `for`.",
    ] = None
    as_: Annotated[str, text(), "A name for the affected brokers, for later steps."] = ""
    only_if: Annotated[
        Condition | None, CONDITION, "Skip the step if this condition does not hold at its moment."
    ] = None
    if_possible: Annotated[
        bool,
        Flag(),
        "Skip the step if it cannot be performed at its moment, such as the kill of a dead broker;"
        " without it, the run then proves nothing.",
    ] = False

    @property
    def undone_after_ms(self) -> int | None:
        """The time of `for`, where nothing draws it."""
        return None if self.for_ is None else self.for_.low_ms


class Step(Struct, frozen=True):
    """One action, and the trigger on which it is performed."""

    verb: str
    action: Action
    trigger: Trigger = Trigger()
    options: StepOptions = StepOptions()
    place: Place = Place(0, 0)
    path: str = ""
    """The step's place in the file, for messages: `steps[3]`."""

    @property
    def may_be_skipped(self) -> bool:
        """Whether the step may turn out to be impossible: the file allows it, or the seed decides
        on the time of the step or on its nodes."""
        return self.options.if_possible or self.is_drawn

    @property
    def is_drawn(self) -> bool:
        """Whether the seed decides on the time of the step, or on its nodes."""
        trigger, action = self.trigger, self.action
        moments = (trigger.at, trigger.after, trigger.delay, trigger.every)
        if any(moment is not None and moment.is_drawn for moment in moments):
            return True
        values = (getattr(action, name) for name in action.__struct_fields__)
        return any(
            isinstance(each, AnyTarget)
            for value in values
            if isinstance(value, tuple)
            for each in value
        )


class Checks(Struct, frozen=True):
    """What must be true in the end; without any check the verdict must be valid."""

    verdict: Annotated[
        str | None,
        OneOf("verdict", ("valid", "invalid", "unknown")),
        "The outcome; without it, invalid if anomalies are expected, else valid.",
    ] = None
    anomalies: Annotated[
        dict[str, CountCheck],
        MapOf(
            COUNT, "counts by anomaly, such as {lost-write: some}", _name_of("anomaly", ANOMALIES)
        ),
        "How many there are of each; an anomaly that is not named must not occur.",
    ] = {}
    allowed_anomalies: Annotated[
        tuple[str, ...],
        ListOf(_ANOMALY, "anomalies"),
        "These may occur where a setting or a step allows them, which the verdict names; where"
        " nothing does, they fail the run.",
    ] = ()
    violations: Annotated[
        dict[str, CountCheck],
        MapOf(
            COUNT,
            "counts by invariant, such as {committed-lost: some}",
            _name_of("invariant", VIOLATIONS),
        ),
        "How often each invariant is broken; an invariant that is not named must hold.",
    ] = {}
    comes_to_rest: Annotated[
        bool,
        Flag(),
        "Whether everything in flight completes after the last step; false: some of it must not."
        " Where a group stays unsettled or a partition offline, that anomaly alone is reported.",
    ] = True
    causes: Annotated[
        tuple[str, ...],
        ListOf(_CAUSE, "causes"),
        "Each must explain an anomaly; an error that a client got counts too.",
    ] = ()
    errors: Annotated[
        tuple[str, ...], ListOf(_ERROR, "errors"), "Clients must get each at least once."
    ] = ()
    no_errors: Annotated[
        tuple[str, ...], ListOf(_ERROR, "errors"), "Clients must get none of these."
    ] = ()
    events: Annotated[
        tuple[str, ...], ListOf(_EVENT, "events"), "Each must happen at least once."
    ] = ()
    no_events: Annotated[
        tuple[str, ...], ListOf(_EVENT, "events"), "None of these may happen."
    ] = ()
    no_offline: Annotated[
        bool, Flag(), "No partition may be without a leader for a time, used by clients or not."
    ] = False
    no_unclean_election: Annotated[
        bool, Flag(), "No leader may be elected that may lack committed records."
    ] = False
    no_under_min_isr: Annotated[
        bool, Flag(), "No partition's ISR may be smaller than min.insync.replicas for a time."
    ] = False
    at_end: Annotated[
        tuple[Condition, ...], ListOf(CONDITION, "conditions"), "Each must hold in the end."
    ] = ()
    sent: Annotated[CountCheck | None, COUNT, "Records that producers sent."] = None
    acked: Annotated[CountCheck | None, COUNT, "Records that were acked to producers."] = None
    failed: Annotated[CountCheck | None, COUNT, "Records that were not written."] = None
    unknown: Annotated[
        CountCheck | None, COUNT, "Records that may have been written: no answer came."
    ] = None
    read: Annotated[CountCheck | None, COUNT, "Records that consumers read."] = None
    writes_unavailable_ms: Annotated[
        CountCheck | None,
        TIME_CHECK,
        "How long writes were unavailable, in the partition where that was longest.",
    ] = None
    reads_unavailable_ms: Annotated[
        CountCheck | None,
        TIME_CHECK,
        "How long reads were unavailable, in the partition where that was longest.",
    ] = None
    writes_resume_ms: Annotated[
        CountCheck | None,
        TIME_CHECK,
        "The longest single time without writes, of all partitions; writes must have resumed.",
    ] = None
    reads_resume_ms: Annotated[
        CountCheck | None,
        TIME_CHECK,
        "The longest single time without reads, of all partitions; reads must have resumed.",
    ] = None
