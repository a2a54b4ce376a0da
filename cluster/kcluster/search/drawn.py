"""The clients that a seed draws for a topology: each workload is about one kind of them.

Owns: these workloads, as the JSON of scenario files.  Never: reads a file, draws faults.
Kafka: no counterpart.

No workload loses or doubles a record by its own settings: producers wait for all in-sync replicas
with one request under way, or write in transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from msgspec import Struct

from kcluster.config.topology.model import Topology
from kcluster.json_types import JsonObject
from kcluster.protocol.names import has_internal_prefix
from kcluster.search.served import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    served_kinds,
    session_bounds_ms,
)

COMPACTED_KEYS: Final = 20
_PATIENT: Final = {"request.timeout.ms": 3_000, "delivery.timeout.ms": 60_000}
SHORT_SESSION_MS: Final = 3_000
"""The session of a classic member, as far as brokers let it have that."""
_QUICK: Final = {"request.timeout.ms": 1_500, "max.poll.interval.ms": 4_000}
"""Members give up a request, and their places, soon."""
_COOPERATIVE: Final = "cooperative-sticky"
"""Without static members: one that is replaced in the middle of a rebalance does not know what its
predecessor was to give up, and leaves that without a member, in Kafka by its code, too."""
_ASSIGNORS: Final = ("range", "roundrobin", "sticky", _COOPERATIVE)
_COMPRESSIONS: Final = ("none", "none", "gzip", "lz4", "snappy", "zstd")


class Clients(Struct, frozen=True):
    """A topology and the clients that may be drawn for it.  `session_ms`: the session of a classic
    member; `kinds`: the kinds of groups that the brokers serve."""

    topology: Topology
    session_ms: int
    kinds: tuple[str, ...]
    rng: Random

    @classmethod
    def of(cls, topology: Topology, rng: Random) -> Clients:
        """The clients that fit a topology."""
        least_ms, most_ms = session_bounds_ms(topology)
        session_ms = min(max(SHORT_SESSION_MS, least_ms), most_ms)
        return cls(topology, session_ms, tuple(served_kinds(topology)), rng)

    @property
    def topics(self) -> list[str]:
        """The names of the topics that are the users' own."""
        return [name for name in self.topology.topics if not has_internal_prefix(name)]

    @property
    def sinks(self) -> list[str]:
        """The topics for the outputs of processors, which have no keys."""
        return [name for name in self.topics if not self.is_compacted(name)]

    @property
    def sessions(self) -> JsonObject:
        """The configs of a classic member for its session."""
        heartbeat_ms = self.session_ms // 4
        return {"session.timeout.ms": self.session_ms, "heartbeat.interval.ms": heartbeat_ms}

    def protocol(self, *wanted: str) -> str:
        """One of these group protocols, as far as the brokers serve it; else the classic one."""
        served = [kind for kind in wanted if kind in self.kinds]
        return self.rng.choice(served or [CLASSIC])

    def is_compacted(self, topic: str) -> bool:
        """Whether the records of a topic need keys."""
        own = self.topology.topics[topic].config.get("cleanup.policy")
        return "compact" in str(own or self.topology.config.get("log.cleanup.policy"))

    def percent(self, *shares: int) -> str:
        """One of these shares."""
        return f"{self.rng.choice(shares)}%"

    # ------------------------------------------------------------------------------- producers

    def producer(self, topic: str, name: str, rate: int) -> JsonObject:
        """A producer that waits for all in-sync replicas, one batch after the other."""
        keys = COMPACTED_KEYS if self.is_compacted(topic) else 0
        base = {"topic": topic, "name": name, "rate": f"{rate}/s", "keys": keys, "in_flight": 1}
        return {**base, "config": _PATIENT}

    def producers(self, *rates: int) -> list[JsonObject]:
        """A producer for each topic, with one of these rates."""
        return [
            self.producer(topic, f"to-{topic}", self.rng.choice(rates)) for topic in self.topics
        ]

    def varied(self, topic: str, name: str) -> JsonObject:
        """A producer with other batches, keys and compression; some write in transactions."""
        rng = self.rng
        drawn = self.producer(topic, name, rng.choice((5, 10, 20)))
        drawn["config"] = {**_PATIENT, "compression.type": rng.choice(_COMPRESSIONS)}
        if drawn["keys"] or rng.random() < 0.5:
            drawn["keys"] = rng.choice((3, 50))
            drawn["tombstones"] = self.percent(0, 20)
        if rng.random() < 0.5:
            drawn["linger"] = f"{rng.choice((5, 50, 200))}ms"
        return self.in_transactions(drawn) if rng.random() < 0.4 else drawn

    def in_transactions(self, producer: JsonObject, **more: str) -> JsonObject:
        """A producer that writes in transactions, with several requests under way."""
        rng = self.rng
        transactions = {
            "every": rng.choice((1, 4, 20)),
            "abort": self.percent(0, 30),
            "version": rng.choice(("1", "2", "2")),
            "timeout": f"{rng.choice((2, 5))}s",
            **more,
        }
        plain = {key: value for key, value in producer.items() if key != "in_flight"}
        return {**plain, "transactions": transactions}

    # ------------------------------------------------------------------------------- consumers

    def member(self, topics: str | list[str], name: str, group: str, protocol: str) -> JsonObject:
        """A member of a group of this protocol."""
        config: JsonObject = {**_QUICK}
        if protocol == CLASSIC:
            config |= self.sessions
        drawn = {"topics": topics, "name": name, "group": group, "config": config}
        return drawn if protocol == CLASSIC else {**drawn, "group_protocol": protocol}

    def visits(self) -> JsonObject:
        """The times at which a guest comes and leaves."""
        return {"start": f"{self.rng.choice((1, 2))}s", "stop": f"{self.rng.choice((4, 5))}s"}

    def group(self, topic: str, name: str, protocol: str) -> Iterator[JsonObject]:
        """A group with a guest, and with two members of one group.instance.id, one after the
        other."""
        rng, of_all, of_twins = self.rng, {}, {"group.instance.id": name}
        if protocol == CLASSIC:
            assignor = rng.choice(_ASSIGNORS)
            of_all = {"partition.assignment.strategy": assignor}
            of_twins = {} if assignor == _COOPERATIVE else of_twins
        several, commit = rng.choice((1, 2)), rng.choice(("auto", "after_poll"))
        visits, heir = self.visits(), {"start": f"{rng.choice((2, 6))}s"}
        for role, own, keys in (
            ("stays", {}, {"members": several, "commit": commit}),
            ("guest", {}, {**visits, "commit": "after_poll"}),
            ("first", of_twins, {"stop": "5s"}),
            ("second", of_twins, heir),
        ):
            member = self.member(topic, f"{name}-{role}", name, protocol)
            member["config"] |= {**of_all, **own}
            yield {**member, **keys}

    def reader(self, topics: list[str]) -> JsonObject:
        """A group of one that sees committed records alone."""
        protocol = self.protocol(CLASSIC, CONSUMER)
        return {**self.member(topics, "reader", "readers", protocol), "isolation": "read_committed"}

    def sharers(self, topic: str, name: str) -> Iterator[JsonObject]:
        """A share group with a guest, and with a member that takes few records at a time."""
        base = {"topics": topic, "group": name, "share": True}
        wait = {"fetch.max.wait.ms": 100}
        several = self.rng.choice((1, 2, 3))
        yield {
            **base,
            "name": f"{name}-stays",
            "members": several,
            "release": self.percent(0, 20),
            "config": wait,
        }
        yield {**base, "name": f"{name}-guest", **self.visits(), "config": wait}
        slow = {**wait, "max.poll.records": self.rng.choice((1, 10))}
        yield {**base, "name": f"{name}-slow", "start": "3s", "release": "5%", "config": slow}

    def processor(self, source: str, sink: str, name: str, protocol: str) -> JsonObject:
        """A processor between two topics, in a group of its own.  Its transactions may take a
        minute, as Kafka's default is: one that times out ends it for good."""
        sessions = self.sessions if protocol == CLASSIC else {}
        return {
            "topic": source,
            "to": sink,
            "name": name,
            "group": name,
            "group_protocol": protocol,
            "members": self.rng.choice((1, 2)),
            "abort": self.percent(0, 20),
            "version": self.rng.choice(("1", "2", "2")) if protocol == CLASSIC else "2",
            "consumer_config": sessions,
        }

    def pair(self) -> tuple[str, str] | None:
        """Two topics, the second one for outputs; None if there are none."""
        sinks = self.sinks
        if len(self.topics) < 2 or not sinks:
            return None
        sink = self.rng.choice(sinks)
        return self.rng.choice([name for name in self.topics if name != sink]), sink


