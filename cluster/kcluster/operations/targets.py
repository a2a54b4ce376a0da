"""Words for nodes: `leader(orders-0)`, `any 2 brokers`, `rack a`, `all but 1`.

Owns: one class per word, with its written form, the nodes that it means now, and the names in it
that must exist.  Never: acts on a node.  Kafka: facts from kafka-topics --describe and
kafka-consumer-groups.

To add a word: a class with `@target` and its `parse` (or PLAIN or CALL), `resolve` and `problems`.
Words are tried in the order of the classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, Self, TypeVar

from msgspec import Struct

from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import nearest, show, unknown
from kcluster.contract import CONTROLLER_ID, Rng
from kcluster.deaths import ProcessState
from kcluster.metadata.placement import coordinator_partition
from kcluster.metadata.records import PartitionRegistration
from kcluster.operations.errors import ClusterError, WrongName
from kcluster.operations.names import Names, PartitionName, partition_name
from kcluster.operations.verbs import Verbs
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

_SEPARATOR: Final = re.compile(r",(?![^(]*\))")
_CALL: Final = re.compile(r"([a-z_ ]+?) ?\( ?(.*?) ?\)")
_ANY: Final = re.compile(r"any(?: ([0-9]+))? (.+)")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_ALL_BUT: Final = "all but "


OF_PROCESSES: Final = ("kill", "stop", "start", "restart", "pause", "resume")
OF_PROGRAMS: Final = ("kill", "start", "pause", "resume")
_TAKE_PROGRAMS: Final = "only kill, start, pause and resume take programs"
"""The verbs for processes, which take brokers and the workload's clients."""


class Target(Struct, frozen=True, kw_only=True):
    """A word for some nodes, by their meaning; a subclass per word."""

    PLAIN: ClassVar[tuple[str, ...]] = ()
    """The word, if it has no argument, and its synonyms."""
    CALL: ClassVar[str] = ""
    """The word, if it is written with an argument: `leader(orders-0)`."""
    PREFIX: ClassVar[str] = ""
    """The word, if its argument may also follow a space: `rack a`."""
    EXAMPLE: ClassVar[str] = ""
    """A target with this word, for messages and the JSON Schema."""

    shown: str
    """The target as it was written."""

    @classmethod
    def parse(cls, text: str) -> Target | None:
        """The target, or None if the text is another word; ValueError if the argument is wrong."""
        if text in cls.PLAIN:
            return cls(shown=text)
        if cls.PREFIX and text.startswith(f"{cls.PREFIX} "):
            return cls.of_argument(text.removeprefix(f"{cls.PREFIX} "), text)
        call = _CALL.fullmatch(text) if cls.CALL else None
        return cls.of_argument(call[2], text) if call and call[1] == cls.CALL else None

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        """The target with the argument of CALL or PREFIX."""
        raise AssertionError(f"{cls.__name__} has no argument")

    @property
    def is_controller(self) -> bool:
        """Whether the target always means the controller."""
        return False

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        """The nodes that the target means now; ClusterError, with the reason, if there are none."""
        raise AssertionError(f"{type(self).__name__} does not resolve")

    def problems(self, names: Names) -> Iterator[str]:
        """The names in the target that a scenario does not have."""
        yield from ()

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        """The problem of the target for a `verb` that takes brokers, but not clients."""
        yield from self.problems(names)

    def __str__(self) -> str:
        return self.shown


Targets = tuple[Target, ...]
Nodes = int | str | Iterable[int | str]
"""Nodes in Python users' words: ids, words, or a collection of both."""

_WORDS: Final[list[type[Target]]] = []

T = TypeVar("T", bound=type[Target])


def target(cls: T) -> T:
    """Register a word."""
    _WORDS.append(cls)
    return cls


# --------------------------------------------------------------------------------- partitions


