"""The hot paths that `make bench-micro` times, each as a function to be called repeatedly.

Owns: the cases and their input.  Never: measures time (micro.py).

A case is a function that prepares everything and returns the call to be timed.  A call that needs
new input each time takes it from a list of `CALLS` entries prepared in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from bench.wire import ACKS_ALL, batch_of
from kcluster.broker.channel import Channel
from kcluster.config.kafka.definitions import BrokerConfig, TopicConfig
from kcluster.config.topology.model import Topology
from kcluster.contract import Reply, Request
from kcluster.deaths import ProcessState
from kcluster.partition.log.log import Log
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, codec
from kcluster.protocol.framing import (
    FrameReader,
    decode_request_header,
    encode_request_frame,
    encode_response_frame,
)
from kcluster.protocol.records.batches import check_crc, parse_batches
from kcluster.protocol.records.records import Record, build_batch
from kcluster.runtime.build import build
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process

Call = Callable[[], object]
Case = Callable[[], Call]

TOPIC: Final = "orders"
CALLS: Final = 6_000
"""The maximum number of calls of one case."""
CHUNK_FRAMES: Final = 20
_ID: Final = bytes(range(16))


# ------------------------------------------------------------------------------------ codec


def hot_messages() -> dict[str, tuple[ApiKey, int, Any, Any]]:
    """Name -> (key, version, request, response), as current clients send and receive them."""
    produce = m.ProduceRequest(
        acks=ACKS_ALL,
        timeout_ms=30_000,
        topic_data=[
            m.ProduceRequest.TopicProduceData(
                name=TOPIC,
                topic_id=_ID,
                partition_data=[m.ProduceRequest.PartitionProduceData(3, batch_of(10, 100))],
            )
        ],
    )
    produced = m.ProduceResponse(
        responses=[
            m.ProduceResponse.TopicProduceResponse(
                name=TOPIC,
                topic_id=_ID,
                partition_responses=[
                    m.ProduceResponse.PartitionProduceResponse(index=3, base_offset=12_345)
                ],
            )
        ]
    )
    fetch = m.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        session_id=7,
        session_epoch=3,
        topics=[
            m.FetchRequest.FetchTopic(
                topic=TOPIC,
                topic_id=_ID,
                partitions=[m.FetchRequest.FetchPartition(partition=at) for at in range(3)],
            )
        ],
    )
    fetched = m.FetchResponse(
        session_id=7,
        responses=[
            m.FetchResponse.FetchableTopicResponse(
                topic=TOPIC,
                topic_id=_ID,
                partitions=[
                    m.FetchResponse.PartitionData(
                        partition_index=at, high_watermark=99, records=batch_of(10, 100)
                    )
                    for at in range(3)
                ],
            )
        ],
    )
    brokers = [m.MetadataResponse.MetadataResponseBroker(at, "127.0.0.1", 9092) for at in (1, 2, 3)]
    partitions = [
        m.MetadataResponse.MetadataResponsePartition(
            partition_index=at, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for at in range(6)
    ]
    topic = m.MetadataResponse.MetadataResponseTopic(
        name=TOPIC, topic_id=_ID, partitions=partitions
    )
    request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    response = m.MetadataResponse(brokers=brokers, cluster_id="c" * 22, topics=[topic])
    return {
        "Produce v11": (ApiKey.PRODUCE, 11, produce, produced),
        "Fetch v16": (ApiKey.FETCH, 16, fetch, fetched),
        "Metadata v12": (ApiKey.METADATA, 12, request, response),
        **_small_messages(),
    }


def _small_messages() -> dict[str, tuple[ApiKey, int, Any, Any]]:
    versions = [m.ApiVersionsResponse.ApiVersion(key, 0, 9) for key in range(60)]
    commit = m.OffsetCommitRequest.OffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[
            m.OffsetCommitRequest.OffsetCommitRequestPartition(at, 12_345) for at in range(6)
        ],
    )
    done = m.OffsetCommitResponse.OffsetCommitResponseTopic(
        name=TOPIC,
        partitions=[m.OffsetCommitResponse.OffsetCommitResponsePartition(at) for at in range(6)],
    )
    return {
        "ApiVersions v4": (
            ApiKey.API_VERSIONS,
            4,
            m.ApiVersionsRequest(client_software_name="bench", client_software_version="1"),
            m.ApiVersionsResponse(api_keys=versions),
        ),
        "Heartbeat v4": (
            ApiKey.HEARTBEAT,
            4,
            m.HeartbeatRequest(group_id="group", generation_id=1, member_id="member-1"),
            m.HeartbeatResponse(),
        ),
        "OffsetCommit v8": (
            ApiKey.OFFSET_COMMIT,
            8,
            m.OffsetCommitRequest(group_id="group", member_id="member-1", topics=[commit]),
            m.OffsetCommitResponse(topics=[done]),
        ),
    }


def codec_cases() -> Iterator[tuple[str, Case]]:
    """Decode a request with its header; encode a response with its frame."""
    for name, (key, version, request, response) in hot_messages().items():
        yield f"{name}: decode request", _decoding(key, version, request)
        yield f"{name}: encode response", _encoding(key, version, response)


def _decoding(key: ApiKey, version: int, request: Any) -> Case:
    def prepare() -> Call:
        frame = memoryview(_frame(key, version, request))
        decode_body = codec(key, version).decode_request
        decode_body(frame, decode_request_header(frame).body_position)
        decode = codec(key, version).decode_request
        return lambda: decode(frame, decode_request_header(frame).body_position)

    return prepare


def _encoding(key: ApiKey, version: int, response: Any) -> Case:
    return lambda: lambda: encode_response_frame(key, version, 7, response)


def _frame(key: ApiKey, version: int, request: Any) -> bytearray:
    """A request without its length."""
    return bytearray(b"".join(encode_request_frame(key, version, 7, "bench", request)))[4:]


# -------------------------------------------------------------------------- frames, batches, log


def frame_loop() -> Call:
    """Split a read of 20 small Produce requests into frames; the time is for all 20."""
    key, version, request, _ = hot_messages()["Produce v11"]
    frame = b"".join(encode_request_frame(key, version, 7, "bench", request))
    chunk = memoryview(frame * CHUNK_FRAMES)
    reader = FrameReader(100 << 20)
    return lambda: reader.feed(chunk, [])


def parsing(records: int) -> Case:
    """Parse the header of one batch."""

    def prepare() -> Call:
        buffer = memoryview(bytearray(batch_of(records, 1_000)))
        return lambda: parse_batches(buffer)

    return prepare


def checking_crc() -> Call:
    (batch,) = parse_batches(memoryview(bytearray(batch_of(1_000, 1_000))))
    return lambda: check_crc(batch)


def appending(records: int, codec: str = "none", sizes: Sequence[int] = (100,)) -> Case:
    """Validate one batch, assign its offsets and append it to a leader's log.  `sizes`: of values,
    in turns."""

    def prepare() -> Call:
        config = TopicConfig.resolve(BrokerConfig.resolve("kafka"), {})
        made = [Record(at, 0, None, bytes(sizes[at % len(sizes)])) for at in range(records)]
        batch = bytes(build_batch(made, compression=codec))
        log = Log(_ID, 0)
        batches = _fresh(lambda: memoryview(bytearray(batch)))
        return lambda: log.append_as_leader(next(batches), 1, 1_000, config)

    return prepare


def _fresh(make: Callable[[], Any]) -> Iterator[Any]:
    """Input prepared in advance for all runs of one case; more is made when it runs out."""
    ready = [make() for _ in range(CALLS)]
    yield from ready
    while True:
        yield make()


# ---------------------------------------------------------------------------- whole dispatches


class Answers:
    """The client side of a dispatcher, which only counts replies."""

    def __init__(self) -> None:
        self.last: Any = None

    def reply(self, node_id: int, reply: Reply) -> None:
        self.last = reply

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        raise AssertionError(reason)

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        raise AssertionError("no broker moves")

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        return ()

    def process_changed(self, process: Process, was: ProcessState) -> None:
        pass

    def accept_clients(self, node_id: int) -> None:
        pass


def small_cluster() -> tuple[Dispatcher, Answers, int]:
    """(three idle brokers with one topic of one partition and RF 3, its leader)."""
    topics = {TOPIC: {"assignment": [[1, 2, 3]], "config": {"retention.bytes": -1}}}
    plan = build(Topology.of(brokers=3, topics=topics), 1, {1: [9092], 2: [9093], 3: [9094]})
    answers = Answers()
    dispatcher = Dispatcher(plan.fabric, plan.processes, answers)
    dispatcher.at(0)
    for process in plan.processes:
        dispatcher.start(process.node_id)
    dispatcher.at(5_000_000)
    return dispatcher, answers, 1


def _request(key: ApiKey, version: int, body: Any) -> Request:
    return Request(1, key, version, 7, "bench", body)


def produce_body(batch: bytes) -> Any:
    data = m.ProduceRequest.PartitionProduceData(0, memoryview(bytearray(batch)))
    topic = m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    return m.ProduceRequest(acks=ACKS_ALL, timeout_ms=30_000, topic_data=[topic])


def producing(records: int, size_bytes: int) -> Case:
    """From the decoded request to the reply, acks=all: append, two followers, high watermark."""

    def prepare() -> Call:
        dispatcher, answers, leader = small_cluster()
        batch = batch_of(records, size_bytes)
        bodies = _fresh(lambda: produce_body(batch))

        def call() -> None:
            answers.last = None
            dispatcher.dispatch(leader, _request(ApiKey.PRODUCE, 9, next(bodies)))
            assert answers.last is not None, "not acked within the dispatch"

        call()
        assert not answers.last.body.responses[0].partition_responses[0].error_code
        return call

    return prepare


def producing_from_bytes() -> Call:
    """The same from the frame to the response's bytes, as on a connection."""
    dispatcher, answers, leader = small_cluster()
    node: Any = dispatcher.processes[leader].node
    channel = Channel(node)
    frame = _frame(ApiKey.PRODUCE, 9, produce_body(batch_of(1, 100)))
    frames = _fresh(lambda: memoryview(bytearray(frame)))

    def call() -> None:
        request = channel.receive(next(frames), 1, "127.0.0.1", dispatcher.now_ms)
        assert isinstance(request, Request)
        dispatcher.dispatch(leader, request)
        channel.answer(answers.last)

    return call


