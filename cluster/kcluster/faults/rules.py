"""Rules of protocol faults: matching requests, and the choice of the rule that applies.

Owns: Rule, its checks, the order of rules, their counts.  Never: carries out an effect
(runtime/gate.py does), makes a random generator (each rule gets one).
Kafka: no counterpart; its tests use MockClient.prepareResponse and subclasses of KafkaApis.

    rule(api="Produce", topic="orders", partition=0, nth=3, answer="NOT_LEADER_OR_FOLLOWER")

Rules are tried in the order in which they were added, and only the first rule that applies takes
effect.  A rule counts the requests that it matches (its calls); `nth`, `every` and `first` choose
among these calls, then `probability`; `times` limits the number of times that it applies (its
hits).  A request to which an earlier rule applies is not a call of a later one.

A rule whose effect is on records counts answers instead: those with records for a partition that
it matches.  For duplicates these are the answers of Produce, for the other effects those of Fetch
and ShareFetch.  So `nth=1` is the first fetch that brings something.
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
    EFFECTS_ON_RECORDS,
    AnswerError,
    AnyEffect,
    CapVersion,
    Close,
    CloseTime,
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
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode

METADATA_APIS: Final = (
    ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)  # fmt: skip
"""APIs answered from the image of the cluster, which can be stale."""
FETCH_APIS: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
"""APIs whose answers have records."""
_MAX_SCHEMA_ID: Final = 2**31 - 1


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
    """The nodes to which the requests go; any if empty."""
    sources: tuple[int, ...] = ()
    """The nodes from which the requests come, of a rule between nodes; any if empty."""
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

    def concerns(self, api_key: int, version: int) -> bool:
        """Whether the rule's effect has a part for this API.  A cap of versions also concerns
        ApiVersions, which reports it, and of the API itself only versions above the cap."""
        if isinstance(self.effect, CapVersion):
            if api_key in self.apis:
                return version > self.effect.max_version
            return api_key == ApiKey.API_VERSIONS
        return not self.apis or api_key in self.apis

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
    `is_served`: whether the request has been served, so that only rules on records apply; `named`
    then returns the partitions with records.  `source`: the node from which it comes; -1: a client.
    """

    api_key: int
    api_version: int
    client_id: str
    broker: int
    is_answered: bool
    named: Callable[[], Iterable[tuple[str, int | None]]]
    is_served: bool = False
    source: int = -1


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
            isinstance(rule.effect, EFFECTS_ON_RECORDS) is call.is_served
            and rule.concerns(call.api_key, call.api_version)
            and (rule.versions is None or rule.versions[0] <= call.api_version <= rule.versions[1])
            and (not rule.brokers or call.broker in rule.brokers)
            and (not rule.sources or call.source in rule.sources)
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

    def __init__(self, rng_of: Callable[[str], Rng], word: str = "rule") -> None:
        """`word`: the first part of the names `rule-1`, `rule-2`, …"""
        self.entries: dict[str, ActiveRule] = {}
        """The rules in force, by name."""
        self._rng_of = rng_of
        """Makes a random generator for each rule, so that a rule does not depend on the draws of
        another."""
        self._word = word
        self._added = 0

    def add(self, rule: Rule, now_ms: int) -> str:
        """Add a rule after the others; returns its name, which is unique."""
        self._added += 1
        name = rule.name or f"{self._word}-{self._added}"
        if name in self.entries:
            raise RuleError(f"there is a rule {name} already")
        self.entries[name] = ActiveRule(rule, now_ms, self._rng_of(name))
        return name

    def has(self, effects: tuple[type[AnyEffect], ...]) -> bool:
        """Whether a rule in force has one of these effects."""
        return any(isinstance(entry.rule.effect, effects) for entry in self.entries.values())

    def decide(self, call: Call, now_ms: int) -> tuple[str, ActiveRule] | None:
        """The rule that applies to a request, and its name; None for none."""
        for name, entry in self.entries.items():
            if entry.fits(call, now_ms) and entry.applies():
                return name, entry
        return None

    def caps(self, call: Call, now_ms: int) -> list[Rule]:
        """The rules that cap versions and match a request.  All of them apply to the one answer to
        ApiVersions."""
        return [
            entry.rule
            for entry in self.entries.values()
            if isinstance(entry.rule.effect, CapVersion) and entry.fits(call, now_ms)
        ]


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
    close="before" or "after", throttle_ms=500, stale=True, reorder_ms=100, duplicate=True,
    corrupt="crc" or "value", empty=True, schema_id=999999, max_version=9.

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
    apis = _checked_apis(chosen, apis, problems)
    if isinstance(chosen, CapVersion):
        _check_cap(chosen, apis, problems)
        if versions or topic is not None or partitions or nth or first or times or every > 1:
            problems.append("max_version goes with api, client, broker, from_ms and to_ms only")
        elif probability < 1.0:
            problems.append("max_version and probability: a broker's versions do not vary")
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
    "throttle_ms": (), "stale": (), "reorder_ms": (), "duplicate": (), "corrupt": (), "empty": (),
    "schema_id": (), "max_version": (),
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


