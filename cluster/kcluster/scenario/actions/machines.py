"""What may happen to the machines under brokers: restarts, other addresses, disks slow and full.

Owns: these words.  Never: how it is done (operations/verbs.py, operations/links.py).
Kafka: systemctl restart, a new IP from DHCP, a disk that fills up.
"""

from __future__ import annotations

from typing import Annotated, Final

from kcluster.network.shapes import Shape
from kcluster.runtime.process import DeathKind, ProcessState
from kcluster.scenario.actions.base import Action, Stage, Undo, action
from kcluster.scenario.language.fields import Flag, OneOf, duration
from kcluster.scenario.language.words import TARGETS, Targets

_HOW: Final = OneOf("way to stop", ("clean", "kill", "power"))


@action("restart", short="brokers")
class Restart(Action, frozen=True):
    """Stop brokers and start them again.  `new_address`: they come back on another port."""

    brokers: Annotated[Targets, TARGETS]
    how: Annotated[str, _HOW] = "clean"
    down_ms: Annotated[int, duration()] = 100
    new_address: Annotated[bool, Flag()] = False

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers)

    def do(self, stage: Stage) -> None:
        for broker_id in stage.nodes(self.brokers):
            stage.verbs.kill(broker_id, DeathKind(self.how))
            self._start_when_down(stage, broker_id)

    def _start_when_down(self, stage: Stage, broker_id: int) -> None:
        process = stage.dispatcher.processes[broker_id]

        def start() -> None:
            if process.state is not ProcessState.DOWN:
                return  # somebody else was quicker
            if self.new_address:
                stage.verbs.readdress(broker_id)
            stage.verbs.start(broker_id)

        def wait() -> None:
            stage.at(stage.now_ms + self.down_ms, start)

        stage.when(lambda: process.state is ProcessState.DOWN, wait)


@action("fill_disk", short="brokers")
class FillDisk(Action, frozen=True):
    """Leave no space on brokers' only log directory: they halt, and cannot start until it is freed.
    Undone by freeing it and starting them."""

    brokers: Annotated[Targets, TARGETS]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers)

    def do(self, stage: Stage) -> Undo:
        chosen = stage.nodes(self.brokers)
        for broker_id in chosen:
            stage.verbs.fill_disk(broker_id)

        def undo() -> None:
            for broker_id in chosen:
                stage.verbs.free_disk(broker_id)
                if stage.dispatcher.processes[broker_id].state is ProcessState.DOWN:
                    stage.verbs.start(broker_id)

        return undo


@action("slow_disk", short="brokers")
class SlowDisk(Action, frozen=True):
    """Let brokers' writes take long: what a broker says after an append, its next fetch as a
    follower or its answers as a leader, comes so much later; its heartbeats, which write nothing,
    do not.  Undone by a disk as quick as before."""

    brokers: Annotated[Targets, TARGETS]
    latency_ms: Annotated[float, duration()] = 100
    jitter_ms: Annotated[float, duration()] = 0

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers)

    def do(self, stage: Stage) -> Undo:
        chosen = stage.nodes(self.brokers)
        controller = stage.verbs.settled.controller_id
        everybody = stage.verbs.network.everybody
        others = tuple(x for x in everybody if x not in chosen and x != controller)
        shape = Shape(
            round(self.latency_ms * 1000), round(self.jitter_ms * 1000),
            "exponential" if self.jitter_ms else "constant",
        )  # fmt: skip
        before = stage.verbs.links.shape(chosen, others, shape, one_way=True, of_disk=True)
        return lambda: stage.verbs.links.reshape(before)
