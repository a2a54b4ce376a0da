"""The placement of new partitions' replicas: striped over racks, then over the brokers of a rack.

Owns: the choice of brokers for new partitions, and the validity of a manual assignment.
Never: chooses leaders (elections.py), knows the cluster (usable brokers come in as values).
Kafka: StripedReplicaPlacer, ReplicationControlManager.validateManualPartitionAssignment.

The stripes, with racks A, B, C of three brokers each and all random offsets zero:

    partition 0: A0 B0 C0      Each partition starts one rack further, and within each rack one
    partition 1: B1 C1 A1      broker further.  Racks, and brokers within a rack, start at random
    partition 2: C2 A2 B2      offsets; when every unfenced broker has led once, all are shuffled.

Unfenced brokers of a rack come before its fenced ones; the first replica is always unfenced, as it
will lead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from kcluster.contract import Rng
from kcluster.controller.outcome import ApiError
from kcluster.protocol.errors import ErrorCode

_Item = TypeVar("_Item")

Replicas = tuple[int, ...]
"""Broker ids, the preferred leader first."""


class UsableBroker(Struct, frozen=True, gc=False):
    """A registered broker that is not in controlled shutdown."""

    broker_id: int
    rack: str | None
    fenced: bool


def place(
    brokers: Iterable[UsableBroker], partition_count: int, replication_factor: int, rng: Rng
) -> list[Replicas] | ApiError:
    """Replicas for each of `partition_count` new partitions, or INVALID_REPLICATION_FACTOR."""
    racks = _Racks(brokers, rng)
    problem = ""
    if racks.unfenced_count == 0:
        problem = "All brokers are currently fenced."
    elif replication_factor > racks.broker_count:
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {racks.broker_count} broker(s) are registered."
        )
    if problem:
        return ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): {problem}",
        )
    return [racks.next_replicas(replication_factor) for _ in range(partition_count)]


def check_manual(
    replicas: Sequence[int], registered: Collection[int], replication_factor: int | None
) -> ApiError | None:
    """The problem of a manual assignment, or None.  `replication_factor`: the factor of the earlier
    partitions, or None for the first; it is equal for all partitions of a topic."""
    problem = ""
    if not replicas:
        problem = "The manual partition assignment includes an empty replica list."
    previous: int | None = None
    for broker_id in sorted(replicas):
        if problem:
            break
        if broker_id not in registered:
            problem = (
                f"The manual partition assignment includes broker {broker_id}, but no such "
                "broker is registered."
            )
        elif broker_id == previous:
            problem = (
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if not problem and replication_factor not in (None, len(replicas)):
        problem = (
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem) if problem else None


class _Ring:
    """Brokers in turn: each round chooses for one partition, and starts one broker further than the
    round before."""

    __slots__ = ("brokers", "offset", "round", "taken")

    def __init__(self) -> None:
        self.brokers: list[int] = []
        self.taken = 0
        self.offset = 0
        self.round = 0

    def start(self, rng: Rng) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = rng.randrange(len(self.brokers))

    def next(self, of_round: int) -> int | None:
        """The next broker not yet taken in this round; None when all are."""
        brokers = self.brokers
        if not brokers:
            return None
        if self.round != of_round:
            self.round, self.taken = of_round, 0
            self.offset = (self.offset + 1) % len(brokers)
        if self.taken >= len(brokers):
            return None
        broker = brokers[(self.taken + self.offset) % len(brokers)]
        self.taken += 1
        return broker


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self) -> None:
        self.fenced = _Ring()
        self.unfenced = _Ring()

    def next(self, of_round: int) -> int | None:
        broker = self.unfenced.next(of_round)
        return self.fenced.next(of_round) if broker is None else broker


class _Racks:
    """All racks in turn; brokers without a rack share a rack that sorts first."""

    def __init__(self, brokers: Iterable[UsableBroker], rng: Rng) -> None:
        by_name: dict[str | None, _Rack] = {}
        self.broker_count = self.unfenced_count = 0
        for broker in brokers:
            rack = by_name.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.broker_id)
            self.broker_count += 1
            self.unfenced_count += not broker.fenced
        self._racks = [by_name[name] for name in sorted(by_name, key=lambda name: name or "")]
        for rack in self._racks:
            rack.fenced.start(rng)
            rack.unfenced.start(rng)
        self._rng = rng
        self._round = self._since_shuffle = 0
        self._offset = rng.randrange(len(self._racks)) if self._racks else 0

    def next_replicas(self, replication_factor: int) -> Replicas:
        """The replicas of one partition.  There must be enough brokers, one of them unfenced."""
        if self._since_shuffle == self.unfenced_count:
            self._shuffle_all()
            self._since_shuffle = 0
        racks = self._racks
        if self._offset == len(racks):
            self._offset = 0
        first = self._offset
        while (leader := racks[first].unfenced.next(self._round)) is None:
            first = (first + 1) % len(racks)
        replicas = [leader]
        leader_rack: int | None = first
        rack = self._offset
        while len(replicas) < replication_factor:
            if rack == leader_rack:
                leader_rack = None  # the leader's rack had its turn in the first lap
            elif (broker := racks[rack].next(self._round)) is not None:
                replicas.append(broker)
            rack = (rack + 1) % len(racks)
        self._round += 1
        self._since_shuffle += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle_all(self) -> None:
        _shuffle(self._racks, self._rng)
        for rack in self._racks:
            _shuffle(rack.fenced.brokers, self._rng)
            _shuffle(rack.unfenced.brokers, self._rng)


def _shuffle(items: list[_Item], rng: Rng) -> None:
    """Shuffle by Fisher and Yates."""
    for last in range(len(items) - 1, 0, -1):
        other = rng.randrange(last + 1)
        items[last], items[other] = items[other], items[last]
