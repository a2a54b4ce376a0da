"""A broker's heartbeats while it waits for its controlled shutdown."""

from __future__ import annotations

from kcluster.broker.lifecycle import SHUT_DOWN_SOON_MS
from kcluster.contract import Input, PeerRequest
from kcluster.deaths import ProcessState
from kcluster.protocol import messages as m
from tests.rig.stage import Stage


class HeartbeatsOf:
    """Counts the heartbeats of a broker that the controller receives."""

    def __init__(self, stage: Stage, broker: int) -> None:
        self.count = 0
        before = stage.dispatcher.tap
        assert before is not None

        def tap(now_us: int, node_id: int, event: Input) -> None:
            if isinstance(event, PeerRequest) and event.source == broker:
                self.count += isinstance(event.body, m.BrokerHeartbeatRequest)
            before(now_us, node_id, event)

        stage.dispatcher.tap = tap


def is_up(stage: Stage, broker: int) -> bool:
    return stage.dispatcher.processes[broker].state is ProcessState.UP


def test_shut_down__that_has_to_wait_asks_no_more_often_than_kafka() -> None:
    stage = Stage()
    heartbeats = HeartbeatsOf(stage, 1)
    stage.pause(2)  # it does not learn that broker 1 leads no more, so broker 1 may not stop
    stage.kill(1, how="clean")
    stage.run_for(1_000)
    assert is_up(stage, 1)
    assert heartbeats.count <= SHUT_DOWN_SOON_MS + 3
    stage.run_for(2_500)
    assert not is_up(stage, 1)


def test_shut_down__of_a_sound_cluster_ends_at_once() -> None:
    stage = Stage()
    stage.kill(1, how="clean")
    stage.run_for(SHUT_DOWN_SOON_MS // 5)
    assert not is_up(stage, 1)
