"""What each verb of the control socket does to the running cluster.

Owns: reading what a person typed (`1`, `orders-0`) against the cluster as it is, the words when it
does not fit, and the result as JSON values with the lines to print.  Never: talks over the socket
(control_server.py does), decides anything about the cluster.
Kafka: kafka-leader-election.sh, kafka-topics.sh --describe, kill.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from kcluster.cli.control import ControlError
from kcluster.cli.control_server import Verb
from kcluster.contract import Note
from kcluster.drivers.live import ClusterError
from kcluster.events.brokers import BrokerRegistered
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.events.partitions import BecameFollower, BecameLeader
from kcluster.events.render import fold, folded_line, note_line, note_values, plain
from kcluster.operations.status import BrokerStatus, ClusterStatus, NoteEntry, PartitionStatus

ECHOES: Final = (BecameLeader, BecameFollower, BrokerRegistered, LinkCut, LinkHealed)
"""Consequences on each broker of what another line tells already; `events` shows them too."""

WAYS: Final = ("kill", "clean", "power", "wipe", "pause")


class Handle(Protocol):
    """The part of `kcluster.handle.cluster.Cluster` that verbs use; each returns when settled."""

    def status(self) -> ClusterStatus: ...
    def events(self, since: int = 0) -> Sequence[NoteEntry]: ...
    def subscribe(self, callback: Callable[[NoteEntry], None]) -> Any: ...
    def kill(self, broker_id: int, how: Any = "kill") -> Any: ...
    def pause(self, broker_id: int) -> Any: ...
    def resume(self, broker_id: int) -> Any: ...
    def start(self, broker_id: int, *, kafka_version: str | None = None) -> Any: ...
    def elect(self, topic: str, partition: int) -> Any: ...
    @property
    def whole(self) -> Any: ...
    def move(self, topic: str, partition: int, to: int) -> Any: ...


class Verbs:
    """The verbs of one cluster.  `stop` is called for `down`; it must return at once."""

    def __init__(self, cluster: Handle, name: str, bootstrap: str, stop: Callable[[], None]):
        self._cluster, self._name, self._bootstrap, self._stop = cluster, name, bootstrap, stop
        so_far = cluster.events()
        self.origin_ms = so_far[0].note.at_ms if so_far else cluster.status().at_ms
        """Times in lines count from here: the cluster's first event."""
        self._last_sequence = so_far[-1].sequence if so_far else 0
        cluster.subscribe(self._remember)

    def table(self) -> dict[str, Verb]:
        """Verb -> function, for ControlServer."""
        verbs: dict[str, Verb] = {
            "status": self._status,
            "kill": self._kill,
            "start": self._start,
            "resume": self._resume,
            "elect": self._elect,
            "fault": self._fault,
            "events": self._events,
            "down": self._down,
        }
        return {verb: _refusals_in_words(function) for verb, function in verbs.items()}

    def event_values(self, note: Note) -> dict[str, Any]:
        """A note for JSON, with the line that shows it."""
        return {**note_values(note), "line": note_line(note, self.origin_ms)}

    def _remember(self, entry: NoteEntry) -> None:
        self._last_sequence = entry.sequence

    # ------------------------------------------------------------------------------- reading

    def _status(self, request: Mapping[str, Any]) -> Any:
        status = self._cluster.status()
        values = plain(status)
        for partition, found in zip(values["partitions"], status.partitions, strict=True):
            partition["lag"] = {str(broker): lag for broker, lag in sorted(found.lag.items())}
        return {"name": self._name, "bootstrap": self._bootstrap, **values}

    def _events(self, request: Mapping[str, Any]) -> Any:
        return [self.event_values(entry.note) for entry in self._cluster.events()]

    # ------------------------------------------------------------------------------ changing

    def _kill(self, request: Mapping[str, Any]) -> Any:
        broker = find_broker(self._cluster.status(), request.get("broker"))
        how = request.get("how", "kill")
        if how not in WAYS:
            raise ControlError(f"{how!r} is no way to go; there are {', '.join(WAYS)}", 2)
        if broker.state == "down":
            raise ControlError(f"broker {broker.id} is down already; {_start(broker)}")
        if how == "pause":
            if broker.state == "paused":
                raise ControlError(f"broker {broker.id} is paused already; {_resume(broker)}")
            return self._done(lambda: self._cluster.pause(broker.id), broker.id)
        if how == "clean" and broker.state == "paused":
            raise ControlError(
                f"broker {broker.id} is paused and cannot shut down cleanly; {_resume(broker)}, "
                f"or kill it: kcluster kill {broker.id}"
            )
        return self._done(lambda: self._cluster.kill(broker.id, how), broker.id)

    def _start(self, request: Mapping[str, Any]) -> Any:
        broker = find_broker(self._cluster.status(), request.get("broker"))
        if broker.state == "paused":
            raise ControlError(f"broker {broker.id} is paused, not down; {_resume(broker)}")
        if broker.state != "down":
            raise ControlError(f"broker {broker.id} is up already")
        version = request.get("kafka_version")
        version = None if version is None else str(version)
        result = self._done(
            lambda: self._cluster.start(broker.id, kafka_version=version), broker.id
        )
        if version is not None:
            result["lines"][-1] += f", as Kafka {version}"
        return result

    def _resume(self, request: Mapping[str, Any]) -> Any:
        broker = find_broker(self._cluster.status(), request.get("broker"))
        if broker.state == "down":
            raise ControlError(
                f"broker {broker.id} is down, not paused; start it: {_start(broker)}"
            )
        if broker.state != "paused":
            raise ControlError(
                f"broker {broker.id} is not paused; pause it: kcluster kill {broker.id} --how pause"
            )
        return self._done(lambda: self._cluster.resume(broker.id), broker.id)

    def _elect(self, request: Mapping[str, Any]) -> Any:
        status = self._cluster.status()
        found = find_partition(status, request.get("partition"))
        name = f"{found.topic}-{found.partition}"
        to = request.get("to")
        target = found.replicas[0] if to is None else find_broker(status, to).id
        if target not in found.replicas:
            replicas = ", ".join(map(str, found.replicas))
            raise ControlError(f"broker {target} has no replica of {name}; {replicas} have", 2)
        if target == found.leader:
            which = "the preferred leader, " if to is None else ""
            return {"changed": False, "lines": [f"{name}: {which}broker {target}, leads already"]}
        if target not in found.isr:
            isr = ", ".join(map(str, found.isr)) or "nobody"
            raise ControlError(
                f"broker {target} is not in the ISR of {name} ({isr}), so it cannot be elected"
            )
        if to is None:
            return self._done(lambda: self._cluster.elect(found.topic, found.partition))
        return self._done(lambda: self._cluster.move(found.topic, found.partition, target))

    def _fault(self, request: Mapping[str, Any]) -> Any:
        """Any deed of scenario files; what follows at once is told."""
        from kcluster.scenario.language.loader import ScenarioError, parse_deed
        from kcluster.scenario.language.words import moment
        from kcluster.scenario.play.deeds import perform

        try:
            step = parse_deed(str(request.get("deed", "")))
            if "for" in request:
                options = replace(step.options, for_=moment(str(request["for"])))
                step = replace(step, options=options)
        except ScenarioError as error:
            raise ControlError("; ".join(problem.text for problem in error.problems), 2) from None
        except ValueError as error:
            raise ControlError(f"--for {request['for']}: {error}", 2) from None
        result: dict[str, Any] = self._done(lambda: perform(self._cluster.whole, step))
        return result

    def _down(self, request: Mapping[str, Any]) -> Any:
        self._stop()
        return {"name": self._name, "stopping": True}

    def _done(self, act: Callable[[], Any], broker_id: int | None = None) -> Any:
        """Do it, and tell what came of it: the events meanwhile, and the broker's state."""
        since = self._last_sequence
        act()
        notes = [entry.note for entry in self._cluster.events(since)]
        shown = [note for note in notes if not isinstance(note.event, ECHOES)]
        result: dict[str, Any] = {
            "changed": True,
            "events": [note_values(note) for note in notes],
            "lines": [folded_line(entry, self.origin_ms) for entry in fold(shown)],
        }
        if broker_id is not None:
            states = {broker.id: broker.state for broker in self._cluster.status().brokers}
            result["broker"] = {"id": broker_id, "state": states[broker_id]}
            result["lines"].append(f"broker {broker_id} is {states[broker_id]}")
        return result


