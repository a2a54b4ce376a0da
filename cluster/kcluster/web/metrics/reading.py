"""The values of the metrics of one cluster, read between two dispatches.

Owns: the value of each metric at this moment.  Never: changes anything, makes text of it
(exposition.py).
Kafka: ReplicaManager, KafkaController and BrokerTopicStats, each in one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kcluster.broker.lifecycle import LifecycleState
from kcluster.broker.node_view import BrokerNodeView
from kcluster.deaths import ProcessState
from kcluster.events.brokers import ControllerElected
from kcluster.events.partitions import IsrChange, IsrExpanded, IsrShrunk, LeaderElected
from kcluster.events.reasons import CaughtUp, ElectionKind, OutOfSync
from kcluster.events.render import api_name
from kcluster.evidence.recorder import RequestTimes
from kcluster.evidence.sampling import SamplingRecorder
from kcluster.handle.cluster import Cluster
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import NO_LEADER
from kcluster.operations.controller import controller_id, controller_image
from kcluster.operations.status import NoteEntry
from kcluster.partition.replica import Replica
from kcluster.protocol.apis import ApiKey

_STATES: Final = {
    LifecycleState.STARTING: 1,
    LifecycleState.RECOVERY: 2,
    LifecycleState.RUNNING: 3,
    LifecycleState.SHUTTING_DOWN: 6,
    LifecycleState.STOPPED: 7,
}
"""The numbers of Kafka's BrokerState."""
_UP: Final = {ProcessState.UP: 1, ProcessState.PAUSED: 0.5, ProcessState.DOWN: 0}
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""The quantiles that the JMX exporter reports."""
_FETCH: Final = api_name(int(ApiKey.FETCH))
_PRODUCE: Final = api_name(int(ApiKey.PRODUCE))
_TOPICS: Final = "kafka_server_brokertopicmetrics_"
_UNCLEAN: Final = (ElectionKind.UNCLEAN, ElectionKind.LAST_KNOWN_LEADER)


class Sample(NamedTuple):
    """One value of a metric.  `name`: the metric's name in names.py; `labels`: the labels besides
    cluster and broker; `quantile`: the quantile of a summary; -1 for its count."""

    name: str
    broker: int
    value: float
    labels: tuple[str, ...] = ()
    quantile: float | None = None


class EventCounts:
    """The counts of the events that Kafka counts, by kind, since a cluster's start."""

    def __init__(self) -> None:
        self.counted = 0
        """The sequence of the last event that was counted."""
        self._counts: Counter[tuple[str, int]] = Counter()

    def count(self, entries: Iterable[NoteEntry]) -> None:
        """Count the events that are newer than the events counted before."""
        for entry in entries:
            if entry.sequence <= self.counted:
                continue
            self.counted = entry.sequence
            event = entry.event
            if isinstance(event, LeaderElected):
                if event.election in _UNCLEAN:
                    self._counts["kafka_controller_controllerstats_uncleanleaderelections", 0] += 1
                elif event.election is ElectionKind.ELIGIBLE:
                    name = "kafka_controller_controllerstats_electionfromeligibleleaderreplicas"
                    self._counts[name, 0] += 1
            elif isinstance(event, ControllerElected):
                self._counts["kafka_controller_kafkacontroller_newactivecontrollerscount", 0] += 1
            elif isinstance(event, IsrChange):
                self._count_isr(event)

    def _count_isr(self, event: IsrChange) -> None:
        """Count a change of an ISR for the leader, who proposes it.  A change that the controller
        decides itself is counted by no broker."""
        if isinstance(event, IsrShrunk) and isinstance(event.reason, OutOfSync):
            name = "kafka_server_replicamanager_isrshrinks"
        elif isinstance(event, IsrExpanded) and isinstance(event.reason, CaughtUp):
            name = "kafka_server_replicamanager_isrexpands"
        else:
            return
        self._counts[name, event.reason.leader] += 1

    def samples(self, controller: int, brokers: Iterable[int]) -> Iterator[Sample]:
        """The counts; 0 for kinds that have not happened."""
        for name in (
            "kafka_controller_controllerstats_uncleanleaderelections",
            "kafka_controller_controllerstats_electionfromeligibleleaderreplicas",
            "kafka_controller_kafkacontroller_newactivecontrollerscount",
        ):
            yield Sample(name, controller, self._counts[name, 0])
        for broker in brokers:
            for name in (
                "kafka_server_replicamanager_isrshrinks",
                "kafka_server_replicamanager_isrexpands",
            ):
                yield Sample(name, broker, self._counts[name, broker])


