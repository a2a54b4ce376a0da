"""Clients of three libraries write histories of what they saw, which are judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from kcluster import Cluster, Topology
from kcluster.judge.files import read_history
from kcluster.judge.judgment import Judgment
from kcluster.judge.parts import judge_history
from kcluster.record import HistoryFile, recorded
from kcluster.record.history_file import value_text
from tests.foreign_clients.aiokafka_clients import run_async

READ_ALL: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    topics = {name: {"partitions": 1} for name in ("python", "async", "confluent", "moved")}
    topology = Topology.of(brokers=1, base_port=0, profile="fast", topics=topics)
    with Cluster(topology, record=False) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def history(tmp_path: Path) -> Iterator[HistoryFile]:
    with HistoryFile(tmp_path / "history.jsonl") as history:
        yield history


def lines(path: Path, op: str) -> list[dict[str, Any]]:
    found = map(json.loads, (path / "history.jsonl").read_text().splitlines())
    return [line for line in found if line["op"] == op]


def judged(path: Path) -> Judgment:
    return judge_history(read_history([path / "history.jsonl"]))


def test_recorded__kafka_python(
    bootstrap: str, history: HistoryFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="shop")
    producer = recorded(own, history, "shop")
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction()
        producer.send("python", b"%d" % number, partition=0)
        producer.abort_transaction() if number == 1 else producer.commit_transaction()
    producer.begin_transaction()
    monkeypatch.setitem(own.config, "max_request_size", 100)
    with pytest.raises(KafkaError):
        producer.send("python", bytes(200), partition=0)
    producer.close()
    consumer = recorded(
        KafkaConsumer("python", bootstrap_servers=bootstrap, group_id="g", **READ_ALL),
        history,
        "billing",
    )
    assert [next(consumer).value for _ in range(2)] == [b"0", b"2"]
    consumer.close()
    judgment = judged(tmp_path)
    assert (judgment.outcome, judgment.sent, judgment.read) == ("valid", 4, 2)
    ends = [line["outcome"] for line in lines(tmp_path, "transaction")]
    assert ends[:3] == ["committed", "aborted", "committed"]
    assert [line["isolation"] for line in lines(tmp_path, "poll")] == ["read_committed"] * 2
    assert lines(tmp_path, "assign")[0]["partitions"] == [["python", 0]]


def test_recorded__aiokafka(bootstrap: str, history: HistoryFile, tmp_path: Path) -> None:
    async def program() -> list[bytes]:
        async with (
            recorded(
                AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="async"),
                history,
                "shop",
            ) as producer,
            producer.transaction(),
        ):
            for number in range(3):
                await producer.send_and_wait("async", b"%d" % number, partition=0)
        async with recorded(
            AIOKafkaConsumer("async", bootstrap_servers=bootstrap, **READ_ALL), history, "billing"
        ) as consumer:
            found = [(await consumer.getone()).value, (await anext(consumer)).value]
            many = await consumer.getmany(timeout_ms=5_000)
            return found + [each.value for each in many[TopicPartition("async", 0)]]

    assert run_async(program()) == [b"0", b"1", b"2"]
    judgment = judged(tmp_path)
    assert (judgment.outcome, judgment.acked, judgment.read) == ("valid", 3, 3)


def test_recorded__confluent_kafka(bootstrap: str, history: HistoryFile, tmp_path: Path) -> None:
    producer = recorded(Producer({"bootstrap.servers": bootstrap}), history, "shop")
    told: list[object] = []
    for number in range(3):
        producer.produce("confluent", str(number), on_delivery=lambda error, _: told.append(error))
    assert producer.flush(10) == 0 == len(producer)
    config = {"bootstrap.servers": bootstrap, "group.id": "c", "auto.offset.reset": "earliest"}
    consumer = recorded(Consumer(config), history, "billing")
    consumer.subscribe(["confluent"])
    read: list[bytes | None] = []
    while len(read) < 3:
        read += [each.value() for each in consumer.consume(3, 1.0)]
    consumer.close()
    assert (told, read) == ([None] * 3, [b"0", b"1", b"2"])
    judgment = judged(tmp_path)
    assert (judgment.outcome, judgment.acked, judgment.read) == ("valid", 3, 3)


def test_recorded__a_seek_is_no_step_back(
    bootstrap: str, history: HistoryFile, tmp_path: Path
) -> None:
    producer = recorded(KafkaProducer(bootstrap_servers=bootstrap), history, "shop")
    for value in (b"a", b"b"):
        producer.send("moved", value, partition=0).get(timeout=10)
    producer.close()
    consumer = recorded(KafkaConsumer(bootstrap_servers=bootstrap, **READ_ALL), history, "billing")
    place = TopicPartition("moved", 0)
    consumer.assign([place])
    for _ in range(2):
        consumer.seek(place, 0)
        assert [next(consumer).value for _ in range(2)] == [b"a", b"b"]
    consumer.close()
    assert judged(tmp_path).outcome == "valid"


def test_recorded__of_no_client(history: HistoryFile) -> None:
    with pytest.raises(TypeError, match=r"recorded takes a client \(.*KafkaProducer.*\), not dict"):
        recorded({}, history, "x")


def test_recorded__values_as_text() -> None:
    assert value_text(None) is None
    assert value_text(b"\xff") == "\\xff"
    assert value_text({"b": 1, "a": [2]}) == '{"a": [2], "b": 1}'


def test_recorded__positions_and_ends(bootstrap: str, history: HistoryFile, tmp_path: Path) -> None:
    """They show that nothing is behind the last record."""
    place = TopicPartition("ends", 0)
    producer = recorded(KafkaProducer(bootstrap_servers=bootstrap), history, "shop")
    producer.send("ends", b"a", partition=0).get(timeout=10)
    producer.close()
    settings = {**READ_ALL, "isolation_level": "read_uncommitted"}
    consumer = recorded(KafkaConsumer(bootstrap_servers=bootstrap, **settings), history, "billing")
    consumer.assign([place])
    assert next(consumer).value == b"a"
    assert (consumer.position(place), consumer.end_offsets([place])) == (1, {place: 1})
    consumer.close()

    async def program() -> tuple[int, object]:
        async with recorded(
            AIOKafkaConsumer("ends", bootstrap_servers=bootstrap, **settings), history, "desk"
        ) as reader:
            assert (await reader.getone()).value == b"a"
            return await reader.position(place), await reader.end_offsets([place])

    assert run_async(program()) == (1, {place: 1})
    assert [line["offset"] for line in lines(tmp_path, "position")] == [1, 1]
    assert [line["offset"] for line in lines(tmp_path, "log_end")] == [1, 1]
    assert judged(tmp_path).outcome == "valid"
