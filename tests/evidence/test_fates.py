from __future__ import annotations

from kcluster.evidence.fates import fate_of
from kcluster.evidence.lookups import Facts
from tests.rig.stage import P, Stage


def test_fate__of_a_record_includes_its_send_every_replica_and_every_read() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a"])
    stage.run_for(100)
    hand.read(1, 0)
    stage.run_for(600)
    stage.recorder.check_last_step()
    fate = fate_of(Facts(stage.recorder, stage.ledger), P, b"a")
    (place,) = fate.places
    assert (fate.outcome, place.offset, place.leader) == ("acked", 0, 1)
    assert place.reached == {1: 3_000, 2: 3_000, 3: 3_000}
    assert place.committed_ms == 3_000
    assert place.dropped == {}
    assert fate.reads == (("p0", 0, 3_100),)
    assert [link.text for link in fate.links()] == [
        "a was sent",
        "appended by broker 1 at offset 0 in epoch 0",
        "broker 2 has it at offset 0 in epoch 0",
        "broker 3 has it at offset 0 in epoch 0",
        "committed at offset 0 in epoch 0",
        "its producer called it acked",
        "p0 read it at offset 0",
    ]


def test_fate__of_a_lost_record_names_the_broker_that_dropped_it() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    hand.produce(1, [b"a"], acks=1)
    hand.produce(1, [b"b"], acks=1)
    stage.run_for(100)
    stage.kill(1)
    stage.run_for(5_000)
    stage.heal()
    stage.start(1)
    stage.run_for(5_000)
    stage.recorder.check_last_step()
    fate = fate_of(Facts(stage.recorder, stage.ledger), P, b"b")
    (place,) = fate.places
    assert list(place.reached) == [1]
    assert place.dropped == {1: (8_100, "log_truncated")}
    assert (place.committed_ms, fate.reads) == (-1, ())


def test_fate__of_an_unknown_record_is_unknown() -> None:
    stage = Stage()
    fate = fate_of(Facts(stage.recorder, stage.ledger), P, b"?")
    assert (fate.outcome, fate.places, fate.reads) == ("unknown", (), ())