def read_samples(cluster: Cluster, counts: EventCounts) -> list[Sample]:
    """All samples of a cluster; called in its thread."""
    dispatcher, recorder = cluster.driver.dispatcher, cluster.recorder
    recorder.check_last_step()
    image = controller_image(dispatcher)
    controller = controller_id(dispatcher)
    found = list(controller_samples(image, controller, dispatcher.processes[controller].state))
    up = []
    for broker in cluster.plan.addresses:
        process = dispatcher.processes[broker]
        found.append(Sample("kcluster_broker_up", broker, _UP[process.state]))
        if (node := process.broker) is not None:
            up.append(broker)
            found += broker_samples(node, image)
    found += counts.samples(controller, up)
    found += request_samples(recorder.request_times())
    if isinstance(recorder, SamplingRecorder):
        found += traffic_samples(recorder)
    found.append(Sample("kcluster_clock_seconds", controller, cluster.driver.clock_ms() / 1000))
    return found


def controller_samples(
    image: MetadataImage, controller: int, state: ProcessState
) -> Iterator[Sample]:
    """The samples of the controller; none while it is down."""
    active = float(state is ProcessState.UP)
    yield Sample("kcluster_broker_up", controller, _UP[state])
    if state is ProcessState.DOWN:
        return
    partitions = [found for topic in image.topics.values() for found in topic.partitions]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    prefix = "kafka_controller_kafkacontroller_"
    values = {
        "activecontrollercount": active,
        "activebrokercount": len(image.brokers) - fenced,
        "fencedbrokercount": fenced,
        "globaltopiccount": len(image.topics),
        "globalpartitioncount": len(partitions),
        "offlinepartitionscount": sum(found.leader == NO_LEADER for found in partitions),
        "preferredreplicaimbalancecount": sum(x.leader != x.replicas[0] for x in partitions),
    }
    for name, value in values.items():
        yield Sample(prefix + name, controller, value)


def broker_samples(node: BrokerNodeView, image: MetadataImage) -> Iterator[Sample]:
    """The samples of one broker."""
    broker, replicas = node.node_id, node.replicas.all()
    led = [replica for replica in replicas if replica.is_leader]
    short = [len(replica.registration.replicas) - len(replica.isr) for replica in led]
    prefix = "kafka_server_replicamanager_"
    values: dict[str, int] = {
        "underreplicatedpartitions": sum(missing > 0 for missing in short),
        "underminisrpartitioncount": sum(len(x.isr) < x.min_isr for x in led),
        "atminisrpartitioncount": sum(len(x.isr) == x.min_isr for x in led),
        "offlinereplicacount": 0,
        "partitioncount": len(replicas),
        "leadercount": len(led),
        "reassigningpartitions": sum(bool(x.registration.adding_replicas) for x in led),
        "produceridcount": sum(map(producer_ids, replicas)),
    }
    for name, value in values.items():
        yield Sample(prefix + name, broker, value)
    state = _STATES[node.state]
    yield Sample("kafka_server_kafkaserver_brokerstate", broker, state)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    yield Sample(purgatory, broker, len(node.parked_fetches), ("Fetch",))
    for replica in led:
        yield from partition_samples(broker, replica)
    for replica in replicas:
        at = (replica.topic, str(replica.partition))
        log = replica.log
        yield Sample("kafka_log_log_logendoffset", broker, log.log_end_offset, at)
        yield Sample("kafka_log_log_logstartoffset", broker, log.log_start_offset, at)
        yield Sample("kafka_log_log_size", broker, log.size_bytes, at)
    yield from coordinator_samples(node)
    yield from security_samples(node)


def security_samples(node: BrokerNodeView) -> Iterator[Sample]:
    """The authentications at each listener with security, and the ACLs that a broker knows."""
    broker, prefix = node.node_id, "kafka_server_socket_server_metrics_"
    if node.access is not None:
        yield Sample("kafka_server_plugins_acls_total_count", broker, len(node.image.acls))
    if node.logins is None:
        return
    for endpoint in node.view.endpoints:
        if not endpoint.protocol:
            continue
        at, counts = (endpoint.listener,), node.logins.authentications.at(endpoint.listener)
        values = {
            "successful_authentication": counts.successful,
            "successful_authentication_no_reauth": counts.successful_no_reauth,
            "failed_authentication": counts.failed,
            "successful_reauthentication": counts.successful_reauthentication,
            "failed_reauthentication": counts.failed_reauthentication,
            "expired_connections_killed_count": counts.expired_connections_killed,
        }
        for name, value in values.items():
            yield Sample(prefix + name, broker, value, at)


