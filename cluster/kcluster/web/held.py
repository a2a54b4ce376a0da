"""The clusters that a server holds: by id, with their leases.

Owns: HeldCluster, HeldClusters, when a lease has expired.  Never: knows HTTP's requests, what a
cluster can do.
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kcluster.config.files.problems import unknown
from kcluster.handle.cluster import Cluster
from kcluster.handle.port import Parts
from kcluster.operations.errors import ClusterError
from kcluster.web.lesson_card import LessonCards
from kcluster.web.problems import not_found

if TYPE_CHECKING:
    # A server that shows a live cluster need not load the code that plays runs.
    from kcluster.scenario.play.played import PlayedRun

    Source = Cluster | PlayedRun
    """A live cluster, or a finished run that was played in virtual time."""

T = TypeVar("T")

MAX_CLUSTERS: Final = 200
"""The most clusters of a server; each has a thread, and its brokers' sockets."""


class Verdicts:
    """The newest requested verdict as JSON, for watchers.  Used from any thread."""

    def __init__(self) -> None:
        self.count = 0
        self._text = b""

    def add(self, text: bytes) -> None:
        """Add a verdict."""
        self._text = text
        self.count += 1

    def newest(self) -> tuple[int, bytes]:
        """The number of verdicts so far, and the newest."""
        return self.count, self._text


class OwnRun(Protocol):
    """A run directory that is kept current while the cluster runs."""

    @property
    def path(self) -> Path:
        """The path of the directory."""

    def finish(self) -> Path:
        """Write the whole run so far, with its verdict and its page, and stop keeping it
        current."""


class HeldCluster:
    """One cluster of a server.  `source`: its record; `lease_s`: None for a cluster that stays
    until it is deleted; `stop`: ends the cluster, or the process that runs it; `own_run`: the run
    directory that is kept current."""

    def __init__(
        self,
        id: str,
        source: Source,
        *,
        lease_s: float | None = None,
        stop: Callable[[], None],
        own_run: OwnRun | None = None,
    ) -> None:
        self.id = id
        self.source = source
        self.lease_s = lease_s
        self.own_run = own_run
        self._stop = stop
        self._uses = 0
        self._renewed_s = time.monotonic()
        self._lock = threading.Lock()
        self.verdicts = Verdicts()
        self.lessons = LessonCards()
        self._parts = Parts()

    @property
    def cluster(self) -> Cluster:
        """The running cluster; ClusterError for one that was played in virtual time."""
        if not isinstance(self.source, Cluster):
            raise ClusterError("this run is complete: it was played in virtual time; fork it")
        return self.source

    @property
    def is_complete(self) -> bool:
        """Whether the cluster is a run that is over."""
        return not isinstance(self.source, Cluster)

    @property
    def began_ms(self) -> int:
        """The beginning of the run, on the cluster's clock."""
        source = self.source
        return source.began_ms if isinstance(source, Cluster) else source.info.began_ms

    def part(self, kind: type[T], make: Callable[[], T]) -> T:
        """The state that a module of api/ keeps for this cluster, one object per type; created when
        first needed."""
        with self._lock:
            return self._parts.of(kind, make)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the lease from expiring during the body; the lease is renewed at its end."""
        with self._lock:
            self._uses += 1
        try:
            yield
        finally:
            with self._lock:
                self._uses -= 1
                self._renewed_s = time.monotonic()

    def has_expired(self, now_s: float) -> bool:
        """Whether the lease has ended without a renewal."""
        with self._lock:
            is_idle = self.lease_s is not None and not self._uses
            return is_idle and now_s > self._renewed_s + (self.lease_s or 0)

    def stop(self) -> None:
        """Stop the cluster; returns when its sockets are closed."""
        self._stop()


class HeldClusters:
    """The clusters of a server, by id.  To be used from any thread."""

    def __init__(self, *, can_create: bool, runs: Path | None) -> None:
        self.can_create = can_create
        """Whether requests may create clusters; the server of `kcluster up` serves only its own."""
        self.runs = runs
        """The directory below which requests may write runs; None: requests may not write runs."""
        self._held: dict[str, HeldCluster] = {}
        self._numbers = 0
        self._lock = threading.Lock()

    def new_id(self) -> str:
        """A new id, such as `c1`, that no cluster of this server has had."""
        with self._lock:
            self._numbers += 1
            return f"c{self._numbers}"

    def add(self, held: HeldCluster) -> None:
        """Add a cluster, so that requests find it."""
        with self._lock:
            assert held.id not in self._held, held.id
            self._held[held.id] = held

    def get(self, id: str) -> HeldCluster:
        """The cluster with this id; a refusal names the nearest one."""
        with self._lock:
            held = self._held.get(id)
            if held is None:
                raise not_found(f"{id}: {unknown('cluster', id, self._held)}")
            return held

    def has(self, id: str) -> bool:
        """Whether there is a cluster with this id."""
        return id in self._held

    def all(self) -> list[HeldCluster]:
        """All clusters, in the order of their creation."""
        with self._lock:
            return list(self._held.values())

    def remove(self, id: str) -> HeldCluster:
        """Take a cluster out; the caller stops it."""
        held = self.get(id)
        with self._lock:
            if self._held.pop(id, None) is None:
                raise not_found(f"{id}: has just been removed")
        return held

    def remove_expired(self) -> list[HeldCluster]:
        """Take out the clusters whose leases have expired."""
        now_s = time.monotonic()
        with self._lock:
            expired = [held for held in self._held.values() if held.has_expired(now_s)]
            for held in expired:
                del self._held[held.id]
        return expired
