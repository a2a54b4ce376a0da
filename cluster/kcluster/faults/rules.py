"""Rules of protocol faults: which requests are meant, and which rule applies to one.

Owns: Rule, its checks, the order of rules, their counts.  Never: carries an effect out
(runtime/gate.py does), draws randomness of its own.
Kafka: no counterpart; its tests do such with MockClient.prepareResponse and KafkaApis subclasses.

    rule(api="Produce", topic="orders", partition=0, nth=3, answer="NOT_LEADER_OR_FOLLOWER")

Rules are tried in the order in which they were added, and the first that applies is the only one
that does.  A rule counts the requests that it fits (its calls); `nth`, `every` and `first` choose
among those, then `probability`; `times` limits how often it applies.  A request that an earlier
rule took is no call of a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.contract import Rng
from kcluster.faults.effects import (
    EFFECTS,
    Answer,
    Close,
    Delay,
    Drop,
    Effect,
    Reorder,
    StaleMetadata,
    Throttle,
    waits_for_reply,
)
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode

METADATA_APIS: Final = (
    ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)  # fmt: skip
"""Answered from the image of the cluster: what can be stale."""


class RuleError(ValueError):
    """A rule that cannot be; str() has one line for each problem."""


class Rule(Struct, frozen=True, kw_only=True):
    """Which requests, and what happens to them.  Make it with `rule`, which checks it."""

    effect: Effect
    name: str = ""
    """Given by who adds it, or `rule-1`, `rule-2`, …"""
    apis: tuple[int, ...] = ()
    """API keys; all if empty."""
    versions: Versions | None = None
    """Inclusive bounds of the API version."""
    client: str = "*"
    """A pattern of client ids: * and ? as in file names."""
    brokers: tuple[int, ...] = ()
    topic: str | None = None
    """A pattern of topics that the request names."""
    partitions: tuple[int, ...] = ()
    from_ms: int = 0
    """Since the rule was added."""
    to_ms: int | None = None
    """Up to here, and no longer."""
    nth: int = 0
    """Only this call, counted from 1; 0: any."""
    every: int = 1
    """Each call whose number this divides."""
    first: int = 0
    """Only so many calls; 0: any number."""
    probability: float = 1.0
    times: int = 0
    """Apply so often at most; 0: without limit."""

    def wants(self, topic: str, partition: int | None) -> bool:
        """Whether a partition is meant; `partition` None: whether the topic may be."""
        if self.topic is not None and not fnmatchcase(topic, self.topic):
            return False
        return partition is None or not self.partitions or partition in self.partitions

    @property
    def picks_partitions(self) -> bool:
        """Whether it means only some of what a request names."""
        return self.topic is not None or bool(self.partitions)


class Call(Struct):
    """A request at a broker, as far as rules look at it.

    `named`: gives the (topic, partition) that it is about, if a rule wants to know."""

    api_key: int
    api_version: int
    client_id: str
    broker: int
    is_answered: bool
    named: Callable[[], Iterable[tuple[str, int | None]]]


class Entry:
    """A rule in force, and its counts."""

    def __init__(self, rule: Rule, added_ms: int, rng: Rng) -> None:
        self.rule = rule
        self.added_ms = added_ms
        self.rng = rng
        self.calls = 0
        """Requests that fitted."""
        self.hits = 0
        """Those to which it applied."""

    def fits(self, call: Call, now_ms: int) -> bool:
        """Whether the rule is about such a request, now."""
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
        """Count one call, and say whether the rule applies to it."""
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
        self.entries: dict[str, Entry] = {}
        """By name."""
        self._rng_of = rng_of
        """A generator for each rule, so that none depends on what another draws."""
        self._added = 0

    def add(self, rule: Rule, now_ms: int) -> str:
        """Put a rule behind the others; returns its name, which no other has."""
        self._added += 1
        name = rule.name or f"rule-{self._added}"
        if name in self.entries:
            raise RuleError(f"there is a rule {name} already")
        self.entries[name] = Entry(rule, now_ms, self._rng_of(name))
        return name

    def decide(self, call: Call, now_ms: int) -> tuple[str, Entry] | None:
        """The rule that applies to a request, and its name; None for none."""
        for name, entry in self.entries.items():
            if entry.fits(call, now_ms) and entry.applies():
                return name, entry
        return None


# ------------------------------------------------------------------------- rules out of words


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
    effect: Effect | None = None,
    **words: Any,
) -> Rule:
    """A Rule; what happens is either `effect`, or one of these:

    answer="NOT_LEADER_OR_FOLLOWER" (with after=True: once the broker did as it was asked),
    delay_ms=200 (with of="reply", jitter_ms=50), drop="request" or "reply" (with close=True),
    close="before" or "after", throttle_ms=500, stale=True, reorder_ms=100.

    Raises RuleError, with all that is wrong and the names that were probably meant.
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
    if isinstance(chosen, Answer) and chosen.error not in _ERRORS:
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
        effect=chosen, name=name, apis=apis, versions=versions, client=client, brokers=brokers,
        topic=topic, partitions=partitions, from_ms=from_ms, to_ms=to_ms, nth=nth, every=every,
        first=first, probability=probability, times=times,
    )  # fmt: skip


_API_NAMES: Final = {line.name: key for key, line in APIS.items()}
_ERRORS: Final = tuple(name for name in ErrorCode.__members__ if name != "NONE")
_OF: Final = ("request", "reply")
_WHEN: Final = ("before", "after")
_EXTRAS: Final = {
    "answer": ("after",), "delay_ms": ("of", "jitter_ms"), "drop": ("close",), "close": (),
    "throttle_ms": (), "stale": (), "reorder_ms": (),
}  # fmt: skip
"""The word that chooses an effect -> those that may come with it."""
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


def _effect(effect: Any, words: dict[str, Any], problems: list[str]) -> Effect | None:
    """The effect that keywords stand for."""
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
    given = {word: words[word] for word in _EXTRAS[kind] if word in words}
    return _made(kind, words[kind], given, problems)


def _made(kind: str, value: Any, given: dict[str, Any], problems: list[str]) -> Effect:
    if kind.endswith("_ms") and (not isinstance(value, int) or value < 0):
        problems.append(f"{kind}={value}: a whole number of ms")
    allowed = {"drop": _OF, "close": _WHEN}.get(kind)
    if allowed and value not in allowed:
        problems.append(f"{kind}={value}: {' or '.join(allowed)}")
    if given.get("of", "reply") not in _OF:
        problems.append(f"of={given['of']}: {' or '.join(_OF)}")
    if kind == "stale":
        return StaleMetadata()
    makers: dict[str, Any] = {
        "answer": Answer, "delay_ms": Delay, "drop": Drop, "close": Close, "throttle_ms": Throttle,
        "reorder_ms": Reorder,
    }  # fmt: skip
    made: Effect = makers[kind](value, **given)
    assert isinstance(made, EFFECTS)
    return made