def fetching() -> Call:
    """A consumer's fetch of one batch, session-less, from the decoded request to the reply."""
    dispatcher, _, leader = small_cluster()
    body = produce_body(batch_of(10, 100))
    dispatcher.dispatch(leader, _request(ApiKey.PRODUCE, 9, body))
    partition = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = m.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[m.FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])],
    )
    return lambda: dispatcher.dispatch(leader, _request(ApiKey.FETCH, 12, request))


def cached_metadata() -> Call:
    """Metadata from the frame to the response's bytes, with the response in the cache."""
    dispatcher, answers, leader = small_cluster()
    node: Any = dispatcher.processes[leader].node
    channel = Channel(node)
    key, version, request, _ = hot_messages()["Metadata v12"]
    frame = memoryview(_frame(key, version, request))
    first = channel.receive(frame, 1, "127.0.0.1", dispatcher.now_ms)
    assert isinstance(first, Request)
    dispatcher.dispatch(leader, first)
    channel.answer(answers.last)
    return lambda: channel.receive(frame, 1, "127.0.0.1", 0)


def quiet_second() -> Call:
    """One second of an idle cluster: heartbeats, and followers' fetches."""
    dispatcher, _, _ = small_cluster()

    def call() -> None:
        dispatcher.at(dispatcher.now_us + 1_000_000)

    return call


def all_cases() -> dict[str, Case]:
    """Every case by its name."""
    return {
        **dict(codec_cases()),
        f"frame loop, {CHUNK_FRAMES} Produce requests in a read": lambda: frame_loop(),
        "parse batch header": parsing(10),
        "check CRC of a 1 MB batch": checking_crc,
        "append 1 record as leader": appending(1),
        "append 100 records as leader": appending(100),
        "append 100 records of many sizes as leader": appending(100, sizes=(9, 80, 31, 250)),
        "append 100 records in zstd as leader": appending(100, "zstd"),
        "produce 1 record: dispatch, 3 brokers, RF 3": producing(1, 100),
        "produce 100 records: dispatch, 3 brokers, RF 3": producing(100, 100),
        "produce 1 record: frame to answer": producing_from_bytes,
        "fetch one batch: dispatch": fetching,
        "Metadata asked before: frame to answer": cached_metadata,
        "an idle second, 3 brokers": quiet_second,
    }
