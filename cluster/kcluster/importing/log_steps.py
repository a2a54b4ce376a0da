"""Turns the facts of a cluster's logs into the steps of a scenario that repeats them.

Owns: the cause that explains each fact, and its time.  Never: reads a line (log_lines.py), writes
YAML (scenario_text.py). Kafka: no counterpart.

A log shows the controller's view.  When a session expires, the broker's last heartbeat was
broker.session.timeout.ms ago, and the broker died within a heartbeat interval after it: half an
interval is assumed.  A new registration, when the broker is back, shows that its process died.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.importing.described import DescribedConfig, LeftOut
from kcluster.importing.log_lines import (
    UNKNOWN_AGE_MS,
    AssignmentReplayed,
    ControllerActive,
    IsrBecame,
    IsrShrank,
    LeaderStarted,
    LogFact,
    LoggedRegistration,
    LoggedUnfencing,
    LogPlace,
    ReassignmentAccepted,
    SessionExpired,
    ShutdownStarted,
    TopicGone,
    TopicMade,
)
from kcluster.importing.topology_draft import is_internal, refusal

AFTERMATH_MS: Final = 3_000
"""The time after a broker's return within which a change of its leaders counts as a consequence."""
_REASSIGNED_MS: Final = 60_000
"""The time after a reassignment within which a new leader of the partition counts as part of it."""
_AT_ONCE_MS: Final = 1_000

NodeTimes = Callable[[int], "BrokerTimes"]


class BrokerTimes(Struct, frozen=True):
    """The configs of a broker from which times are computed."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    replica_lag_time_max_ms: int


class LogStep(Struct, frozen=True):
    """One step of a scenario, and the line that led to it."""

    at_ms: int
    """The time on the log's clock."""
    verb: str
    value: object
    """The value of the verb: a number, text, or a mapping."""
    origin: LogPlace
    why: str = ""
    """An explanation that the line itself does not have."""


class KnownTopology(Struct, frozen=True):
    """The content of the scenario's topology; steps name nothing else."""

    brokers: tuple[int, ...]
    preferred: dict[tuple[str, int], int]
    """The first replica of each partition."""
    topics: tuple[str, ...]


class LogSteps(Struct, frozen=True):
    """The steps in order, and the facts without a step."""

    steps: tuple[LogStep, ...]
    left_out: tuple[LeftOut, ...]


class _Down(Struct):
    """A time during which a broker was away."""

    broker: int
    from_ms: int
    to_ms: int | None = None


class _Reassigned(Struct, frozen=True):
    """A reassignment that an administrator requested."""

    at_ms: int
    topic: str
    number: int
    preferred: int


class _Lag(Struct):
    """A follower that has fallen behind."""

    origin: LogPlace
    since_ms: int
    leaders: dict[int, None] = {}
    waiting: dict[tuple[str, int], None] = {}
    """The partitions whose ISR the follower has left."""


def steps_of(
    facts: Sequence[tuple[LogPlace, LogFact]], known: KnownTopology, times: NodeTimes
) -> LogSteps:
    """The steps of a log, oldest first; `facts` in order of time."""
    return _Inferring(facts, known, times).infer()