class _OfPartition(Target, frozen=True, kw_only=True):
    """Brokers by their role for a partition."""

    partition: PartitionName

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(partition=partition_name(argument), shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return self.chosen(finder.verbs.partition(*self.partition))

    def chosen(self, partition: PartitionRegistration) -> tuple[int, ...]:
        """The chosen brokers among the partition's replicas."""
        raise AssertionError(f"{type(self).__name__} chooses none")

    def problems(self, names: Names) -> Iterator[str]:
        yield from filter(None, [names.partition_problem(*self.partition)])


@target
class LeaderTarget(_OfPartition, frozen=True, kw_only=True):
    """The leader of a partition."""

    CALL = "leader"
    EXAMPLE = "leader(orders-0)"

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return (finder.verbs.leader(*self.partition),)


@target
class FollowersTarget(_OfPartition, frozen=True, kw_only=True):
    """The replicas of a partition without its leader."""

    CALL = "followers"
    EXAMPLE = "followers(orders-0)"

    def chosen(self, partition: PartitionRegistration) -> tuple[int, ...]:
        return tuple(x for x in partition.replicas if x != partition.leader)


@target
class ReplicasTarget(_OfPartition, frozen=True, kw_only=True):
    """All replicas of a partition."""

    CALL = "replicas"
    EXAMPLE = "replicas(orders-0)"

    def chosen(self, partition: PartitionRegistration) -> tuple[int, ...]:
        return tuple(partition.replicas)


@target
class IsrTarget(_OfPartition, frozen=True, kw_only=True):
    """The in-sync replicas of a partition."""

    CALL = "isr"
    EXAMPLE = "isr(orders-0)"

    def chosen(self, partition: PartitionRegistration) -> tuple[int, ...]:
        return tuple(partition.isr)


@target
class ElrTarget(_OfPartition, frozen=True, kw_only=True):
    """The eligible leader replicas of a partition (KIP-966)."""

    CALL = "elr"
    EXAMPLE = "elr(orders-0)"

    def chosen(self, partition: PartitionRegistration) -> tuple[int, ...]:
        return tuple(partition.elr)


# -------------------------------------------------------------------------- roles and places


@target
class CoordinatorTarget(Target, frozen=True, kw_only=True):
    """The coordinator of a consumer group."""

    CALL = "coordinator"
    EXAMPLE = "coordinator(group)"
    group: str

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(group=argument.removeprefix("group ").strip(), shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return (finder.verbs.coordinator(self.group),)


@target
class TransactionCoordinatorTarget(Target, frozen=True, kw_only=True):
    """The coordinator of a transactional id."""

    CALL = "transaction_coordinator"
    EXAMPLE = "transaction_coordinator(shop)"
    transactional_id: str

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(transactional_id=argument.strip(), shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        image = finder.verbs.settled.image
        if TRANSACTION_STATE_TOPIC not in image.topics:
            text = f"{self.transactional_id} has no coordinator: no transaction has been used yet"
            raise ClusterError(text)
        count = len(image.topics[TRANSACTION_STATE_TOPIC].partitions)
        number = coordinator_partition(self.transactional_id, count)
        return (finder.verbs.leader(TRANSACTION_STATE_TOPIC, number),)


@target
class ControllerTarget(Target, frozen=True, kw_only=True):
    """The active controller."""

    PLAIN = ("controller", "the controller")
    EXAMPLE = "controller"

    @property
    def is_controller(self) -> bool:
        return True

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return (finder.verbs.settled.controller_id,)


@target
class RackTarget(Target, frozen=True, kw_only=True):
    """The brokers of a rack."""

    CALL = PREFIX = "rack"
    EXAMPLE = "rack a"
    rack: str

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(rack=argument, shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        racks = {spec.id: spec.rack for spec in finder.plan.topology.brokers}
        if self.rack not in racks.values():
            known = sorted({name for name in racks.values() if name}) or ["none"]
            raise ClusterError(f"rack {self.rack}: {unknown('rack', self.rack, known)}")
        return tuple(x for x in finder.brokers() if racks.get(x) == self.rack)

    def problems(self, names: Names) -> Iterator[str]:
        if self.rack not in names.racks:
            yield f"rack {self.rack}: {unknown('rack', self.rack, names.racks)}"


# ------------------------------------------------------------------------------------- clients


@target
class ClientTarget(Target, frozen=True, kw_only=True):
    """A client of the workload by name; live, clients from outside by client.id or a pattern."""

    CALL = PREFIX = "client"
    EXAMPLE = "client billing"
    client: str

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(client=argument, shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        if self.client in finder.clients:
            return (finder.clients[self.client],)
        if not finder.clients or "*" in self.client:
            return finder.verbs.network.client(self.client)
        text = unknown("client", self.client, finder.clients)
        raise ClusterError(f"client {self.client}: {text}")

    def problems(self, names: Names) -> Iterator[str]:
        if not names.may_be_client(self.client):
            yield f"client {self.client}: {unknown('client', self.client, names.clients)}"

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        if verb in OF_PROCESSES:
            yield from self.problems(names)
        else:
            yield f"{self} is a client; {verb} takes brokers"


@target
class ClientsTarget(Target, frozen=True, kw_only=True):
    """All clients."""

    PLAIN = ("clients", "all clients")
    EXAMPLE = "clients"

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return finder.verbs.network.clients

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        if verb not in OF_PROCESSES:
            yield f"{verb} takes brokers, not clients"


@target
class HostTarget(Target, frozen=True, kw_only=True):
    """Clients from outside by IP address, or a pattern."""

    CALL = PREFIX = "host"
    EXAMPLE = "host 10.0.0.*"
    host: str

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(host=argument, shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return finder.verbs.network.host(self.host)

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        yield f"{self} names clients; {verb} takes brokers"


@target
class AppTarget(Target, frozen=True, kw_only=True):
    """A program beside the cluster by its name, for `kill`, `start`, `pause` and `resume`."""

    CALL = PREFIX = "app"
    EXAMPLE = "app billing"
    app: str

    @classmethod
    def of_argument(cls, argument: str, text: str) -> Self:
        return cls(app=argument, shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        raise ClusterError(f"{self} is a program; {_TAKE_PROGRAMS}")

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        if verb not in OF_PROGRAMS:
            yield f"{self} is a program; {verb} takes brokers"

    def problems(self, names: Names) -> Iterator[str]:
        yield f"{self} is a program; {_TAKE_PROGRAMS}"


def split_apps(found: Targets) -> tuple[tuple[str, ...], Targets]:
    """The names of the programs among some targets, and the other targets."""
    apps = tuple(each.app for each in found if isinstance(each, AppTarget))
    return apps, tuple(each for each in found if not isinstance(each, AppTarget))


# -------------------------------------------------------------------------- brokers by number


@target
class DownTarget(Target, frozen=True, kw_only=True):
    """All brokers that are down."""

    PLAIN = ("down", "all down", "down brokers")
    EXAMPLE = "down"

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return tuple(x for x in finder.brokers() if finder.state(x) is ProcessState.DOWN)


@target
class AnyTarget(Target, frozen=True, kw_only=True):
    """One or more of several nodes, drawn at random by the seed; nodes that are up come first."""

    EXAMPLE = "any broker"
    count: int
    among: Targets

    @classmethod
    def parse(cls, text: str) -> Target | None:
        call = _CALL.fullmatch(text)
        if call is not None and call[1] == "any":
            return cls(count=1, among=targets(call[2]), shown=text)
        match = _ANY.fullmatch(text)
        if match is None:
            return None
        among = "all" if match[2] in ("broker", "brokers") else match[2]
        return cls(count=int(match[1] or 1), among=targets(among), shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        among = finder.find(self.among)
        up = tuple(x for x in among if finder.state(x) is ProcessState.UP)
        left = list(up or among)
        if len(left) < self.count:
            raise ClusterError(f"{self}: there are only {len(left)}")
        return tuple(left.pop(finder.rng.randrange(len(left))) for _ in range(self.count))

    def problems(self, names: Names) -> Iterator[str]:
        for inner in self.among:
            yield from inner.problems(names)

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        for inner in self.among:
            yield from inner.problems_as_broker(names, verb)


@target
class AllTarget(Target, frozen=True, kw_only=True):
    """All brokers."""

    PLAIN = ("all", "all brokers", "every broker", "brokers")
    EXAMPLE = "all"

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        return finder.brokers()


ALL: Final[Targets] = (AllTarget(shown="all"),)


@target
class AllButTarget(Target, frozen=True, kw_only=True):
    """All brokers except some; the list of exceptions may have commas, and reaches to the end."""

    EXAMPLE = "all but ..."
    excluded: Targets

    @classmethod
    def parse(cls, text: str) -> Target | None:
        if not text.startswith(_ALL_BUT):
            return None
        return cls(excluded=targets(text.removeprefix(_ALL_BUT)), shown=text)

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        excluded = finder.find(self.excluded)
        return tuple(x for x in finder.brokers() if x not in excluded)

    def problems(self, names: Names) -> Iterator[str]:
        for inner in self.excluded:
            yield from inner.problems(names)


@target
class BrokerTarget(Target, frozen=True, kw_only=True):
    """A broker, or the controller, by its id; for Python users also a client."""

    EXAMPLE = "a broker's id"
    broker_id: int

    @classmethod
    def parse(cls, text: str) -> Target | None:
        number = whole_number(text.removeprefix("broker "))
        return None if number is None else cls(broker_id=number, shown=text)

    @property
    def is_controller(self) -> bool:
        return self.broker_id == CONTROLLER_ID

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        if finder.is_client(self.broker_id):
            return (self.broker_id,)
        return (finder.verbs.node(self.broker_id),)

    def problems(self, names: Names) -> Iterator[str]:
        if self.broker_id not in (*names.brokers, CONTROLLER_ID):
            there = ", ".join(map(str, names.brokers))
            yield f"there is no broker {self.broker_id}; the brokers are {there}"


@target
class NameTarget(Target, frozen=True, kw_only=True):
    """The nodes to which a step has given a name, or a client of the workload."""

    EXAMPLE = "a name given by `as`"
    name: str

    @classmethod
    def parse(cls, text: str) -> Target | None:
        return cls(name=text, shown=text) if _NAME.fullmatch(text) else None

    def resolve(self, finder: Finder) -> tuple[int, ...]:
        if self.name in finder.names:
            return finder.names[self.name]
        if self.name in finder.clients:
            return (finder.clients[self.name],)
        known = (*finder.names, *finder.clients)
        meant = self._broker_meant(finder) or nearest(self.name, (*known, *_PLAIN_WORDS))
        hint = f"did you mean {meant}?" if meant else f"there are {TARGETS_SHOWN}"
        raise WrongName(f"{self.name}: no such node; {hint}")

    def _broker_meant(self, finder: Finder) -> str | None:
        """The broker that was probably meant: `1` for `broker-1`."""
        digits = "".join(filter(str.isdecimal, self.name))
        return digits if digits in map(str, finder.plan.addresses) else None

    def problems(self, names: Names) -> Iterator[str]:
        yield from self._problems((*names.from_steps, *names.clients))

    def problems_as_broker(self, names: Names, verb: str) -> Iterator[str]:
        is_client = self.name in names.clients and self.name not in names.from_steps
        if is_client and verb not in OF_PROCESSES:
            yield f"{self.name} is a client; {verb} takes brokers"
        elif not is_client:
            yield from self._problems(names.from_steps)

    def _problems(self, known: Sequence[str]) -> Iterator[str]:
        if self.name not in known:
            meant = nearest(self.name, known)
            hint = f"write `as: {self.name}` at the step that gives it"
            text = f"did you mean {meant}?" if meant else hint
            yield f"{self.name}: no step gives this name; {text}"


# ------------------------------------------------------------------------------------- reading

TARGET_WORDS: Final = tuple(_WORDS)
"""All words, in the order in which they are tried; for the reference."""
_PLAIN_WORDS: Final = tuple(shown for word in _WORDS for shown in word.PLAIN)
_EXAMPLES: Final = tuple(word.EXAMPLE for word in _WORDS)
TARGETS_SHOWN: Final = f"{', '.join(_EXAMPLES[:-1])}, or {_EXAMPLES[-1]}"


def targets(text: str) -> Targets:
    """The targets in a text: `1, leader(orders-0)` -> two targets."""
    text = " ".join(text.split())
    if text.startswith(_ALL_BUT):
        return (_target(text),)
    return tuple(_target(part.strip()) for part in _SEPARATOR.split(text))


def _target(text: str) -> Target:
    for word in _WORDS:
        found = word.parse(text)
        if found is not None:
            return found
    call = _CALL.fullmatch(text)
    if call is not None:
        calls = [word.CALL for word in _WORDS if word.CALL]
        raise ValueError(unknown("way to name brokers", call[1], calls))
    raise ValueError(f"not known; there are {TARGETS_SHOWN}; ids are written 1 or 1,2")


def targets_in(text: str) -> Targets:
    """The targets that the text names, like `targets`; ClusterError for an unknown word."""
    try:
        return targets(text)
    except ValueError as error:
        raise ClusterError(f"{text}: {error}") from None


def targets_of(nodes: Nodes) -> Targets:
    """The targets that Python users name; ClusterError for an unknown word, and for a value that
    names no nodes."""
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        return (BrokerTarget(broker_id=nodes, shown=str(nodes)),)
    if isinstance(nodes, str):
        found = targets_in(nodes) if nodes.strip() else ()
    elif isinstance(nodes, Iterable) and not isinstance(nodes, bytes):
        found = tuple(target for one in nodes for target in targets_of(one))
    else:
        raise ClusterError(f"{show(nodes)}: not a node's id, words for nodes, or a list of both")
    if not found:
        raise ClusterError("no node is named")
    return found


class Finder:
    """Finds the nodes of one cluster.  `names`: nodes to which steps have given a name; `clients`:
    the workload's clients, their ids in the fabric by name."""

    def __init__(self, plan: Plan, dispatcher: Dispatcher, verbs: Verbs, rng: Rng) -> None:
        self.plan = plan
        self.verbs = verbs
        self.rng = rng
        self.names: dict[str, tuple[int, ...]] = {}
        self.clients: Mapping[str, int] = {}
        self._dispatcher = dispatcher

    def find(self, targets: Targets, may_be_none: bool = False) -> tuple[int, ...]:
        """The nodes that the targets mean, each once, in the order of the targets.  ClusterError if
        there are none, unless `may_be_none`: it is, for example, no problem if no broker can be
        started."""
        found = (node for target in targets for node in target.resolve(self))
        nodes = tuple(dict.fromkeys(found))
        if not nodes and not may_be_none:
            raise ClusterError(f"{', '.join(map(str, targets))}: there is no such broker now")
        return nodes

    def is_client(self, node_id: int) -> bool:
        """Whether this is the id of a client's node."""
        return node_id in self._dispatcher.fabric.clients

    def brokers(self) -> tuple[int, ...]:
        """All brokers, up or not."""
        return tuple(self.plan.addresses)

    def state(self, node_id: int) -> ProcessState:
        """The state of a node's process; a client from outside is always up."""
        if node_id in self.verbs.clients:
            return self.verbs.clients[node_id].state
        process = self._dispatcher.processes.get(node_id)
        return ProcessState.UP if process is None else process.state
