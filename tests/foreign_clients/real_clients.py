"""Real clients for tests: quick to retry, quiet, with the same interface for both libraries.

Owns: their settings, a load and what it recorded, reading a whole topic.  Never: asserts what
a test is about.  Both libraries run unpatched in this process, beside the cluster's thread.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import confluent_kafka
import kafka

from tests.rig.patience import PATIENCE_S

LIMIT_S = PATIENCE_S
"""For anything to come about, on a busy machine."""
KEPT = {"retention.ms": "-1"}
"""The config of a topic whose records are stamped 1970: any other loses them at the brokers' next
look for expired ones, which under profile `fast` comes every 15 s."""

SILENT = logging.getLogger("tests.foreign_clients.librdkafka")
SILENT.setLevel(logging.CRITICAL)


class Read(NamedTuple):
    """One record as a consumer got it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def until(condition: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """Call `condition`, which waits a little itself (a poll of a client), until it is true."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"no {what} within {limit_s:g} s"
    return found


def comes_to(call: Callable[[], Any], expected: Any, limit_s: float = 2.0) -> None:
    """Call until the result is as expected: any broker may answer, and one may learn of a change
    shortly after another."""
    deadline = time.monotonic() + limit_s
    while (last := call()) != expected:
        assert time.monotonic() < deadline, f"{last} within {limit_s:g} s, not {expected}"


# ------------------------------------------------------------------------------ kafka-python


def python_settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    """Settings of all kafka-python clients here."""
    return {
        "bootstrap_servers": bootstrap.split(","),
        "retry_backoff_ms": 10,
        "reconnect_backoff_ms": 10,
        "reconnect_backoff_max_ms": 50,
        **more,
    }


@contextmanager
def python_producer(bootstrap: str, **more: Any) -> Iterator[kafka.KafkaProducer]:
    producer = kafka.KafkaProducer(**python_settings(bootstrap, **more))
    try:
        yield producer
    finally:
        producer.close(timeout=2)


@contextmanager
def python_consumer(bootstrap: str, *topics: str, **more: Any) -> Iterator[kafka.KafkaConsumer]:
    settings = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 50, **more}
    consumer = kafka.KafkaConsumer(*topics, **python_settings(bootstrap, **settings))
    try:
        yield consumer
    finally:
        consumer.close(timeout_ms=2_000)


@contextmanager
def python_admin(bootstrap: str) -> Iterator[kafka.KafkaAdminClient]:
    admin = kafka.KafkaAdminClient(**python_settings(bootstrap))
    try:
        yield admin
    finally:
        admin.close()


def _taken(
    poll: Callable[[], list[Read]], is_enough: Callable[[list[Read]], bool], what: str
) -> list[Read]:
    """Poll until it is enough."""
    taken: list[Read] = []

    def polled() -> bool:
        taken.extend(poll())
        return is_enough(taken)

    until(polled, what)
    return taken


def python_poll(consumer: kafka.KafkaConsumer, timeout_ms: int = 300) -> list[Read]:
    """The records of one poll.  This client abandons a join in progress at the timeout and joins
    again: with short timeouts a group may never become stable."""
    return [
        Read(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
        for records in consumer.poll(timeout_ms=timeout_ms).values()
        for r in records
    ]


def python_take(consumer: kafka.KafkaConsumer, count: int) -> list[Read]:
    """Poll until there are `count` records."""
    return _taken(
        lambda: python_poll(consumer), lambda taken: len(taken) >= count, f"{count} records"
    )


def python_read(bootstrap: str, topic: str, **more: Any) -> list[Read]:
    """All records of a topic, up to where it ends now."""
    with python_consumer(bootstrap, **more) as consumer:
        partitions = until(lambda: consumer.partitions_for_topic(topic), "metadata")
        parts = [kafka.TopicPartition(topic, partition) for partition in sorted(partitions)]
        consumer.assign(parts)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(parts)
        return _taken(
            lambda: python_poll(consumer),
            lambda _: all(consumer.position(part) >= ends[part] for part in parts),
            f"end of {topic}",
        )


def python_filled(bootstrap: str, topic: str, count: int) -> kafka.TopicPartition:
    """A topic's first partition, once it has records 0, 1 …, stamped 1000, 2000 … ms."""
    with python_producer(bootstrap) as producer:
        for number in range(count):
            at_ms = 1_000 * (number + 1)
            producer.send(topic, b"%d" % number, partition=0, timestamp_ms=at_ms)
        producer.flush(timeout=LIMIT_S)
    return kafka.TopicPartition(topic, 0)


# ---------------------------------------------------------------------------- confluent-kafka


def confluent_settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    """Settings of all confluent-kafka clients here; `more` with `_` for `.`, and callbacks."""
    return {
        "bootstrap.servers": bootstrap,
        "retry.backoff.ms": 10,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 50,
        "topic.metadata.refresh.fast.interval.ms": 10,
        "topic.metadata.refresh.interval.ms": 50,
        "logger": SILENT,
        **{
            name if callable(value) else name.replace("_", "."): value
            for name, value in more.items()
        },
    }


@contextmanager
def confluent_producer(bootstrap: str, **more: Any) -> Iterator[confluent_kafka.Producer]:
    producer = confluent_kafka.Producer(confluent_settings(bootstrap, linger_ms=1, **more))
    try:
        yield producer
    finally:
        producer.purge()
        producer.flush(2)


@contextmanager
def confluent_consumer(bootstrap: str, **more: Any) -> Iterator[confluent_kafka.Consumer]:
    settings: dict[str, Any] = {
        "group_id": "nobody",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_wait_max_ms": 50,
        "fetch_error_backoff_ms": 10,
        "heartbeat_interval_ms": 50,
        **more,
    }
    if more.get("group_protocol") == "consumer":
        del settings["heartbeat_interval_ms"]  # the broker says how often (KIP-848)
    consumer = confluent_kafka.Consumer(confluent_settings(bootstrap, **settings))
    try:
        yield consumer
    finally:
        consumer.close()


def confluent_poll(consumer: confluent_kafka.Consumer, timeout_s: float = 0.05) -> list[Read]:
    """The records of one call of consume; transient errors are ignored."""
    taken = []
    for message in consumer.consume(1_000, timeout_s):
        error = message.error()
        if error is None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            headers: Any = tuple(message.headers() or ())
            at_ms = message.timestamp()[1]
            taken.append(Read(partition, offset, message.key(), message.value(), headers, at_ms))
        else:
            assert error.retriable() or not error.fatal(), error
    return taken


def confluent_take(consumer: confluent_kafka.Consumer, count: int) -> list[Read]:
    """Consume until there are `count` records."""
    return _taken(
        lambda: confluent_poll(consumer), lambda taken: len(taken) >= count, f"{count} records"
    )


def confluent_read(bootstrap: str, topic: str, **more: Any) -> list[Read]:
    """All records of a topic, up to where it ends now."""
    with confluent_consumer(bootstrap, **more) as consumer:
        partitions = consumer.list_topics(topic, LIMIT_S).topics[topic].partitions
        parts = [
            confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)
            for partition in sorted(partitions)
        ]
        ends = [consumer.get_watermark_offsets(part, LIMIT_S)[1] for part in parts]
        consumer.assign(parts)
        taken: list[Read] = []
        reached = dict.fromkeys(partitions, 0)

        def at_end() -> bool:
            for record in confluent_poll(consumer):
                taken.append(record)
                reached[record.partition] = record.offset + 1
            return all(reached[at.partition] >= end for at, end in zip(parts, ends, strict=True))

        until(at_end, f"end of {topic}")
        return taken


