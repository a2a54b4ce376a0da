from __future__ import annotations

import hashlib

from kcluster.contract import (
    CONTROLLER_ID,
    ConnectionClosed,
    Note,
    PeerDisconnected,
    PeerRequest,
    PeerResponse,
    Send,
)
from kcluster.controller.metadata_log import MAX_FETCHED_RECORDS, MetadataLog
from kcluster.controller.partitions.partition_index import PartitionIndex
from kcluster.metadata.delta import MetadataFetchResponse
from kcluster.metadata.records import MetadataFetch, ProducerIdsRecord
from kcluster.protocol import messages as m
from tests.controller.harness import Controller


def metadata_answers(effects: object) -> list[tuple[int, int, int]]:
    """(broker, first offset, records) of each."""
    assert isinstance(effects, list)
    return [
        (e.to, e.message.body.delta.first_offset, len(e.message.body.delta.records))
        for e in effects
        if isinstance(e, Send) and isinstance(e.message.body, MetadataFetchResponse)
    ]


def test_node__new_metadata_is_answered_at_once() -> None:
    t = Controller()
    effects = t.step(PeerRequest(1, 900, MetadataFetch(1, 0, 500)))
    assert metadata_answers(effects) == [(1, 0, t.node.end_offset)]


def test_node__metadata_waits_for_the_next_record() -> None:
    t = Controller()
    end = t.node.end_offset
    assert t.step(PeerRequest(1, 900, MetadataFetch(1, end, 500))) == []
    topic = m.CreateTopicsRequest.CreatableTopic(name="a", num_partitions=2, replication_factor=1)
    request = m.CreateTopicsRequest(topics=[topic])
    effects = list(t.step(PeerRequest(2, 901, request)))
    assert metadata_answers(effects) == [(1, end, 3)]
    last = effects[-1]
    assert isinstance(last, Send)
    assert (last.to, last.message.request_id) == (2, 901), "metadata is sent before the answer"


def test_node__metadata_wait_ends_empty() -> None:
    t = Controller()
    end = t.node.end_offset
    t.silent |= {1, 2, 3}
    t.step(PeerRequest(1, 900, MetadataFetch(1, end, 500)))
    t.run(500)
    last = t.sent[-1].message
    assert isinstance(last, PeerResponse)
    assert last.request_id == 900
    assert (last.body.delta.first_offset, last.body.delta.records) == (end, [])


def test_node__a_newer_fetch_replaces_the_one_that_waits() -> None:
    t = Controller()
    end = t.node.end_offset
    t.step(PeerRequest(1, 900, MetadataFetch(1, end, 500)))
    t.step(PeerRequest(1, 901, MetadataFetch(1, end, 500)))
    t.create("a")
    answered = [s.message.request_id for s in t.sent if s.to == 1 and s.message.request_id >= 900]
    assert answered == [901]


def test_node__a_dead_process_gets_no_answer() -> None:
    t = Controller()
    t.step(PeerRequest(2, 900, MetadataFetch(2, t.node.end_offset, 500)))
    t.step(PeerDisconnected(2))
    t.create("a")
    assert 900 not in [s.message.request_id for s in t.sent]


def test_node__unknown_messages_are_ignored() -> None:
    t = Controller()
    for event in (
        PeerRequest(1, 1, m.ProduceRequest()),
        PeerResponse(1, 7, None),
        ConnectionClosed(3),
    ):
        assert t.step(event) == []


def test_node__note_ids_are_consecutive_and_causes_come_first() -> None:
    t = Controller()
    t.create("orders", partitions=3)
    t.die(1)
    seen = set()
    for number, note in enumerate(t.notes, 1):
        assert note.note_id == (CONTROLLER_ID, number)
        assert note.cause is None or note.cause in seen
        seen.add(note.note_id)


def story(seed: int) -> str:
    t = Controller(seed=seed, racks={1: "a", 2: "b", 3: "a"})
    t.create("orders", partitions=20, factor=2)
    t.die(2)
    t.start(2)
    t.heartbeat(3, want_shut_down=True)
    t.run(400_000)
    digest = hashlib.sha256()
    for note in t.notes:
        digest.update(repr(note).encode())
    digest.update(repr(t.follow(1).topics).encode())
    return digest.hexdigest() + str(t.node.rng.random())


def test_node__same_seed_same_story() -> None:
    assert story(5) == story(5)
    assert story(5) != story(6)


def test_node__brokers_images_and_the_index_agree_with_the_controller() -> None:
    t = Controller()
    t.create("orders", partitions=30, factor=3, min_insync_replicas="2")
    t.create("gone", partitions=3)
    t.ask(1, m.DeleteTopicsRequest(topic_names=["gone"]))
    for broker in (1, 2, 3):
        t.die(broker)
    for broker in (2, 1):
        t.start(broker, previous_epoch=t.epochs[broker])
    assert t.follow(1).topics == t.node.image.topics
    fresh = PartitionIndex()
    for partition in t.node.image.topics["orders"].partitions:
        fresh.update(None, partition)
    for name in ("in_isr", "in_elr", "led_by", "leaderless", "imbalanced"):
        actual, expected = getattr(t.node.partitions.index, name), getattr(fresh, name)
        if name.startswith(("in_", "led")):
            actual = {broker: set(keys) for broker, keys in actual.items() if keys}
            expected = {broker: set(keys) for broker, keys in expected.items() if keys}
        assert actual == expected, name


def test_node__ten_thousand_partitions_change_leader_in_one_step() -> None:
    t = Controller()
    t.create("big", partitions=10_000)
    t.die(1)
    assert not t.node.partitions.index.led_by[1]
    assert sum(isinstance(note, Note) for note in t.notes) > 10_000


def test_log__a_fetch_gets_whole_batches_and_not_too_many() -> None:
    """What was committed together is seen together, however much it is."""
    log = MetadataLog()
    ends = []
    for size in (1, MAX_FETCHED_RECORDS - 1, 1, 3 * MAX_FETCHED_RECORDS, 5):
        log.records.extend([ProducerIdsRecord(1, 1, 1)] * size)
        log.end_batch()
        ends.append(len(log.records))
    assert log.fetch_end(0) == ends[1]
    assert log.fetch_end(1) == ends[2]
    assert log.fetch_end(ends[2]) == ends[3]
    assert log.fetch_end(ends[3]) == log.fetch_end(ends[3] + 2) == ends[4]
    assert log.fetch_end(ends[4]) == ends[4]