def producer_ids(replica: Replica) -> int:
    """The number of producer ids that a replica knows."""
    table = replica.log.producer_table
    return 0 if table is None else len(table.states)


def partition_samples(broker: int, replica: Replica) -> Iterator[Sample]:
    """The samples of the leader of a partition."""
    at = (replica.topic, str(replica.partition))
    in_sync, all_replicas = len(replica.isr), len(replica.registration.replicas)
    values = {
        "underreplicated": in_sync < all_replicas,
        "underminisr": in_sync < replica.min_isr,
        "atminisr": in_sync == replica.min_isr,
        "insyncreplicascount": in_sync,
        "replicascount": all_replicas,
        "laststableoffsetlag": replica.high_watermark - replica.last_stable_offset,
    }
    for name, value in values.items():
        yield Sample(f"kafka_cluster_partition_{name}", broker, value, at)


def coordinator_samples(node: BrokerNodeView) -> Iterator[Sample]:
    """The numbers of groups and transactional ids that a broker coordinates."""
    broker = node.node_id
    kinds = Counter(group.kind for group in node.coordinator.groups)
    prefix = "kafka_coordinator_group_groupmetadatamanager_"
    yield Sample(f"{prefix}numgroups", broker, kinds.total())
    offsets = sum(
        len(partitions)
        for shard in node.coordinator.shards.values()
        for topics in shard.offsets.by_group.values()
        for partitions in topics.values()
    )
    yield Sample(f"{prefix}numoffsets", broker, offsets)
    for kind in ("classic", "consumer", "share", "streams"):
        name = "kafka_server_group_coordinator_metrics_group_count"
        yield Sample(name, broker, kinds[kind], (kind,))
    states = Counter(
        transaction.state.label
        for shard in node.transactions.shards.values()
        for transaction in shard.transactions.values()
    )
    for state, number in sorted(states.items()):
        yield Sample("kcluster_transactional_ids", broker, number, (state,))


def request_samples(times: RequestTimes) -> Iterator[Sample]:
    """The number of clients' requests, and the time that they took."""
    by_request: dict[tuple[int, str], Counter[int]] = {}
    for (api, _, broker, took_ms), count in times.items():
        name = api_name(api)
        names = (name, "FetchConsumer") if name == _FETCH else (name,)
        for each in names:
            by_request.setdefault((broker, each), Counter())[took_ms] += count
    for (broker, name), took in sorted(by_request.items()):
        total = took.total()
        yield Sample("kafka_network_requestmetrics_requests", broker, total, (name,))
        summary = "kafka_network_requestmetrics_totaltimems"
        yield Sample(summary, broker, total, (name,), -1)
        for quantile, took_ms in quantiles(took, total):
            yield Sample(summary, broker, took_ms, (name,), quantile)
        if name in (_FETCH, _PRODUCE):
            yield Sample(f"{_TOPICS}total{name.lower()}requests", broker, total, ("",))


def quantiles(took: Counter[int], total: int) -> Iterator[tuple[float, int]]:
    """For each share, the time below which that share of the requests stayed."""
    ordered = sorted(took.items())
    for quantile in QUANTILES:
        seen = 0
        for took_ms, count in ordered:
            seen += count
            if seen >= quantile * total:
                yield quantile, took_ms
                break


def traffic_samples(recorder: SamplingRecorder) -> Iterator[Sample]:
    """The bytes and records written and read: of each topic and, with an empty topic, of all, as in
    Kafka."""
    traffic = recorder.traffic
    for name, counts in (
        ("messagesin", traffic.messages_in),
        ("bytesin", traffic.bytes_in),
        ("bytesout", traffic.bytes_out),
        ("failedproducerequests", traffic.failed_produces),
        ("failedfetchrequests", traffic.failed_fetches),
    ):
        totals: Counter[int] = Counter(dict.fromkeys(recorder.plan.addresses, 0))
        for (broker, topic), count in counts.items():
            totals[broker] += count
            yield Sample(_TOPICS + name, broker, count, (topic,))
        for broker, count in totals.items():
            yield Sample(_TOPICS + name, broker, count, ("",))
    for (broker, api, error), count in traffic.errors.items():
        yield Sample("kafka_network_requestmetrics_errors", broker, count, (api, error))