def confluent_values(
    bootstrap: str,
    topic: str,
    isolation: str = "read_committed",
    partitions: int = 1,
    limit_s: float = LIMIT_S,
) -> list[bytes]:
    """The values that a consumer with this isolation level gets, to the end of each partition."""
    values: list[bytes] = []
    ended: set[int] = set()
    settings = {"isolation_level": isolation, "enable_partition_eof": True}
    with confluent_consumer(bootstrap, **settings) as consumer:
        beginning = confluent_kafka.OFFSET_BEGINNING
        consumer.assign(
            [confluent_kafka.TopicPartition(topic, index, beginning) for index in range(partitions)]
        )

        def at_end() -> bool:
            for message in consumer.consume(1_000, 0.1):
                error, value, partition = message.error(), message.value(), message.partition()
                assert partition is not None
                if error is None:
                    assert value is not None
                    values.append(value)
                    ended.discard(partition)
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(partition)
            return len(ended) == partitions

        until(at_end, f"end of {topic}", limit_s)
    return values


def confluent_result(futures: dict[Any, Any]) -> Any:
    """The result of the only future of an answer."""
    (future,) = futures.values()
    return future.result(LIMIT_S)


def confluent_outcomes(futures: dict[Any, Any]) -> dict[Any, Any]:
    """The outcome of each future of an answer: its result, or the code of its error."""
    outcomes = {}
    for key, future in futures.items():
        try:
            outcomes[key] = future.result(LIMIT_S)
        except confluent_kafka.KafkaException as refused:
            outcomes[key] = refused.args[0].code()
    return outcomes


