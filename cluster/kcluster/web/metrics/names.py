"""The metrics: their names in Prometheus, Kafka's names by JMX, and their meaning.

Owns: the table from which the reference page is made.  Never: counts.
Kafka: the MBeans of 4.3.1, under the names that the usual rules of the JMX exporter give them:
lower case, `PerSec` as a counter `_total`, percentiles as `quantile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct


class MetricKind(StrEnum):
    """Prometheus' types."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"


class MetricName(Struct, frozen=True):
    """A metric.  `name`: without `_total`; `mbean`: empty if Kafka has none; `labels`: besides
    cluster and broker."""

    name: str
    kind: MetricKind
    mbean: str
    words: str
    labels: tuple[str, ...] = ()


_G, _C, _S = MetricKind.GAUGE, MetricKind.COUNTER, MetricKind.SUMMARY
_AT: Final = ("topic", "partition")

_BEANS: Final[dict[str, tuple[tuple[str, MetricKind, str, tuple[str, ...]], ...]]] = {
    "kafka.server:type=ReplicaManager": (
        (
            "UnderReplicatedPartitions",
            _G,
            "Partitions that the broker leads and whose ISR lacks replicas.",
            (),
        ),
        (
            "UnderMinIsrPartitionCount",
            _G,
            "Partitions that it leads with fewer in-sync replicas than min.insync.replicas.",
            (),
        ),
        (
            "AtMinIsrPartitionCount",
            _G,
            "Partitions that it leads with exactly min.insync.replicas in sync.",
            (),
        ),
        ("OfflineReplicaCount", _G, "Replicas in log directories that are offline.", ()),
        ("PartitionCount", _G, "Replicas on the broker, leaders and followers.", ()),
        ("LeaderCount", _G, "Partitions that it leads.", ()),
        (
            "ReassigningPartitions",
            _G,
            "Partitions that it leads and that are being reassigned.",
            (),
        ),
        ("ProducerIdCount", _G, "Producer ids that its replicas know.", ()),
        ("IsrShrinksPerSec", _C, "Changes by which it took replicas out of ISRs.", ()),
        ("IsrExpandsPerSec", _C, "Changes by which it took replicas into ISRs.", ()),
    ),
    "kafka.server:type=ReplicaFetcherManager": (
        ("MaxLag", _G, "The most records that one of its followers is behind.", ("clientid",)),
    ),
    "kafka.server:type=KafkaServer": (
        ("BrokerState", _G, "1 starting, 2 recovery, 3 running, 6 controlled shutdown.", ()),
    ),
    "kafka.server:type=DelayedOperationPurgatory": (
        ("PurgatorySize", _G, "Requests that wait.", ("delayedoperation",)),
    ),
    "kafka.controller:type=KafkaController": (
        ("ActiveControllerCount", _G, "1 while the controller is active.", ()),
        ("ActiveBrokerCount", _G, "Brokers that are registered and not fenced.", ()),
        ("FencedBrokerCount", _G, "Brokers that are registered and fenced.", ()),
        ("GlobalTopicCount", _G, "Topics.", ()),
        ("GlobalPartitionCount", _G, "Partitions.", ()),
        ("OfflinePartitionsCount", _G, "Partitions without a leader.", ()),
        (
            "PreferredReplicaImbalanceCount",
            _G,
            "Partitions that their preferred replica does not lead.",
            (),
        ),
        ("NewActiveControllersCount", _G, "Elections of an active controller.", ()),
    ),
    "kafka.controller:type=ControllerStats": (
        (
            "UncleanLeaderElectionsPerSec",
            _C,
            "Elections of leaders that may lack committed records.",
            (),
        ),
        ("ElectionFromEligibleLeaderReplicasPerSec", _C, "Elections of leaders from the ELR.", ()),
    ),
    "kafka.server:type=BrokerTopicMetrics": (
        ("MessagesInPerSec", _C, "Records that clients wrote.", ("topic",)),
        ("BytesInPerSec", _C, "Bytes that clients wrote.", ("topic",)),
        ("BytesOutPerSec", _C, "Bytes that clients read.", ("topic",)),
        ("FailedProduceRequestsPerSec", _C, "Produce requests with an error.", ("topic",)),
        ("FailedFetchRequestsPerSec", _C, "Fetch requests with an error.", ("topic",)),
        ("TotalProduceRequestsPerSec", _C, "Produce requests.", ("topic",)),
        ("TotalFetchRequestsPerSec", _C, "Fetch requests of clients.", ("topic",)),
    ),
    "kafka.network:type=RequestMetrics": (
        ("RequestsPerSec", _C, "Requests of clients that were answered.", ("request",)),
        (
            "ErrorsPerSec",
            _C,
            "Answers by error, NONE too; Kafka counts each partition.",
            ("request", "error"),
        ),
        (
            "TotalTimeMs",
            _S,
            "From a request's arrival to its answer, since the record began.",
            ("request",),
        ),
    ),
    "kafka.cluster:type=Partition": (
        (
            "UnderReplicated",
            _G,
            "1 if the ISR lacks replicas; of leaders, as all of this type.",
            _AT,
        ),
        ("UnderMinIsr", _G, "1 if there are fewer than min.insync.replicas.", _AT),
        ("AtMinIsr", _G, "1 if there are exactly min.insync.replicas.", _AT),
        ("InSyncReplicasCount", _G, "The size of the ISR.", _AT),
        ("ReplicasCount", _G, "The replicas.", _AT),
        (
            "LastStableOffsetLag",
            _G,
            "High watermark minus last stable offset: records of open transactions.",
            _AT,
        ),
    ),
    "kafka.log:type=Log": (
        ("LogEndOffset", _G, "The offset of the next record.", _AT),
        ("LogStartOffset", _G, "The first offset.", _AT),
        ("Size", _G, "Bytes.", _AT),
    ),
    "kafka.coordinator.group:type=GroupMetadataManager": (
        ("NumGroups", _G, "Groups that the broker coordinates.", ()),
        ("NumOffsets", _G, "Offsets that are committed there.", ()),
    ),
}
"""The metrics of each MBean: name, kind, meaning, labels."""

