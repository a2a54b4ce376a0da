"""The common part of the handles Cluster and WorldCluster.

Owns: ClusterVerbs: its parts, the names by which users know a cluster.  Never: defines a verb
(verbs.py), knows which clock runs.  Kafka: no counterpart.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kcluster.config.topology.model import Topology
from kcluster.handle.access import ClusterAccess
from kcluster.handle.clock import ClusterClock
from kcluster.handle.driver import HandleDriver
from kcluster.handle.port import ClusterPort, forwarded
from kcluster.handle.recording import ClusterRecord
from kcluster.handle.verbs import UserVerbs
from kcluster.handle.view import HandleView
from kcluster.operations.errors import ClusterError
from kcluster.runtime.build import Plan

if TYPE_CHECKING:
    from kcluster.drivers.tls.certificate_folder import CertificateFolder
    from kcluster.evidence.recorder import Recorder


def _clock(cluster: ClusterVerbs) -> ClusterClock:
    return cluster.clock


def _view(cluster: ClusterVerbs) -> HandleView:
    return cluster.view


def _access(cluster: ClusterVerbs) -> ClusterAccess:
    return cluster.access


def _record(cluster: ClusterVerbs) -> ClusterRecord:
    return cluster.record


class ClusterVerbs(UserVerbs, ClusterPort):
    """The common part of Cluster and WorldCluster.  `topology`: the topology with which it
    began."""

    def __init__(self, topology: Topology, seed: int, plan: Plan, driver: HandleDriver) -> None:
        super().__init__(plan, driver, seed)
        self.topology = topology

    @cached_property
    def clock(self) -> ClusterClock:
        """The clock of the cluster; `cluster.clock()` returns its state."""
        return ClusterClock(self)

    @property
    def is_clock_steered(self) -> bool:
        """Whether this cluster's clock can be paused, stepped and slowed down."""
        return self.clock.is_steered

    pause_clock = forwarded(_clock, ClusterClock.pause)
    resume_clock = forwarded(_clock, ClusterClock.resume)
    set_speed = forwarded(_clock, ClusterClock.set_speed)
    step = forwarded(_clock, ClusterClock.step)

    @cached_property
    def view(self) -> HandleView:
        """The state and the events of the cluster."""
        return HandleView(self)

    status = forwarded(_view, HandleView.status)
    brokers = forwarded(_view, HandleView.brokers)
    topics = forwarded(_view, HandleView.topics)
    partition = forwarded(_view, HandleView.partition)
    logs = forwarded(_view, HandleView.logs)
    events = forwarded(_view, HandleView.events)
    sequence_at = forwarded(_view, HandleView.sequence_at)
    wait_for = forwarded(_view, HandleView.wait_for)

    @cached_property
    def record(self) -> ClusterRecord:
        """The record of the cluster, from which it is judged."""
        return ClusterRecord(self)

    @property
    def recorder(self) -> Recorder:
        """The recorder of this cluster; ClusterError if it has none."""
        return self.record.recorder

    start_recording = forwarded(_record, ClusterRecord.start)
    moment = forwarded(_record, ClusterRecord.moment)
    mark = forwarded(_record, ClusterRecord.mark)
    verdict = forwarded(_record, ClusterRecord.verdict)
    manners = forwarded(_record, ClusterRecord.manners)
    save = forwarded(_record, ClusterRecord.save)
    run_info = forwarded(_record, ClusterRecord.info)
    recorded_since = forwarded(_record, ClusterRecord.rows_since)
    recorded_now = forwarded(_record, ClusterRecord.rows_now)

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, for a client's bootstrap.servers."""
        return ",".join(f"{host}:{port}" for host, port in self.plan.addresses.values())

    @cached_property
    def access(self) -> ClusterAccess:
        """How clients come in."""
        return ClusterAccess(self)

    bootstrap_of = forwarded(_access, ClusterAccess.bootstrap_of)
    client_config = forwarded(_access, ClusterAccess.client_config)

    @property
    def certificates(self) -> CertificateFolder:
        """The files with which clients connect by TLS: the CA, and a certificate for each user that
        is asked for.  Raises ClusterError if no listener has TLS."""
        if self.driver.tls is None:
            raise ClusterError("no listener of this cluster has TLS")
        return self.driver.tls.folder

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of all brokers, up or not."""
        return tuple(self.plan.addresses)