def confluent_filled(bootstrap: str, topic: str, count: int) -> str:
    """The topic, once its first partition has records 0, 1 …, stamped 1000, 2000 … ms."""
    with confluent_producer(bootstrap) as producer:
        for number in range(count):
            at_ms = 1_000 * (number + 1)
            producer.produce(topic, b"%d" % number, partition=0, timestamp=at_ms)
        assert producer.flush(LIMIT_S) == 0
    return topic


READERS = {"kafka-python": python_read, "confluent-kafka": confluent_read}


# -------------------------------------------------------------------------------------- load


class Load(ABC):
    """Numbered records sent by a thread until the end of the `with` block.

    `acked`: place of each number that was acked; `failed`: error of each that was not.
    """

    BURST, UNANSWERED_MAX = 20, 400

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1, **settings: Any) -> None:
        self.topic, self.partitions = topic, partitions
        self.sent = 0
        self.acked: dict[int, tuple[int, int]] = {}
        self.failed: dict[int, str] = {}
        self._bootstrap, self._settings = bootstrap, settings
        self._stopping = threading.Event()
        self._moved = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"load of {topic}", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(2 * LIMIT_S)
        assert not self._thread.is_alive(), f"{self.sent} sent, {len(self.acked)} acked"

    def wait_acked(self, more: int = 100) -> None:
        """Wait until this many more records have been acked."""
        target = len(self.acked) + more
        with self._moved:
            came = self._moved.wait_for(lambda: len(self.acked) >= target, LIMIT_S)
        assert came, f"{len(self.acked)} of {target} acks within {LIMIT_S:g} s; {self.failed}"

    @abstractmethod
    def _run(self) -> None: ...

    def _loop(self, send: Callable[[int], None], serve: Callable[[], object]) -> None:
        while not self._stopping.is_set():
            if self.sent - len(self.acked) - len(self.failed) < self.UNANSWERED_MAX:
                for _ in range(self.BURST):
                    send(self.sent)
                    self.sent += 1
            serve()
            self._stopping.wait(0.002)

    def _on_acked(self, number: int, partition: int, offset: int) -> None:
        with self._moved:
            self.acked[number] = (partition, offset)
            self._moved.notify_all()

    def _on_failed(self, number: int, error: str) -> None:
        self.failed[number] = error


class PythonLoad(Load):
    """Of a KafkaProducer."""

    def _run(self) -> None:
        with python_producer(self._bootstrap, linger_ms=1, **self._settings) as producer:

            def send(number: int) -> None:
                producer.send(
                    self.topic, b"%d" % number, partition=number % self.partitions
                ).add_callback(
                    lambda place: self._on_acked(number, place.partition, place.offset)
                ).add_errback(lambda error: self._on_failed(number, type(error).__name__))

            self._loop(send, lambda: None)
            producer.flush(timeout=LIMIT_S)


class ConfluentLoad(Load):
    """Of a confluent_kafka.Producer."""

    def _run(self) -> None:
        settings = {name: _plain(value) for name, value in self._settings.items()}
        with confluent_producer(self._bootstrap, **settings) as producer:

            def send(number: int) -> None:
                def answered(error: Any, message: Any) -> None:
                    if error is None:
                        self._on_acked(number, message.partition(), message.offset())
                    else:
                        self._on_failed(number, error.name())

                producer.produce(
                    self.topic,
                    b"%d" % number,
                    partition=number % self.partitions,
                    on_delivery=answered,
                )

            self._loop(send, lambda: producer.poll(0))
            producer.flush(LIMIT_S)


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


LOADS: dict[str, type[Load]] = {"kafka-python": PythonLoad, "confluent-kafka": ConfluentLoad}


def check(load: Load, read: list[Read], *, exactly_once: bool = True) -> None:
    """Every acked record is at the offset of its ack; with `exactly_once` none is there twice, and
    each partition has them in the order in which they were sent."""
    assert load.acked
    by_place = {(record.partition, record.offset): record.value for record in read}
    assert len(by_place) == len(read), "an offset was read twice"
    acked = load.acked.items()
    missing = {number: place for number, place in acked if by_place.get(place) != b"%d" % number}
    assert not missing, f"acked but missing: {missing}"
    if exactly_once:
        for partition in range(load.partitions):
            values = [int(r.value or b"") for r in read if r.partition == partition]
            assert values == sorted(set(values)), f"partition {partition}: twice or out of order"
