"""What the record of a real Kafka makes of the batches in its logs."""

from __future__ import annotations

from msgspec import structs

from kcluster.checks.verdict_facts import Ground
from kcluster.contract import Request
from kcluster.deaths import DeathKind
from kcluster.faults.records import copied
from kcluster.invariants.observed import Append
from kcluster.mirror.recorder import name_copies
from kcluster.partition.disk import Disk
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import parse_batches
from tests.checks.stories.test_explanations import acked_by_a_lone_leader
from tests.rig.requests import batch

REQUEST = Request(1, int(ApiKey.PRODUCE), 9, 1, "shop", m.ProduceRequest(topic_data=[]))


def append(data: bytes | bytearray, base_offset: int, request: Request | None = None) -> Append:
    (found,) = parse_batches(data)
    return Append(0, 1, 0, base_offset, base_offset, found, request, (1,), 0)


def test_copies__records_that_a_rule_sent_twice_are_those_of_their_producer() -> None:
    sent = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    first, second = append(sent, 0, REQUEST), append(copied(sent), 1)
    name_copies([first, second])
    assert second.request is REQUEST


def test_copies__other_records_without_a_request_stay_unknown() -> None:
    sent = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    other, of_a_producer = append(batch(b"b"), 1), append(sent, 2)
    name_copies([append(sent, 0, REQUEST), other, of_a_producer])
    assert (other.request, of_a_producer.request) == (None, None)


def test_logs__that_no_broker_gives_lack_nothing_for_certain() -> None:
    """Kafka serves no log of a partition without a leader; disks show what is on them."""
    stage, _ = acked_by_a_lone_leader()
    stage.kill(1)
    stage.run_for(5_000)
    recorder = stage.recorder
    recorder.plan = structs.replace(recorder.plan, disks={broker: Disk() for broker in (1, 2, 3)})
    assert stage.verdict().counts() == {"lost-write": 1}
    recorder.sees_disks = False
    verdict = stage.verdict()
    assert (verdict.counts(), verdict.ground) == ({}, Ground.OFFLINE)


def test_logs__that_no_broker_can_have_any_more_are_lost() -> None:
    stage, _ = acked_by_a_lone_leader()
    stage.recorder.sees_disks = False
    for broker in (1, 2, 3):
        if broker > 1:
            stage.start(broker)
        stage.kill(broker, DeathKind.WIPE)
    stage.run_for(5_000)
    assert stage.verdict().counts() == {"lost-write": 1}
