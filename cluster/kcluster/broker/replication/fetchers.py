"""The leaders from which this broker fetches, and the replicas that follow each.

Owns: one fetcher per leader, and the fetcher of each replica.  Never: fetches (fetcher.py does).
Kafka: ReplicaFetcherManager, AbstractFetcherManager.
"""

from __future__ import annotations

from typing import final

from kcluster.broker.peers import PeerCalls
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.quotas.replication_throttle import Throttles
from kcluster.broker.replication.fetcher import ReplicaFetcher
from kcluster.broker.replication.replicas import Replicas
from kcluster.partition.replica import Replica
from kcluster.timers import Timers


@final
class Fetchers:
    """One fetcher for each broker that leads a partition that this broker follows."""

    __slots__ = (
        "_by_leader",
        "_leader_of",
        "_outbox",
        "_peers",
        "_replicas",
        "_throttles",
        "_timers",
        "_view",
        "_without_leader",
    )

    def __init__(
        self,
        view: BrokerView,
        timers: Timers,
        peers: PeerCalls,
        outbox: Outbox,
        replicas: Replicas,
        throttles: Throttles,
    ) -> None:
        self._view = view
        self._timers = timers
        self._peers = peers
        self._outbox = outbox
        self._replicas = replicas
        self._throttles = throttles
        self._by_leader: dict[int, ReplicaFetcher] = {}
        self._leader_of: dict[Replica, int] = {}
        self._without_leader: dict[Replica, None] = {}
        """Followers without a leader, or whose leader is not registered."""

    def put(self, replica: Replica) -> None:
        """Follow the leader that the replica's registration names, from its log end on."""
        self.remove(replica)
        leader = replica.registration.leader
        if leader < 0 or leader not in self._view.image.brokers:
            self._without_leader[replica] = None
            return
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = self._new_fetcher(leader)
        self._leader_of[replica] = leader
        fetcher.follow(replica)

    def _new_fetcher(self, leader: int) -> ReplicaFetcher:
        return ReplicaFetcher(
            leader,
            self._view,
            self._timers,
            self._peers,
            self._outbox,
            self._replicas,
            self._throttles,
        )

    def remove(self, replica: Replica) -> None:
        """Stop fetching for `replica`, if a fetcher has it."""
        self._without_leader.pop(replica, None)
        leader = self._leader_of.pop(replica, None)
        if leader is not None:
            self._by_leader[leader].remove(replica)

    def tell_log_start(self, replica: Replica) -> None:
        """Tell the leader of a follower, if it has one, where its log begins now."""
        leader = self._leader_of.get(replica)
        if leader is not None:
            self._by_leader[leader].tell_log_start(replica)

    def on_brokers_changed(self) -> None:
        """Try again with followers whose leader was not registered."""
        for replica in sorted(self._without_leader, key=_number):
            self.put(replica)

    def send(self, now_ms: int) -> None:
        """Fetch from every leader without a fetch under way."""
        for leader, fetcher in list(self._by_leader.items()):
            if fetcher.is_idle:
                fetcher.stop()
                del self._by_leader[leader]
            else:
                fetcher.send(now_ms)


def _number(replica: Replica) -> int:
    return replica.number
