"""Rules of protocol faults: matching requests, and the choice of the rule that applies.

Owns: Rule, its checks, the order of rules, their counts.  Never: carries out an effect
(runtime/gate.py does), makes a random generator (each rule gets one).
Kafka: no counterpart; its tests use MockClient.prepareResponse and subclasses of KafkaApis.

    rule(api="Produce", topic="orders", partition=0, nth=3, answer="NOT_LEADER_OR_FOLLOWER")

Rules are tried in the order in which they were added, and only the first rule that applies takes
effect.  A rule counts the requests that it matches (its calls); `nth`, `every` and `first` choose
among these calls, then `probability`; `times` limits the number of times that it applies (its
hits).  A request to which an earlier rule applies is not a call of a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.contract import Rng
from kcluster.events.rule_effects import (
    EFFECTS,
    AnswerError,
    AnyEffect,
    Close,
    CloseTime,
    Delay,
    Drop,
    Half,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode

METADATA_APIS: Final = (
    ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)  # fmt: skip
"""APIs answered from the image of the cluster, which can be stale."""


class RuleError(ValueError):
    """The error for an invalid rule; str() has one line per problem."""


class Rule(Struct, frozen=True, kw_only=True):
    """A rule: the requests that it matches, and its effect on them.  Made and checked by `rule`."""

    effect: AnyEffect
    name: str = ""
    """The name that the caller chose; `rule-1`, `rule-2`, … if empty."""
    apis: tuple[int, ...] = ()
    """The keys of the APIs that the rule matches; all if empty."""
    versions: Versions | None = None
    """The lowest and the highest version of the API that the rule matches."""
    client: str = "*"
    """A pattern for client ids, with `*` and `?` as in file names."""
    brokers: tuple[int, ...] = ()
    topic: str | None = None
    """A pattern for the topics that a request names."""
    partitions: tuple[int, ...] = ()
    from_ms: int = 0
    """The time from which the rule matches, in ms since it was added."""
    to_ms: int | None = None
    """The time at which the rule stops matching, exclusive; None for never."""
    nth: int = 0
    """The only call to which the rule applies, counted from 1; 0: any."""
    every: int = 1
    """The rule applies to calls whose number is a multiple of this."""
    first: int = 0
    """The number of first calls to which the rule applies; 0: all calls."""
    probability: float = 1.0
    times: int = 0
    """The most calls to which the rule applies; 0: no limit."""

    def wants(self, topic: str, partition: int | None) -> bool:
        """Whether the rule matches a partition; with partition None, whether it may match a part of
        the topic."""
        if self.topic is not None and not fnmatchcase(topic, self.topic):
            return False
        return partition is None or not self.partitions or partition in self.partitions

    @property
    def picks_partitions(self) -> bool:
        """Whether the rule matches only some of the partitions that a request names."""
        return self.topic is not None or bool(self.partitions)


def waits_for_reply(effect: AnyEffect) -> bool:
    """Whether an effect comes with the broker's reply, so that the request must have one."""
    match effect:
        case AnswerError(after=True) | ThrottleClient():
            return True
        case Delay(of=Half.REPLY) | Drop(of=Half.REPLY) | Close(when=CloseTime.AFTER):
            return True
    return False


class Call(Struct):
    """A request at a broker, in the form that rules use.

    `named`: returns the (topic, partition) pairs that it names; called only if a rule needs them.
    """

    api_key: int
    api_version: int
    client_id: str
    broker: int
    is_answered: bool
    named: Callable[[], Iterable[tuple[str, int | None]]]