# ------------------------------------------------------------------------- what was typed


def find_broker(status: ClusterStatus, typed: Any) -> BrokerStatus:
    """The broker that somebody means by `typed`; ControlError names the right word otherwise."""
    text = str(typed).strip()
    by_id = {str(broker.id): broker for broker in status.brokers}
    if text in by_id:
        return by_id[text]
    digits = "".join(char for char in text if char.isascii() and char.isdecimal()).lstrip("0")
    by_address = {f"{broker.host}:{broker.port}": broker for broker in status.brokers} | {
        str(broker.port): broker for broker in status.brokers
    }
    known = ", ".join(by_id)
    if text in by_address:
        raise ControlError(f"{text} is an address; its broker is {by_address[text].id}", 2)
    if digits in by_id and digits != text:
        raise ControlError(f"{text!r} is no broker id; did you mean {digits}?", 2)
    raise ControlError(f"there is no broker {text}; there are {known}", 2)


def find_partition(status: ClusterStatus, typed: Any) -> PartitionStatus:
    """The partition that somebody means by `orders-0`; ControlError otherwise."""
    text = str(typed).strip()
    partitions: dict[str, list[PartitionStatus]] = {}
    for found in status.partitions:
        partitions.setdefault(found.topic, []).append(found)
    topic, dash, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal()
    if dash and is_number and topic in partitions:
        of_topic = partitions[topic]
        for found in of_topic:
            if found.partition == int(number):
                return found
        raise ControlError(f"{topic} has no partition {int(number)}; {_range(of_topic)}", 2)
    if text in partitions:
        raise ControlError(f"{text} is a topic: say which partition; {_range(partitions[text])}", 2)
    for separator in (":", "/", ",", "["):
        head, found_separator, tail = text.partition(separator)
        tail = tail.rstrip("]")
        if found_separator and head in partitions and tail.isdecimal():
            raise ControlError(f"partitions are written with a dash: {head}-{tail}", 2)
    word = topic if dash and is_number else text
    raise ControlError(_unknown_topic(word, number if is_number else "0", partitions), 2)


