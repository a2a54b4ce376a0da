"""A changed config takes effect at once: one request sets it, another shows the effect."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.node import BrokerNode
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.records import Record, build_batch, read_records
from tests.rig.cluster import TOPIC, Simulated
from tests.rig.requests import batch, produce_request

OF_TOPIC, OF_BROKER = 2, 4
ALL_BROKERS = ""
RETENTION_CHECK_MS = 300_000
LOG_CLEANER_BACKOFF_MS = 15_000
INCREMENTAL = m.IncrementalAlterConfigsRequest


def alter(
    t: Simulated, kind: int, resource: str, to: int | None = None, **configs: str | None
) -> None:
    """Set configs, or (None) delete them, at the broker concerned; wait until all brokers know."""
    body = INCREMENTAL(
        resources=[
            INCREMENTAL.AlterConfigsResource(
                kind,
                resource,
                [
                    INCREMENTAL.AlterableConfig(
                        name.replace("_", "."), 0 if value is not None else 1, value
                    )
                    for name, value in configs.items()
                ],
            )
        ]
    )
    if to is None:
        to = int(resource) if kind == OF_BROKER and resource else 1
    (answer,) = t.ask(to, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).body.responses
    assert answer.error_code == ErrorCode.NONE, answer
    t.run_for(10)


def produce(t: Simulated, *values: bytes, at_ms: int | None = None) -> Any:
    """One batch of records of one key with acks=all; the partition's answer."""
    records = batch(*values, timestamp_ms=t.now_ms if at_ms is None else at_ms, key=b"k")
    body = produce_request(TOPIC, 0, records, timeout_ms=1_000)
    answer = t.ask(t.leader_id, ApiKey.PRODUCE, 9, body)
    t.run_for(5_000)
    return answer.body.responses[0].partition_responses[0]


def fetched(t: Simulated, offset: int = 0) -> list[Batch]:
    return list(t.fetch(offset).partition.records)


@pytest.fixture
def t() -> Simulated:
    return Simulated()