_SOCKET_SERVER: Final = "kafka.server:type=socket-server-metrics,listener=…,networkProcessor=…"
_AUTHENTICATIONS: Final = {
    "successful_authentication": "Clients that logged in, or whose TLS handshake succeeded.",
    "successful_authentication_no_reauth": "Of these, clients that cannot log in again (KIP-368).",
    "failed_authentication": "Logins and TLS handshakes that failed.",
    "successful_reauthentication": "Clients that logged in again on their connection.",
    "failed_reauthentication": "Clients that failed to log in again, and were disconnected.",
}
"""Kafka's counts of each listener with security, whose names end with -total."""

_OTHERS: Final = (
    *(
        MetricName(
            f"kafka_server_socket_server_metrics_{name}",
            _C,
            f"{_SOCKET_SERVER},{name.replace('_', '-')}-total",
            words,
            ("listener",),
        )
        for name, words in _AUTHENTICATIONS.items()
    ),
    MetricName(
        "kafka_server_socket_server_metrics_expired_connections_killed_count",
        _G,
        f"{_SOCKET_SERVER},expired-connections-killed-count",
        "Connections that were closed because their session had ended.",
        ("listener",),
    ),
    MetricName(
        "kafka_server_plugins_acls_total_count",
        _G,
        "kafka.server:type=plugins,config=authorizer.class.name,…,acls-total-count",
        "ACLs by which the broker decides.",
        (),
    ),
    MetricName(
        "kafka_server_group_coordinator_metrics_group_count",
        _G,
        "kafka.server:type=group-coordinator-metrics,protocol=…,group-count",
        "Groups by protocol.",
        ("protocol",),
    ),
    MetricName(
        "kcluster_broker_up",
        _G,
        "",
        "1 up, 0.5 paused, 0 down. A broker that is down has no other samples.",
        (),
    ),
    MetricName(
        "kcluster_transactional_ids",
        _G,
        "",
        "Transactional ids that the broker coordinates, by state.",
        ("state",),
    ),
    MetricName("kcluster_clock_seconds", _G, "", "The cluster's clock.", ()),
)


def _of_beans() -> Iterator[MetricName]:
    for bean, rows in _BEANS.items():
        domain, _, kind_of_bean = bean.partition(":type=")
        prefix = f"{domain.replace('.', '_')}_{kind_of_bean}_".lower()
        for name, kind, words, labels in rows:
            short = name.lower().removesuffix("persec")
            yield MetricName(prefix + short, kind, f"{bean},name={name}", words, labels)


METRICS: Final = {metric.name: metric for metric in (*_of_beans(), *_OTHERS)}
"""All metrics by name."""
