"""The figures: title, unit, whether more or less is better, and goals.

Owns: the table that the session, the results and the report share.  Never: measures.

A goal relative to a peer is a ratio of speeds: how many times better than the peer this cluster is
to be.  1 means equal; a time of 1.2 times the peer's is the goal 1 / 1.2.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Better = Literal["more", "less"]

OURS: Final = "kcluster"
SYSTEMS: Final = {
    "kcluster": "kcluster",
    "kafka": "Apache Kafka",
    "kfake": "kfake",
    "mock": "librdkafka mock",
}
"""The systems: name for `--systems` -> title."""

GROUPS: Final = {
    "load": "every system in turn: start, produce, consume, ack, requests, transactions, fail-over",
    "secured": "kcluster and Kafka with SASL_SSL and ACLs: produce, consume, ack, handshakes",
    "fast": "this cluster with profile fast: fail-over, idle",
    "warm": "Cluster(...) in a warm process",
    "memory": "memory by connections, partitions, and data passing through",
    "growth": "cost of a record by brokers, partitions, clients",
    "virtual": "a minute of virtual time",
    "page": "the live page in Chromium, and what a watcher costs the cluster",
}


class Figure(Struct, frozen=True):
    """One figure.  `goals`: peer -> the ratio to reach; `limit`: the worst acceptable value."""

    key: str
    title: str
    unit: str
    better: Better
    group: str
    goals: dict[str, float] = {}
    limit: float | None = None
    digits: int = 1
    """Decimal places."""

    @property
    def is_for_peers(self) -> bool:
        return self.group == "load"

    def is_met_by(self, value: float) -> bool:
        """Whether a value is within the limit; true without a limit."""
        if self.limit is None:
            return True
        return value >= self.limit if self.better == "more" else value <= self.limit


def _load(
    key: str,
    title: str,
    unit: str,
    better: Better,
    kafka: float | None = None,
    kfake: float | None = None,
    limit: float | None = None,
    digits: int = 1,
) -> Figure:
    wanted = {"kafka": kafka, "kfake": kfake}
    goals = {peer: ratio for peer, ratio in wanted.items() if ratio is not None}
    return Figure(key, title, unit, better, "load", goals, limit, digits)


def _secured(
    key: str,
    title: str,
    unit: str,
    better: Better = "more",
    kafka: float | None = None,
    limit: float | None = None,
    digits: int = 1,
) -> Figure:
    goals = {} if kafka is None else {"kafka": kafka}
    return Figure(f"secured_{key}", title, unit, better, "secured", goals, limit, digits)


ROUNDS: Final = {
    "secured_produce": "produce, SASL_SSL",
    "plain_produce": "produce, PLAINTEXT",
    "secured_consume": "consume, SASL_SSL",
    "plain_consume": "consume, PLAINTEXT",
}
"""The loads of the secured systems whose CPU is measured: key -> title."""

BROKER_COUNTS: Final = (3, 10, 30, 100)
PARTITION_COUNTS: Final = (10, 100, 1_000, 10_000)
CLIENT_COUNTS: Final = (1, 10, 100, 1_000)
SERIES: Final = {"brokers": BROKER_COUNTS, "partitions": PARTITION_COUNTS, "clients": CLIENT_COUNTS}
GROWTH_LIMIT: Final = 1.5
"""The maximum of a point's cost divided by the cost at the first point of its series."""

PAGE_LOADS: Final[dict[str, tuple[str, float, float]]] = {
    "small": ("3 brokers, 1,000 records/s", 58, 1000 / 60),
    "large": ("50 brokers, 1,000 partitions, 5,000 records/s", 30, 1000 / 30),
}
"""The loads of the page: key -> (title, the least frames per s, the most CPU time of a frame in
ms).  Of 60 frames in a second, 58 allow for the beginning and the end of the measurement."""

_LESS_KFAKE_1_2: Final = round(1 / 1.2, 3)