@pytest.mark.parametrize("by_broker", [False, True])
def test_effect__max_message_bytes(t: Simulated, by_broker: bool) -> None:
    assert produce(t, bytes(1_000)).error_code == ErrorCode.NONE
    if by_broker:
        alter(t, OF_BROKER, ALL_BROKERS, message_max_bytes="500")
    else:
        alter(t, OF_TOPIC, TOPIC, max_message_bytes="500")
    assert produce(t, bytes(1_000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(t, bytes(100)).error_code == ErrorCode.NONE


def test_effect__topic_configs_override_broker_and_cluster_configs(t: Simulated) -> None:
    alter(t, OF_BROKER, ALL_BROKERS, message_max_bytes="100")
    alter(t, OF_BROKER, str(t.leader_id), message_max_bytes="500")
    assert produce(t, bytes(200)).error_code == ErrorCode.NONE
    assert produce(t, bytes(600)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    alter(t, OF_TOPIC, TOPIC, max_message_bytes="700")
    assert produce(t, bytes(600)).error_code == ErrorCode.NONE
    alter(t, OF_TOPIC, TOPIC, max_message_bytes=None)
    alter(t, OF_BROKER, str(t.leader_id), message_max_bytes=None)
    assert produce(t, bytes(200)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_effect__min_insync_replicas(t: Simulated) -> None:
    t.kill(3)
    t.run_for(60_000)
    assert produce(t, b"two are enough").error_code == ErrorCode.NONE
    alter(t, OF_TOPIC, TOPIC, min_insync_replicas="3")
    assert produce(t, b"two are not").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    alter(t, OF_TOPIC, TOPIC, min_insync_replicas=None)
    alter(t, OF_BROKER, ALL_BROKERS, min_insync_replicas="3")
    assert produce(t, b"nor here").error_code == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize("by_broker", [False, True])
def test_effect__message_timestamp_type(t: Simulated, by_broker: bool) -> None:
    assert produce(t, b"mine", at_ms=7).log_append_time_ms == -1
    if by_broker:
        alter(t, OF_BROKER, str(t.leader_id), log_message_timestamp_type="LogAppendTime")
    else:
        alter(t, OF_TOPIC, TOPIC, message_timestamp_type="LogAppendTime")
    now_ms = t.now_ms
    assert produce(t, b"theirs", at_ms=7).log_append_time_ms == now_ms
    mine, theirs = fetched(t)
    assert (mine.max_timestamp, theirs.max_timestamp) == (7, now_ms)


def test_effect__message_timestamp_before_max(t: Simulated) -> None:
    alter(t, OF_TOPIC, TOPIC, message_timestamp_before_max_ms="100")
    t.run_for(10_000)
    assert produce(t, b"old", at_ms=t.now_ms - 200).error_code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(("codec", "number"), [("gzip", 1), ("lz4", 3), ("zstd", 4)])
def test_effect__compression_type(t: Simulated, codec: str, number: int) -> None:
    produce(t, b"as it comes")
    alter(t, OF_TOPIC, TOPIC, compression_type=codec)
    produce(t, b"a" * 500)
    alter(t, OF_TOPIC, TOPIC, compression_type="uncompressed")
    produce(t, b"plain")
    first, second, third = fetched(t)
    assert [batch.codec for batch in (first, second, third)] == [0, number, 0]
    assert [record.value for record in read_records(second)] == [b"a" * 500]


def test_effect__retention_ms(t: Simulated) -> None:
    produce(t, b"old", at_ms=t.now_ms)
    t.run_for(RETENTION_CHECK_MS)
    assert t.replica(1).log.log_start_offset == 0
    alter(t, OF_TOPIC, TOPIC, retention_ms="1000")
    t.run_for(RETENTION_CHECK_MS)
    assert t.replica(1).log.log_start_offset == 1


def test_effect__retention_of_one_broker_applies_to_that_broker(t: Simulated) -> None:
    """Its followers keep the deleted records until they learn its log start offset."""
    produce(t, b"old", at_ms=t.now_ms)
    other = next(id_ for id_ in (1, 2, 3) if id_ != t.leader_id)
    alter(t, OF_BROKER, str(other), log_retention_ms="1000")
    t.run_for(2 * RETENTION_CHECK_MS)
    assert t.replica(other).log.log_start_offset == 1
    assert t.replica(t.leader_id).log.log_start_offset == 0


def test_effect__retention_bytes(t: Simulated) -> None:
    size_bytes = len(build_batch([Record(0, 0, b"k", bytes(1_000), ())]))
    alter(t, OF_TOPIC, TOPIC, internal_segment_bytes=str(size_bytes + 20), retention_bytes="1")
    for _ in range(3):
        produce(t, bytes(1_000))
    t.run_for(RETENTION_CHECK_MS)
    assert t.replica(1).log.log_start_offset >= 2


def test_effect__segment_ms(t: Simulated) -> None:
    produce(t, b"first")
    alter(t, OF_TOPIC, TOPIC, segment_ms="1000")
    t.run_for(2_000)
    produce(t, b"second")
    t.run_for(2_000)
    produce(t, b"third")
    assert len(t.replica(1).log.segments) == 3


def test_effect__cleanup_policy(t: Simulated) -> None:
    alter(t, OF_TOPIC, TOPIC, segment_ms="1000", min_cleanable_dirty_ratio="0.01")
    for value in (b"1", b"2", b"3"):
        produce(t, value)
    t.run_for(RETENTION_CHECK_MS)
    assert t.values(1) == [b"1", b"2", b"3"]
    alter(t, OF_TOPIC, TOPIC, cleanup_policy="compact")
    t.run_for(2 * LOG_CLEANER_BACKOFF_MS)
    assert t.values(1) in ([b"2", b"3"], [b"3"])  # the active segment is never cleaned


@pytest.mark.parametrize("by_cluster", [False, True])
def test_effect__unclean_leader_election(t: Simulated, by_cluster: bool) -> None:
    for broker in (2, 3):
        t.kill(broker)
    t.run_for(60_000)
    assert t.isr == [1]
    produce(t, b"1 has it alone")
    t.kill(1)
    for broker in (2, 3):
        t.start(broker)
    t.run_for(60_000)
    assert t.state.leader is None
    if by_cluster:
        alter(t, OF_BROKER, ALL_BROKERS, to=2, unclean_leader_election_enable="true")
    else:
        alter(t, OF_TOPIC, TOPIC, to=2, unclean_leader_election_enable="true")
    t.run_for(301_000)  # unclean.leader.election.interval.ms
    assert t.state.leader in (2, 3)


@pytest.mark.parametrize(
    ("of_brokers", "factor"), [({}, 3), ({"default.replication.factor": 1}, 1)]
)
def test_effect__default_replication_factor(of_brokers: dict[str, int], factor: int) -> None:
    """Of auto-created topics, and of topics that CreateTopics creates with -1."""
    t = Simulated(of_brokers=of_brokers)
    t.ask(
        1, ApiKey.METADATA, 9, m.MetadataRequest([m.MetadataRequest.MetadataRequestTopic(name="a")])
    )
    topic = m.CreateTopicsRequest.CreatableTopic("b", num_partitions=1, replication_factor=-1)
    t.ask(1, ApiKey.CREATE_TOPICS, 5, m.CreateTopicsRequest([topic], 5_000))
    t.run_for(1_000)
    replicas = {found.topic: len(found.replicas) for found in t.status().partitions}
    assert (replicas["a"], replicas["b"]) == (factor, factor)


def keep_the_newest(t: Simulated) -> None:
    """Three values of one key, each in a segment of its own."""
    alter(
        t,
        OF_TOPIC,
        TOPIC,
        segment_ms="1000",
        min_cleanable_dirty_ratio="0.01",
        cleanup_policy="compact",
    )
    for value in (b"1", b"2", b"3"):
        produce(t, value)


def test_effect__log_cleaner_backoff() -> None:
    t = Simulated(of_brokers={"log.cleaner.backoff.ms": 100_000})
    keep_the_newest(t)
    assert t.values(1) == [b"1", b"2", b"3"]
    t.run_for(100_000)
    assert t.values(1) == [b"2", b"3"]  # the active segment is never cleaned
    alter(t, OF_BROKER, ALL_BROKERS, log_cleaner_backoff_ms="1000")
    t.run_for(100_000)
    produce(t, b"4")
    t.run_for(1_000)
    assert t.values(1) == [b"3", b"4"]


def test_effect__log_cleaner_enable() -> None:
    t = Simulated(of_brokers={"log.cleaner.enable": False})
    keep_the_newest(t)
    t.run_for(2 * RETENTION_CHECK_MS)
    assert t.values(1) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(("enabled", "leader_after"), [(True, 2), (False, 1)])
def test_effect__controlled_shutdown_enable(enabled: bool, leader_after: int) -> None:
    """Without it leaders are not moved first: partitions lack one until the session ends."""
    t = Simulated(of_brokers={"controlled.shutdown.enable": enabled})
    t.kill(1, "clean")
    t.run_for(1_000)
    assert t.dispatcher.processes[1].node is None
    assert t.plan.disks[1].clean_shutdown
    assert t.state.leader == leader_after
    t.run_for(10_000)
    assert t.state.leader == 2


def test_effect__controller_socket_timeout() -> None:
    """No request to the controller waits longer, whatever its origin."""
    t = Simulated(of_brokers={"controller.socket.timeout.ms": 700})
    node = t.dispatcher.processes[1].node
    assert isinstance(node, BrokerNode)
    answers: list[tuple[object, int]] = []
    t.cut_off(1)
    asked_ms = t.now_ms
    node.ask_controller(
        m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=node.epoch),
        lambda body, now_ms: answers.append((body, now_ms - asked_ms)),
        30_000,
        asked_ms,
    )
    t.run_for(5_000)
    assert answers == [(None, 700)]


@pytest.mark.parametrize("by_broker", [False, True])
@pytest.mark.parametrize(("codec", "easy", "hard"), [("gzip", 1, 9), ("zstd", -50, 19)])
def test_effect__compression_level(
    t: Simulated, codec: str, easy: int, hard: int, by_broker: bool
) -> None:
    words = b" ".join(b"%d" % (n * n % 977) for n in range(2_000))
    alter(t, OF_TOPIC, TOPIC, compression_type=codec)
    name = f"compression_{codec}_level"
    for level in (easy, hard):
        if by_broker:
            alter(t, OF_BROKER, ALL_BROKERS, None, **{name: str(level)})
        else:
            alter(t, OF_TOPIC, TOPIC, None, **{name: str(level)})
        produce(t, words)
    fast, small = fetched(t)
    assert small.size_bytes < 0.9 * fast.size_bytes
    assert read_records(small)[0].value == read_records(fast)[0].value == words


def test_effect__thread_counts_are_accepted_without_effect(t: Simulated) -> None:
    alter(t, OF_BROKER, "1", num_io_threads="16", num_replica_fetchers="2", background_threads="5")
    assert produce(t, b"as before").error_code == ErrorCode.NONE


def test_effect__an_unknown_config_does_not_block_the_others(t: Simulated) -> None:
    alter(t, OF_BROKER, ALL_BROKERS, no_such="1", log_retention_ms="5000")
    node = t.dispatcher.processes[2].node
    assert isinstance(node, BrokerNode)
    assert node.config.log_retention_ms == 5_000
