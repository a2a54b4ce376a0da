"""Protocol faults: error answers; delayed, dropped and reordered requests and replies.

Owns: these actions.  Never: matches requests (faults/rules.py), applies a rule
(runtime/gate.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import to_builtins

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS, PARTITION
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import Flag, ListOf, OneOf, Whole, Words, duration, fraction, text
from kcluster.config.files.numbers import whole_number
from kcluster.events.network import RuleAdded, RuleRemoved
from kcluster.events.rule_effects import (
    AnswerError,
    AnyEffect,
    CapVersion,
    Close,
    Corruption,
    CorruptRecords,
    Delay,
    Drop,
    DuplicateRecords,
    EmptyFetch,
    Half,
    Reorder,
    ReplaceSchemaId,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.faults.rules import Rule, RuleError, rule
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import Targets
from kcluster.operations.verbs import Verbs
from kcluster.protocol.apis import APIS
from kcluster.protocol.errors import ErrorCode

_API: Final = OneOf("API", tuple(line.name for line in APIS.values()))
_ERRORS: Final = tuple(name for name in ErrorCode.__members__ if name != "NONE")
_ERROR: Final = OneOf("error of Kafka", _ERRORS)


def _versions(text_: str) -> tuple[int, int]:
    first, dots, last = text_.partition("..")
    low = whole_number(first.strip())
    high = whole_number(last.strip()) if dots else low
    if low is None or high is None:
        raise ValueError("not a version like 9, or 3..9")
    return low, high


@action("rule", example="rule: {api: Produce, client: shop, nth: 3, answer: NOT_ENOUGH_REPLICAS}")
class AddRule(Action, frozen=True):
    """Apply one effect to matching client requests: answer, delay, drop, close, throttle, stale,
    reorder, duplicate, corrupt, empty, schema_id or max_version.  Undone by removing the rule."""

    api: Annotated[
        tuple[str, ...], ListOf(_API, "APIs"), "Requests of these APIs; without it of all."
    ] = ()
    version: Annotated[
        tuple[int, int] | None,
        Words("a version like 9, or 3..9", _versions),
        "Requests of these versions of the API.",
    ] = None
    client: Annotated[
        str, text(), "Requests of a client of the workload, or a pattern of client ids."
    ] = "*"
    broker: Annotated[Targets | None, BROKERS, "Requests to these brokers."] = None
    topic: Annotated[str | None, text(), "Requests that name this topic."] = None
    partition: Annotated[PartitionName | None, PARTITION, "Requests that name this partition."] = (
        None
    )
    nth: Annotated[
        int, Whole(0), "Only the nth matching request, counted from 1; 0: every one."
    ] = 0
    every: Annotated[int, Whole(1), "2: only every second matching request."] = 1
    first: Annotated[int, Whole(0), "Only the first matching requests; 0: no limit."] = 0
    times: Annotated[int, Whole(0), "How often the rule applies; 0: no limit."] = 0
    probability: Annotated[float, fraction(), "The share of matching requests, drawn."] = 1.0

    answer: Annotated[
        str | None, _ERROR, "Answer with this error, and do not process the request."
    ] = None
    after: Annotated[
        bool, Flag(), "With `answer`: the broker processes the request nevertheless."
    ] = False
    delay_ms: Annotated[int | None, duration(), "Delay the request or the reply."] = None
    of: Annotated[
        str | None, OneOf("half", ("request", "reply")), "What `delay` delays; else the reply."
    ] = None
    jitter_ms: Annotated[int | None, duration(), "How much the delay varies."] = None
    drop: Annotated[
        str | None, OneOf("half", ("request", "reply")), "Drop the request, or its reply."
    ] = None
    close: Annotated[
        str | None,
        OneOf("moment", ("before", "after", "true")),
        "Close the connection before or after the request is processed; true, with `drop`: at"
        " once.",
    ] = None
    throttle_ms: Annotated[
        int | None,
        duration(1),
        "Answer with this throttle_time_ms, and mute the connection for as long.",
    ] = None
    stale: Annotated[bool, Flag(), "Answer Metadata from before the last change."] = False
    reorder_ms: Annotated[
        int | None,
        duration(1),
        "Hold a request until one of another connection has passed it, at most for this time.",
    ] = None

    duplicate: Annotated[
        bool,
        Flag(),
        "Append the records of a Produce a second time, without producer id, so that consumers"
        " get them twice. Transactions are left alone.",
    ] = False
    corrupt: Annotated[
        str | None,
        OneOf("kind", tuple(Corruption)),
        "Change a value in the answer to a fetch: the last of the first batch, per partition. The"
        " CRC is then wrong with `crc`, right with `value`. The log stays sound.",
    ] = None
    empty: Annotated[
        bool, Flag(), "Answer a fetch without its records, with the true high watermark."
    ] = False
    schema_id: Annotated[
        int | None,
        Whole(0, 2**31 - 1),
        "Replace the schema id in fetched values that are in Confluent's wire format.",
    ] = None
    max_version: Annotated[
        int | None,
        Whole(0, 0x7FFF),
        "Serve the API like a broker that knows it up to this version: ApiVersions shows it, and a"
        " newer request closes its connection.",
    ] = None

    def to_rule(self, brokers: tuple[int, ...], client: str) -> Rule:
        """The rule; RuleError with every problem."""
        words: dict[str, Any] = {
            key: getattr(self, key)
            for key in (
                "answer",
                "delay_ms",
                "of",
                "jitter_ms",
                "drop",
                "throttle_ms",
                "reorder_ms",
                "corrupt",
                "schema_id",
                "max_version",
            )
            if getattr(self, key) is not None
        }
        words |= {
            key: True for key in ("after", "stale", "duplicate", "empty") if getattr(self, key)
        }
        if self.close is not None:
            words["close"] = True if self.close == "true" else self.close
        topic, partition = self.partition or (self.topic, ())
        return rule(
            api=self.api,
            version=self.version,
            client=client,
            broker=brokers,
            topic=topic,
            partition=partition,
            nth=self.nth,
            every=self.every,
            first=self.first,
            times=self.times,
            probability=self.probability,
            **words,
        )

    def do(self, stage: Stage) -> Undo:
        brokers = () if self.broker is None else stage.nodes(self.broker)
        number = stage.client_ids().get(self.client)
        client = self.client if number is None else f"client-{number}"
        try:
            name = stage.verbs.add_rule(self.to_rule(brokers, client))
        except RuleError as error:
            raise ClusterError(str(error)) from None
        return removal(stage, name)

    RECORDED_FROM = (RuleAdded, RuleRemoved)

    @classmethod
    def record(cls, event: RuleAdded | RuleRemoved, recording: Recording) -> None:
        if isinstance(event, RuleRemoved):
            recording.undo(lambda was: isinstance(was, RuleAdded) and was.rule == event.rule)
            return
        calls, topic = event.applies_to, event.topic
        keys: dict[str, Any] = {} if calls is None else to_builtins(calls)
        versions = keys.pop("versions", None)
        if topic is not None and len(event.partitions) == 1:
            keys["partition"] = topic, event.partitions[0]
        else:
            keys["topic"] = topic
        step = cls(
            api=event.apis,
            version=tuple(versions) if versions else None,
            client=event.client,
            broker=these(event.brokers) or None,
            **keys,
            **_effect_keys(event.effect),
        )
        recording.add(step, event)


def removal(stage: Stage, name: str) -> Undo:
    """Removes a rule, if it is still in force."""

    def undo() -> None:
        if any(found.name == name for found in stage.verbs.rules()):
            stage.verbs.remove_rule(name)

    return undo


@action("clear_rules", example="clear_rules")
class ClearRules(Action, frozen=True):
    """Remove all rules."""

    def do(self, stage: Stage) -> None:
        stage.verbs.clear_rules()

    @classmethod
    def repair(cls, verbs: Verbs) -> Iterator[str]:
        verbs.clear_rules()
        yield from ()


def _effect_keys(effect: AnyEffect) -> dict[str, Any]:
    match effect:
        case AnswerError(error=error, after=after):
            return {"answer": error, "after": after}
        case Delay(delay_ms=delay_ms, of=of, jitter_ms=jitter_ms):
            half = None if of is Half.REQUEST else str(of)
            return {"delay_ms": delay_ms, "of": half, "jitter_ms": jitter_ms or None}
        case Drop(of=of, close=close):
            return {"drop": str(of), "close": "true" if close else None}
        case Close(when=when):
            return {"close": str(when)}
        case ThrottleClient(throttle_ms=throttle_ms):
            return {"throttle_ms": throttle_ms}
        case StaleMetadata():
            return {"stale": True}
        case Reorder(limit_ms=limit_ms):
            return {"reorder_ms": limit_ms}
        case DuplicateRecords():
            return {"duplicate": True}
        case CorruptRecords(of=of):
            return {"corrupt": str(of)}
        case EmptyFetch():
            return {"empty": True}
        case ReplaceSchemaId(schema_id=schema_id):
            return {"schema_id": schema_id}
        case CapVersion(max_version=max_version):
            return {"max_version": max_version}