# ------------------------------------------------------------------------------------ workloads


def plain(clients: Clients) -> JsonObject:
    """A producer with one batch in flight and a group of two readers for each topic."""
    readers = [
        {**clients.member(topic, f"of-{topic}", topic, CLASSIC), "members": 2}
        for topic in clients.topics
    ]
    return {"producers": clients.producers(20), "consumers": readers}


def transactions(clients: Clients) -> JsonObject:
    """Transactional producers for each topic.  In one topic, a second one takes the first one's
    transactional id."""
    taken = clients.rng.choice(clients.topics)
    producers = []
    for topic in clients.topics:
        first = clients.producer(topic, f"to-{topic}", clients.rng.choice((10, 20)))
        if topic == taken:
            second = {**clients.producer(topic, "successor", 10), "start": "4s"}
            producers += [clients.in_transactions(each, id="till") for each in (first, second)]
        else:
            producers.append(clients.in_transactions(first))
    small = {"max.partition.fetch.bytes": 300, "fetch.max.bytes": 600}
    late = {"partitions": f"{taken}-0", "name": "late", "start": "3s", "config": small}
    readers = [clients.reader(clients.topics), {**late, "isolation": "read_committed"}]
    return {"producers": producers, "consumers": readers}


def classic_group(clients: Clients) -> JsonObject:
    """A classic group of one topic."""
    return _group(clients, CLASSIC)


