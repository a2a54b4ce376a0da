"""Which leaders this broker fetches from, and what each of its replicas follows.

Owns: one fetcher per leader, and which replica is with which.  Never: fetches (fetcher.py does).
Kafka: ReplicaFetcherManager, AbstractFetcherManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcluster.broker.fetcher import ReplicaFetcher
from kcluster.partition.replica import Replica

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode


class Fetchers:
    """One fetcher for each broker that leads something this broker follows."""

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._by_leader: dict[int, ReplicaFetcher] = {}
        self._leader_of: dict[Replica, int] = {}

    def put(self, replica: Replica) -> None:
        """Follow the leader that the replica's registration names, from its log end on."""
        self.remove(replica)
        leader = replica.registration.leader
        if leader < 0 or leader not in self._broker.image.brokers:
            return
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = ReplicaFetcher(self._broker, leader)
        self._leader_of[replica] = leader
        fetcher.put(replica)

    def remove(self, replica: Replica) -> None:
        """Stop fetching for `replica`, if anything was."""
        leader = self._leader_of.pop(replica, None)
        if leader is not None:
            self._by_leader[leader].remove(replica)

    def on_brokers_changed(self) -> None:
        """Followers of a broker that was not known when they were put try again."""
        for replica in self._broker.replicas.all():
            if not replica.is_leader and replica not in self._leader_of:
                self.put(replica)

    def send(self, now_ms: int) -> None:
        """Fetch wherever something is to be fetched and nothing is under way."""
        for leader, fetcher in list(self._by_leader.items()):
            if fetcher.is_idle:
                fetcher.stop()
                del self._by_leader[leader]
            else:
                fetcher.send(now_ms)