FIGURES: Final[tuple[Figure, ...]] = (
    _load("spawn_s", "spawn to first Metadata naming all brokers", "s", "less",
          limit=0.30, digits=3),
    _load("produce_1k", "produce 1 KB records", "MB/s", "more", 6, 1.3),
    _load("produce_100b", "produce 100 B records", "thousand/s", "more", 4.5, 1),
    _load("consume", "consume", "MB/s", "more", 2, 1),
    _load("ack_p50_ms", "ack, one record at a time, p50", "ms", "less", 10, _LESS_KFAKE_1_2,
          digits=3),
    _load("ack_p99_ms", "ack, one record at a time, p99", "ms", "less", 20, _LESS_KFAKE_1_2,
          digits=3),
    _load("api_versions_single", "ApiVersions, one by one", "thousand/s", "more", 2, 0.8),
    _load("api_versions_50", "ApiVersions, 50 in flight", "thousand/s", "more", 10, 1.5),
    _load("metadata_single", "Metadata, one by one", "thousand/s", "more", 2, 0.8),
    _load("metadata_50", "Metadata, 50 in flight", "thousand/s", "more", 10, 1.5),
    _load("small_produce", "Produce of 1 record, 5 in flight on 50 connections", "thousand/s",
          "more", 2, 0.7),
    _load("txn_v1_ms", "a transaction of one record, V1", "ms", "less", 10, digits=3),
    _load("txn_v2_ms", "a transaction of one record, V2", "ms", "less", 10, digits=3),
    _load("txn_librdkafka_ms", "a transaction of one record of librdkafka (V1)", "ms", "less",
          digits=3),
    _load("failover_ms", "kill -9 of a leader to the next ack (profile kafka)", "ms", "less", 0.9,
          digits=0),
    _load("failover_librdkafka_ms", "the same for a librdkafka client", "ms", "less", digits=0),
    _load("memory_start_mb", "memory after start", "MB", "less", limit=70),
    _load("memory_load_mb", "memory after the load", "MB", "less"),
    _load("idle_cpu_pct", "CPU when idle (profile kafka)", "% of a core", "less", limit=0.5,
          digits=2),
    _secured("produce", "produce 1 KB records", "MB/s", kafka=3),
    _secured("consume", "consume", "MB/s", kafka=3),
    _secured("ack_p50_ms", "ack, one record at a time, p50", "ms", "less", 10, digits=3),
    _secured("ack_p99_ms", "ack, one record at a time, p99", "ms", "less", digits=3),
    _secured("perf_test", "kafka-producer-perf-test, 1 KB records", "MB/s"),
    _secured("handshakes", "TLS handshakes, two client processes", "per s", limit=1_000, digits=0),
    _secured("handshake_us", "CPU of the brokers per handshake", "µs", "less", digits=0),
    Figure("plain_produce", "produce 1 KB records, PLAINTEXT", "MB/s", "more", "secured"),
    Figure("plain_consume", "consume, PLAINTEXT", "MB/s", "more", "secured"),
    *(
        Figure(f"{key}_{side}_ms_mb", f"{title}: CPU of the {side}", "ms per MB", "less", "secured",
               digits=2)
        for key, title in ROUNDS.items()
        for side in ("servers", "client")
    ),
    Figure("failover_fast_ms", "kill -9 of a leader to the next ack, profile fast", "ms", "less",
           "fast", limit=100, digits=0),
    Figure("failover_fast_librdkafka_ms", "the same for a librdkafka client", "ms", "less", "fast",
           digits=0),
    Figure("idle_cpu_fast_pct", "CPU when idle, profile fast", "% of a core", "less", "fast",
           limit=3, digits=2),
    Figure("warm_ack_ms", "Cluster(...) in a warm process to the first ack", "ms", "less", "warm",
           limit=30),
    Figure("connection_kb", "memory of an idle connection (of 2,000)", "KB", "less", "memory",
           limit=15),
    Figure("replica_kb", "memory of a replica (10,000 partitions, RF 3)", "KB", "less", "memory",
           limit=4, digits=2),
    Figure("start_10k_s", "spawn with those 10,000 partitions", "s", "less", "memory", digits=2),
    Figure("passing_peak_mb", "peak memory while 1 GB passes, 64 MB retained", "MB", "less",
           "memory"),
    Figure("passing_growth_mb", "growth of memory over the last three quarters of it", "MB", "less",
           "memory", limit=16),
    *(
        Figure(f"growth_{series}_{count}", f"{count:,} {series}", "µs a record", "less", "growth",
               digits=2)
        for series, counts in SERIES.items()
        for count in counts
    ),
    *(
        figure
        for load, (title, least, most) in PAGE_LOADS.items()
        for figure in (
            Figure(f"page_{load}_fps", f"page beside {title}: frames", "per s", "more",
                   "page", limit=least, digits=0),
            Figure(f"page_{load}_long_ms", f"page beside {title}: tasks above 50 ms, of 3 s", "ms",
                   "less", "page",
                   digits=0),
            Figure(f"page_{load}_cpu_ms", f"page beside {title}: CPU of a frame", "ms", "less",
                   "page", limit=most),
        )
    ),
    Figure("watcher_pct", "5,000 records/s: CPU of the cluster, more with a watcher", "%",
           "less", "page", limit=8),
    Figure("virtual_ms", "60 s of virtual time: 50 records/s, acks=all, two failures", "ms", "less",
           "virtual", limit=150),
)  # fmt: skip

BY_KEY: Final = {figure.key: figure for figure in FIGURES}


def chosen(words: list[str]) -> list[Figure]:
    """The figures named by groups or figures, in the table's order; all if there are no names.
    Raises ValueError for an unknown name."""
    for word in words:
        if word not in GROUPS and word not in BY_KEY:
            raise ValueError(
                f"unknown figure or group {word!r}; groups: {', '.join(GROUPS)}; figures: "
                + ", ".join(BY_KEY)
            )
    return [x for x in FIGURES if not words or x.group in words or x.key in words]