def consumer_group(clients: Clients) -> JsonObject:
    """A group of the protocol of KIP-848."""
    return _group(clients, clients.protocol(CONSUMER))


def _group(clients: Clients, protocol: str) -> JsonObject:
    topic = clients.rng.choice(clients.topics)
    watcher = clients.member(topic, "watcher", "watchers", protocol)
    return {
        "producers": clients.producers(5, 10),
        "consumers": [*clients.group(topic, "members", protocol), {**watcher, "commit": "never"}],
    }


def share_group(clients: Clients) -> JsonObject:
    """A share group of one topic, whose producer may write in transactions."""
    if SHARE not in clients.kinds:
        return mixed(clients)
    topic = clients.rng.choice(clients.topics)
    producers = [clients.varied(each, f"to-{each}") for each in clients.topics]
    return {"producers": producers, "consumers": [*clients.sharers(topic, "sharers")]}


def processors(clients: Clients) -> JsonObject:
    """Processors of two groups between two topics; transactions where there are no two."""
    pair = clients.pair()
    if pair is None:
        return transactions(clients)
    pairs = (("old", CLASSIC), ("new", clients.protocol(CONSUMER)))
    copiers = [clients.processor(*pair, f"{age}-copier", protocol) for age, protocol in pairs]
    return {
        "producers": clients.producers(10),
        "processors": copiers,
        "consumers": [clients.reader(clients.topics)],
    }


def streams_group(clients: Clients) -> JsonObject:
    """Clients of a Kafka Streams application: processors between two topics, if there are two."""
    pair, protocol = clients.pair(), clients.protocol(STREAMS)
    late = {"start": f"{clients.rng.choice((2, 3))}s"}
    if pair is None:
        topic = clients.topics[0]
        first, guest = (
            clients.member(topic, name, "engines", protocol) for name in ("engine", "guest")
        )
        consumers = [{**first, "members": 2}, {**guest, **late}]
        return {"producers": clients.producers(10), "consumers": consumers}
    engines = {**clients.processor(*pair, "engine", protocol), "group": "engines", "members": 2}
    guest = {**clients.processor(*pair, "guest", protocol), "group": "engines", "members": 1}
    return {
        "producers": clients.producers(10),
        "processors": [engines, {**guest, **late}],
        "consumers": [clients.reader(clients.topics)],
    }


def mixed(clients: Clients) -> JsonObject:
    """Producers and readers of several kinds for each topic."""
    rng = clients.rng
    producers, readers = [], []
    for topic in clients.topics:
        producers += [
            clients.varied(topic, f"to-{topic}-{number}")
            for number in range(1, rng.choice((1, 2)) + 1)
        ]
        if SHARE in clients.kinds and rng.random() < 0.3:
            readers += [*clients.sharers(topic, f"of-{topic}")]
        else:
            protocol = clients.protocol(CLASSIC, CONSUMER)
            readers += [*clients.group(topic, f"of-{topic}", protocol)]
    return {"producers": producers, "consumers": readers}


DRAWN: Final[Sequence[Callable[[Clients], JsonObject]]] = (
    *(mixed, transactions, classic_group, consumer_group),
    *(share_group, processors, streams_group),
)
"""The workloads besides the plain one."""