class ActiveRule:
    """A rule in force, and its counts."""

    def __init__(self, rule: Rule, added_ms: int, rng: Rng) -> None:
        self.rule = rule
        self.added_ms = added_ms
        self.rng = rng
        self.calls = 0
        """The number of requests that the rule matched."""
        self.hits = 0
        """The number of calls to which the rule applied."""

    def fits(self, call: Call, now_ms: int) -> bool:
        """Whether the rule matches a request at this time."""
        rule, age_ms = self.rule, now_ms - self.added_ms
        return (
            (not rule.apis or call.api_key in rule.apis)
            and (rule.versions is None or rule.versions[0] <= call.api_version <= rule.versions[1])
            and (not rule.brokers or call.broker in rule.brokers)
            and age_ms >= rule.from_ms
            and (rule.to_ms is None or age_ms < rule.to_ms)
            and (rule.client == "*" or fnmatchcase(call.client_id, rule.client))
            and (call.is_answered or not waits_for_reply(rule.effect))
            and (not rule.picks_partitions or any(rule.wants(*x) for x in call.named()))
        )

    def applies(self) -> bool:
        """Count one call; returns whether the rule applies to it."""
        rule = self.rule
        self.calls += 1
        if (
            (rule.nth and self.calls != rule.nth)
            or self.calls % rule.every
            or (rule.first and self.calls > rule.first)
            or (rule.times and self.hits >= rule.times)
            or (rule.probability < 1.0 and self.rng.random() >= rule.probability)
        ):
            return False
        self.hits += 1
        return True


class RuleBook:
    """The rules in force, in order."""

    def __init__(self, rng_of: Callable[[str], Rng]) -> None:
        self.entries: dict[str, ActiveRule] = {}
        """The rules in force, by name."""
        self._rng_of = rng_of
        """Makes a random generator for each rule, so that a rule does not depend on the draws of
        another."""
        self._added = 0

    def add(self, rule: Rule, now_ms: int) -> str:
        """Add a rule after the others; returns its name, which is unique."""
        self._added += 1
        name = rule.name or f"rule-{self._added}"
        if name in self.entries:
            raise RuleError(f"there is a rule {name} already")
        self.entries[name] = ActiveRule(rule, now_ms, self._rng_of(name))
        return name

    def decide(self, call: Call, now_ms: int) -> tuple[str, ActiveRule] | None:
        """The rule that applies to a request, and its name; None for none."""
        for name, entry in self.entries.items():
            if entry.fits(call, now_ms) and entry.applies():
                return name, entry
        return None


# ------------------------------------------------------------------------------ rules from keywords


def rule(
    *,
    api: str | int | Iterable[str | int] = (),
    version: int | tuple[int, int] | None = None,
    client: str = "*",
    broker: int | Iterable[int] = (),
    topic: str | None = None,
    partition: int | Iterable[int] = (),
    from_ms: int = 0,
    to_ms: int | None = None,
    nth: int = 0,
    every: int = 1,
    first: int = 0,
    probability: float = 1.0,
    times: int = 0,
    name: str = "",
    effect: AnyEffect | None = None,
    **words: object,
) -> Rule:
    """Make a rule; its effect is either `effect`, or one of these:

    answer="NOT_LEADER_OR_FOLLOWER" (with after=True: once the broker has served the request),
    delay_ms=200 (with of="reply", jitter_ms=50), drop="request" or "reply" (with close=True),
    close="before" or "after", throttle_ms=500, stale=True, reorder_ms=100.

    Raises RuleError with every problem, and suggestions for misspelt names.
    """
    problems: list[str] = []
    chosen = effect if effect is not None and not words else _effect(effect, words, problems)
    apis = tuple(_api(x, problems) for x in ([api] if isinstance(api, str | int) else api))
    partitions = (partition,) if isinstance(partition, int) else tuple(partition)
    _check_counts(nth, every, first, times, probability, problems)
    versions = (version, version) if isinstance(version, int) else version
    if versions is not None and not 0 <= versions[0] <= versions[1]:
        problems.append(f"version={version}: the lower bound, then the upper one")
    if from_ms < 0 or (to_ms is not None and to_ms <= from_ms):
        problems.append(f"from_ms={from_ms}, to_ms={to_ms}: the window is empty or before the rule")
    if isinstance(chosen, AnswerError) and chosen.error not in _ERRORS:
        problems.append(f"answer={chosen.error}: {unknown('error', chosen.error, _ERRORS)}")
    if isinstance(chosen, StaleMetadata):
        apis = apis or METADATA_APIS
        odd = [APIS[x].name for x in apis if x not in METADATA_APIS and x in APIS]
        if odd:
            problems.append(f"stale: {', '.join(odd)} is not answered from the cluster's metadata")
    if problems or chosen is None:
        raise RuleError("\n".join(problems))
    brokers = (broker,) if isinstance(broker, int) else tuple(broker)
    return Rule(
        effect=chosen,
        name=name,
        apis=apis,
        versions=versions,
        client=client,
        brokers=brokers,
        topic=topic,
        partitions=partitions,
        from_ms=from_ms,
        to_ms=to_ms,
        nth=nth,
        every=every,
        first=first,
        probability=probability,
        times=times,
    )