class _Inferring:
    """Finds the steps of one log."""

    def __init__(
        self, facts: Sequence[tuple[LogPlace, LogFact]], known: KnownTopology, times: NodeTimes
    ) -> None:
        self.facts, self.known, self.times = facts, known, times
        self.steps: list[LogStep] = []
        self.left_out: dict[LeftOut, None] = {}
        self.downs: list[_Down] = []
        self.back_at_ms: dict[int, int] = {}
        """The time of each broker's last return."""
        self.reassigned: list[_Reassigned] = []
        self.internal = 0
        """The number of elections and reassignments of internal topics."""

    def infer(self) -> LogSteps:
        self._brokers()
        self._reassignments()
        self._lagging()
        self._elections()
        self._topics()
        self._controllers()
        if self.internal:
            words = f"not imported, nor {self.internal} of their elections or reassignments"
            self.left_out[LeftOut("internal topics", words)] = None
        steps = sorted(self.steps, key=lambda step: step.at_ms)
        return LogSteps(tuple(steps), tuple(self.left_out))

    def step(self, at_ms: int, verb: str, value: object, origin: LogPlace, why: str = "") -> None:
        self.steps.append(LogStep(at_ms, verb, value, origin, why))

    def leave(self, place: LogPlace, reason: str) -> None:
        self.left_out[LeftOut(f"{place.source}:{place.line}", reason)] = None

    # ------------------------------------------------------------------------------- brokers

    def _brokers(self) -> None:
        """Add the steps for brokers: kills, stops, starts and cuts, from sessions, shutdowns and
        registrations."""
        fenced: dict[int, tuple[LogPlace, int]] = {}
        stopped: set[int] = set()
        for place, fact in self.facts:
            match fact:
                case SessionExpired(broker=broker) if broker not in stopped | fenced.keys():
                    if self._is_known(place, broker):
                        fenced[broker] = (place, self._last_seen_ms(broker, place))
                case ShutdownStarted(broker=broker) if broker not in stopped:
                    if self._is_known(place, broker):
                        stopped.add(broker)
                        self.step(place.at_ms, "stop", broker, place)
                        self.downs.append(_Down(broker, place.at_ms))
                case LoggedRegistration(broker=broker) if self._is_known(place, broker):
                    self._registered(place, fact, fenced.pop(broker, None), broker in stopped)
                    stopped.discard(broker)
                case LoggedUnfencing(broker=broker) if broker in fenced:
                    origin, at_ms = fenced.pop(broker)
                    self._isolated(broker, origin, at_ms, place)
                case LoggedUnfencing(broker=broker):
                    self._is_back(broker, place.at_ms)
        for broker, (origin, at_ms) in fenced.items():
            self.step(
                at_ms, "kill", broker, origin, f"{self._before(at_ms, origin)}, not seen again"
            )
            self.downs.append(_Down(broker, at_ms))

    def _registered(
        self,
        place: LogPlace,
        fact: LoggedRegistration,
        fenced: tuple[LogPlace, int] | None,
        is_stopped: bool,
    ) -> None:
        broker = fact.broker
        if fact.is_first:
            return  # the broker is in the topology from the start
        if fenced is not None:
            origin, at_ms = fenced
            self.step(at_ms, "kill", broker, origin, self._before(at_ms, origin))
            self.downs.append(_Down(broker, at_ms))
        elif not is_stopped:
            at_ms = self._last_seen_ms(broker, place)
            why = f"started again before it was fenced; {self._before(at_ms, place)}"
            self.step(at_ms, "kill", broker, place, why)
            self.downs.append(_Down(broker, at_ms))
        self.step(place.at_ms, "start", broker, place)
        self._is_back(broker, place.at_ms)

    def _isolated(self, broker: int, origin: LogPlace, at_ms: int, back: LogPlace) -> None:
        why = f"{self._before(at_ms, origin)}; the process lived, and pause would look the same"
        self.step(at_ms, "isolate", broker, origin, why)
        self.step(back.at_ms, "heal", broker, back)
        self.downs.append(_Down(broker, at_ms))
        self._is_back(broker, back.at_ms)

    def _is_back(self, broker: int, at_ms: int) -> None:
        self.back_at_ms[broker] = at_ms
        for down in self.downs:
            if down.broker == broker and (down.to_ms is None or down.to_ms + _AT_ONCE_MS > at_ms):
                down.to_ms = at_ms

    def _last_seen_ms(self, broker: int, place: LogPlace) -> int:
        """The time at which a broker went silent, if its session expired at this line."""
        times = self.times(broker)
        silent_ms = place.at_ms - times.session_timeout_ms + times.heartbeat_interval_ms // 2
        return max(silent_ms, self.back_at_ms.get(broker, silent_ms) + 1)

    def _before(self, at_ms: int, place: LogPlace) -> str:
        """The time from a fact to the line that shows it, in words."""
        words = f"about {(place.at_ms - at_ms) / 1000:g} s before this line"
        new = [
            fact.controller
            for active, fact in self.facts
            if isinstance(fact, ControllerActive) and at_ms - AFTERMATH_MS <= active.at_ms
            if active.at_ms < place.at_ms
        ]
        if not new:
            return words
        return f"{words}, or more: controller {new[0]} counts from when it became active"

    def _is_known(self, place: LogPlace, broker: int) -> bool:
        if broker not in self.known.brokers:
            self.leave(place, f"broker {broker} is not in the topology")
        return broker in self.known.brokers

    def _is_down(self, broker: int, at_ms: int, before_ms: int = 0) -> bool:
        """Whether a broker was away at that time, or within `before_ms` before it."""
        return any(
            down.broker == broker
            and down.from_ms - _AT_ONCE_MS <= at_ms
            and (down.to_ms is None or at_ms - before_ms - AFTERMATH_MS <= down.to_ms)
            for down in self.downs
        )

    # -------------------------------------------------------------------------------- topics

    def _topics(self) -> None:
        """Add the steps for topics that were created or deleted after the first failure; earlier
        topics are in the topology."""
        topics = dict.fromkeys(self.known.topics)
        first_ms = min((step.at_ms for step in self.steps), default=None)
        for place, fact in self.facts:
            if not isinstance(fact, TopicMade | TopicGone) or is_internal(fact.name):
                continue
            is_made = isinstance(fact, TopicMade)
            if is_made == (fact.name in topics):
                continue  # the description of the topology is newer
            if first_ms is None or place.at_ms < first_ms:
                if is_made:
                    self.leave(place, f"topic {fact.name} is not in the topology")
            elif isinstance(fact, TopicMade):
                self.step(place.at_ms, "create_topic", self._creation(fact), place)
                topics[fact.name] = None
            else:
                self.step(place.at_ms, "delete_topic", fact.name, place)
                topics.pop(fact.name)

    def _creation(self, topic: TopicMade) -> dict[str, object]:
        """The keys of create_topic."""
        keys: dict[str, object] = {"name": topic.name}
        if topic.partitions > 0:
            keys["partitions"] = topic.partitions
        if topic.replication_factor > 0:
            keys["replication_factor"] = topic.replication_factor
        config: dict[str, str] = {}
        for name, value in topic.config.items():
            reason = refusal(DescribedConfig(name, value), TOPIC_CONFIGS)
            if reason is None:
                config[name] = value
            else:
                self.left_out[LeftOut(f"config {name} of topic {topic.name}", reason)] = None
        return keys | {"config": config} if config else keys

    def _has(self, place: LogPlace, topic: str, number: int) -> bool:
        """Whether a step may name this partition."""
        if is_internal(topic):
            self.internal += 1
        elif (topic, number) not in self.known.preferred:
            self.leave(place, f"{topic}-{number} is not in the topology")
        else:
            return True
        return False

    # --------------------------------------------------------------------------- assignments

    def _reassignments(self) -> None:
        """Add the steps for reassignments, found by the first record that was replayed after their
        acceptance."""
        accepted: dict[str, int] = {}
        for place, fact in self.facts:
            if isinstance(fact, ReassignmentAccepted):
                accepted[place.source] = place.at_ms
            elif isinstance(fact, AssignmentReplayed) and (fact.adding or fact.removing):
                if place.at_ms - accepted.get(place.source, -_AT_ONCE_MS) >= _AT_ONCE_MS:
                    continue  # a controller replayed the record at its start
                target = [one for one in fact.replicas if one not in fact.removing]
                self.reassigned.append(_Reassigned(place.at_ms, fact.topic, fact.number, target[0]))
                if self._has(place, fact.topic, fact.number):
                    keys = {"partition": f"{fact.topic}-{fact.number}", "to": target}
                    self.step(place.at_ms, "reassign", keys, place)

    # ----------------------------------------------------------------------------- followers

    def _lagging(self) -> None:
        """Add the steps for followers that left an ISR while they were up: each was cut off from
        its leaders."""
        open_: dict[int, _Lag] = {}
        for place, fact in self.facts:
            if isinstance(fact, IsrShrank):
                for follower in fact.out:
                    lag_max_ms = self.times(fact.leader).replica_lag_time_max_ms
                    if (
                        self._is_down(follower, place.at_ms, lag_max_ms)
                        or not self._is_known(place, follower)
                        or not self._is_known(place, fact.leader)
                    ):
                        continue
                    age_ms = lag_max_ms if fact.age_ms == UNKNOWN_AGE_MS else fact.age_ms
                    lag = open_.setdefault(follower, _Lag(place, place.at_ms - age_ms))
                    lag.leaders[fact.leader] = None
                    lag.waiting[fact.topic, fact.number] = None
            elif isinstance(fact, IsrBecame):
                for follower in [one for one in fact.isr if one in open_]:
                    lag = open_[follower]
                    lag.waiting.pop((fact.topic, fact.number), None)
                    if not lag.waiting:
                        self._lagged(follower, open_.pop(follower), place)
        for follower, lag in open_.items():
            self._lagged(follower, lag, None)

    def _lagged(self, follower: int, lag: _Lag, back: LogPlace | None) -> None:
        keys = {"nodes": follower, "others": list(lag.leaders)}
        why = f"last caught up {(lag.origin.at_ms - lag.since_ms) / 1000:g} s before this line"
        self.step(lag.since_ms, "isolate", keys, lag.origin, why)
        if back is not None:
            self.step(back.at_ms, "heal", follower, back)

    # ----------------------------------------------------------------------------- elections

    def _elections(self) -> None:
        """Add the steps for new leaders whose predecessors were up: requested or periodic
        elections."""
        for place, fact in self.facts:
            if not isinstance(fact, LeaderStarted) or fact.previous in (None, -1, fact.leader):
                continue
            assert fact.previous is not None
            if self._is_down(fact.previous, place.at_ms) or self._was_reassigned(place, fact):
                continue
            if self._has(place, fact.topic, fact.number):
                name = f"{fact.topic}-{fact.number}"
                if self._preferred(place.at_ms, fact.topic, fact.number) == fact.leader:
                    self.step(place.at_ms, "elect", name, place)
                else:
                    keys = {"partition": name, "to": fact.leader}
                    self.step(place.at_ms, "move", keys, place)

    def _preferred(self, at_ms: int, topic: str, number: int) -> int | None:
        """The preferred leader of a partition at this time."""
        preferred = self.known.preferred.get((topic, number))
        for change in self.reassigned:
            if (change.topic, change.number) == (topic, number) and change.at_ms <= at_ms:
                preferred = change.preferred
        return preferred

    def _was_reassigned(self, place: LogPlace, fact: LeaderStarted) -> bool:
        return any(
            (change.topic, change.number) == (fact.topic, fact.number)
            and 0 <= place.at_ms - change.at_ms <= _REASSIGNED_MS
            for change in self.reassigned
        )

    # --------------------------------------------------------------------------- controllers

    def _controllers(self) -> None:
        """Leave out changes of the active controller, which no step repeats."""
        actives = [
            (place, fact) for place, fact in self.facts if isinstance(fact, ControllerActive)
        ]
        for place, fact in actives[1:]:
            words = f"controller {fact.controller} became active; the simulator has one controller"
            self.leave(place, f"{words}, `restart: controller` is the nearest action")