def _checked_apis(
    effect: AnyEffect | None, apis: tuple[int, ...], problems: list[str]
) -> tuple[int, ...]:
    """The APIs of a rule with this effect; reports those on which the effect cannot act."""
    possible: tuple[ApiKey, ...]
    match effect:
        case StaleMetadata():
            possible, lack = METADATA_APIS, "is not answered from the cluster's metadata"
            word = "stale"
        case DuplicateRecords():
            possible, lack, word = (ApiKey.PRODUCE,), "appends no records", "duplicate"
        case CorruptRecords() | ReplaceSchemaId():
            possible, lack = FETCH_APIS, "is not answered with records"
            word = "corrupt" if isinstance(effect, CorruptRecords) else "schema_id"
        case EmptyFetch():
            possible, lack, word = (ApiKey.FETCH,), "is not Fetch", "empty"
        case _:
            return apis
    odd = [APIS[x].name for x in apis if x not in possible and x in APIS]
    if odd:
        problems.append(f"{word}: {', '.join(odd)} {lack}")
    return apis or possible


def _check_cap(effect: CapVersion, apis: tuple[int, ...], problems: list[str]) -> None:
    """Report a cap that no version of an API is below, or that is below all of them."""
    if not apis:
        problems.append("max_version needs the API whose versions it caps: api=Fetch")
    for key in apis:
        if key in APIS:
            low, high = APIS[key].all_versions
            if not low <= effect.max_version < high:
                problems.append(
                    f"max_version={effect.max_version}: {APIS[key].name} has versions {low} to"
                    f" {high}, so a cap is {low} to {high - 1}"
                )


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
    if kind in ("schema_id", "max_version"):
        most = _MAX_SCHEMA_ID if kind == "schema_id" else 0x7FFF
        if type(value) is not int or not 0 <= value <= most:
            problems.append(f"{kind}={value}: a whole number from 0 to {most}")
            value = 0
    kinds: dict[str, type[StrEnum]] = {"drop": Half, "close": CloseTime, "corrupt": Corruption}
    choices = kinds.get(kind)
    if choices is not None:
        value = _choice(kind, value, choices, problems)
    if "of" in extras:
        extras = {**extras, "of": _choice("of", extras["of"], Half, problems)}
    switches: dict[str, AnyEffect] = {
        "stale": StaleMetadata(), "duplicate": DuplicateRecords(), "empty": EmptyFetch()
    }  # fmt: skip
    if kind in switches:
        return switches[kind]
    effects: dict[str, Any] = {
        "answer": AnswerError,
        "delay_ms": Delay,
        "drop": Drop,
        "close": Close,
        "throttle_ms": ThrottleClient,
        "reorder_ms": Reorder,
        "corrupt": CorruptRecords,
        "schema_id": ReplaceSchemaId,
        "max_version": CapVersion,
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