_API_NAMES: Final = {line.name: key for key, line in APIS.items()}
_ERRORS: Final = tuple(name for name in ErrorCode.__members__ if name != "NONE")
_EXTRAS: Final = {
    "answer": ("after",), "delay_ms": ("of", "jitter_ms"), "drop": ("close",), "close": (),
    "throttle_ms": (), "stale": (), "reorder_ms": (),
}  # fmt: skip
"""The keywords that may accompany a keyword that chooses an effect, by that keyword."""
_PARAMETERS: Final = (*_EXTRAS, "after", "of", "jitter_ms")


def _api(word: str | int, problems: list[str]) -> int:
    if isinstance(word, int) and word in APIS:
        return int(word)
    folded = str(word).replace("_", "").lower()
    for name, key in _API_NAMES.items():
        if name.lower() == folded:
            return key
    problems.append(f"api={word}: {unknown('API', str(word), _API_NAMES)}")
    return -1


def _check_counts(
    nth: int, every: int, first: int, times: int, probability: float, problems: list[str]
) -> None:
    for word, count in (("nth", nth), ("first", first), ("times", times), ("every", every - 1)):
        if count < 0:
            problems.append(f"{word}: at least 1")
    if not 0.0 <= probability <= 1.0:
        problems.append(f"probability={probability}: from 0 to 1")


def _effect(effect: object, words: dict[str, object], problems: list[str]) -> AnyEffect | None:
    """The effect that the keywords name."""
    problems += [
        f"{word}: {unknown('parameter', word, _PARAMETERS)}"
        for word in words
        if word not in _PARAMETERS
    ]
    kinds = [word for word in words if word in _EXTRAS and words[word] is not False]
    if "drop" in kinds and "close" in kinds:
        kinds.remove("close")
    if effect is not None or len(kinds) != 1:
        problems.append(f"exactly one effect: effect, or one of {', '.join(_EXTRAS)}")
        return None
    kind = kinds[0]
    problems += [
        f"{word} does not go with {kind}"
        for word in words
        if word != kind and word in _PARAMETERS and word not in _EXTRAS[kind]
    ]
    extras = {word: words[word] for word in _EXTRAS[kind] if word in words}
    return _build_effect(kind, words[kind], extras, problems)


def _build_effect(
    kind: str, value: object, extras: dict[str, object], problems: list[str]
) -> AnyEffect:
    if kind.endswith("_ms") and (not isinstance(value, int) or value < 0):
        problems.append(f"{kind}={value}: a whole number of ms")
    choices: type[StrEnum] | None = {"drop": Half, "close": CloseTime}.get(kind)
    if choices is not None:
        value = _choice(kind, value, choices, problems)
    if "of" in extras:
        extras = {**extras, "of": _choice("of", extras["of"], Half, problems)}
    if kind == "stale":
        return StaleMetadata()
    effects: dict[str, Any] = {
        "answer": AnswerError,
        "delay_ms": Delay,
        "drop": Drop,
        "close": Close,
        "throttle_ms": ThrottleClient,
        "reorder_ms": Reorder,
    }
    effect: AnyEffect = effects[kind](value, **extras)
    assert isinstance(effect, EFFECTS)
    return effect


def _choice(key: str, word: Any, choices: type[StrEnum], problems: list[str]) -> Any:
    """The member of an enumeration that a word names."""
    names = tuple(choices)
    if word in names:
        return choices(word)
    problems.append(f"{key}={word}: {' or '.join(names)}")
    return word