def _unknown_topic(
    word: str, number: str, partitions: Mapping[str, Sequence[PartitionStatus]]
) -> str:
    from kcluster.config.files.problems import nearest

    meant = nearest(word, partitions)
    if meant is not None:
        return f"there is no topic {word}; did you mean {meant}-{number}?"
    names = [name for name in sorted(partitions) if not name.startswith("__")]
    if not names:
        return f"there is no topic {word}; there are none yet"
    more = f", … {len(names) - 12} more" if len(names) > 12 else ""
    return f"there is no topic {word}; there are {', '.join(names[:12])}{more}"


def _range(of_topic: Sequence[PartitionStatus]) -> str:
    first = of_topic[0]
    if len(of_topic) == 1:
        return f"there is {first.topic}-{first.partition}"
    last = of_topic[-1]
    return f"there are {first.topic}-{first.partition} to {last.topic}-{last.partition}"


def _start(broker: BrokerStatus) -> str:
    return f"start it: kcluster start {broker.id}"


def _resume(broker: BrokerStatus) -> str:
    return f"let it run on: kcluster resume {broker.id}"


def _refusals_in_words(verb: Verb) -> Verb:
    def asked(request: Mapping[str, Any]) -> Any:
        try:
            return verb(request)
        except ClusterError as error:
            raise ControlError(str(error)) from error

    return asked
