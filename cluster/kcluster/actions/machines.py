"""Actions on the machines of brokers: restarts, new addresses, slow, full and new disks.

Owns: these actions.  Never: changes a process or link itself (operations/).
Kafka: systemctl restart, a new IP from DHCP, a disk that fills up or is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Final

from kcluster.actions.base import Action, action
from kcluster.actions.brokers import OnBrokers
from kcluster.actions.kinds import BROKERS
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import Flag, OneOf, duration
from kcluster.deaths import DeathKind, ProcessState
from kcluster.events.brokers import DiskFull, DiskReplaced
from kcluster.events.network import NetworkShaped
from kcluster.network.shapes import LinkShape
from kcluster.operations.errors import ClusterError
from kcluster.operations.states import StateVerb
from kcluster.operations.targets import Targets
from kcluster.operations.verbs import Verbs

_HOW: Final = OneOf("way to stop", tuple(DeathKind))
_NO_ADDRESS: Final = "the controller has no address to change"


@action("restart", short="brokers", example="restart: {brokers: 2, how: power, down: 500ms}")
class Restart(OnBrokers, frozen=True):
    """Stop brokers and start them again; a client comes back as a new process."""

    how: Annotated[str, _HOW, "How they stop, as in kill."] = "clean"
    down_ms: Annotated[int, duration(), "How long they are down."] = 100
    new_address: Annotated[bool, Flag(), "They return on another port."] = False

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.new_address and any(target.is_controller for target in self.brokers):
            yield "new_address", _NO_ADDRESS

    def do(self, stage: Stage) -> None:
        chosen = stage.nodes(self.brokers)
        if self.new_address and stage.verbs.settled.controller_id in chosen:
            raise ClusterError(_NO_ADDRESS)
        if self.new_address and not stage.verbs.clients.keys().isdisjoint(chosen):
            raise ClusterError("a client has no address to change")
        death = DeathKind(self.how)
        leaving: set[int] = set()

        def stop(broker_id: int) -> None:
            stage.verbs.kill(broker_id, death)
            leaving.add(broker_id)
            back = partial(leaving.discard, broker_id)
            _start_when_down(stage, broker_id, self.down_ms, self.new_address, back)

        stage.on_each(StateVerb.RESTART, chosen, stop, death)
        stage.is_over_when(lambda: not leaving)


def _start_when_down(
    stage: Stage,
    broker_id: int,
    down_ms: int,
    new_address: bool = False,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Start a process that is shutting down, once it has been down for `down_ms`; then call
    `then`."""

    def is_down() -> bool:
        return stage.verbs.state(broker_id) is ProcessState.DOWN

    def start() -> None:
        then()
        if not is_down():
            return  # another step has started it
        if new_address:
            stage.verbs.readdress(broker_id)
        stage.verbs.start(broker_id)

    def wait() -> None:
        stage.at(stage.now_ms + down_ms, lambda: stage.attempt("restart", start))

    stage.when(is_down, wait)


@action(
    "rolling_restart",
    short="brokers",
    example="rolling_restart: {brokers: all brokers, down: 500ms}",
)
class RollingRestart(Action, frozen=True):
    """Restart brokers one after the other, each when the previous one is back in all of its ISRs.
    Later steps do not wait for its end.  A broker that is down when its turn comes is left alone.
    Undone by not restarting the remaining ones."""

    brokers: Annotated[
        Targets | None, BROKERS, "The brokers, in this order; without it all of them."
    ] = None
    how: Annotated[str, _HOW, "How they stop, as in kill."] = "clean"
    down_ms: Annotated[int, duration(), "How long each is down."] = 100

    def affected(self, stage: Stage) -> tuple[int, ...]:
        if self.brokers is None:
            return tuple(stage.plan.addresses)
        return stage.nodes(self.brokers)

    def do(self, stage: Stage) -> Undo:
        death, settled = DeathKind(self.how), stage.verbs.settled
        waiting = list(self.affected(stage))
        if stage.doing is not None:
            chosen = stage.verbs.chosen(StateVerb.RESTART, waiting, death is not DeathKind.CLEAN)
            stage.doing.left_alone = chosen.left_alone
        left = set(waiting)
        """The brokers that are not back yet."""
        stage.is_over_when(lambda: not left)

        def restart(broker_id: int) -> None:
            stage.attempt(self.VERB, lambda: stage.verbs.kill(broker_id, death))
            _start_when_down(stage, broker_id, self.down_ms)
            stage.when(lambda: settled.is_down(broker_id), lambda: go_on_after(broker_id))

        def go_on_after(broker_id: int) -> None:
            def is_back() -> bool:
                return settled.is_serving(broker_id) and settled.is_in_sync(broker_id)

            stage.when(is_back, lambda: next_one(broker_id))

        def next_one(done: int | None = None) -> None:
            left.discard(done)
            while waiting:
                broker_id = waiting.pop(0)
                if stage.dispatcher.processes[broker_id].state is ProcessState.UP:
                    restart(broker_id)
                    return
                left.discard(broker_id)

        next_one()
        return waiting.clear


@action("fill_disk", short="brokers", example="fill_disk: 2")
class FillDisk(OnBrokers, frozen=True):
    """Fill brokers' only log directory: they halt, and cannot start until space is freed.  Undone
    by freeing space and starting them."""

    brokers: Annotated[Targets, BROKERS, "The brokers."]

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

    RECORDED_FROM = (DiskFull,)

    @classmethod
    def record(cls, event: DiskFull, recording: Recording) -> None:
        recording.halted.add(event.broker)
        recording.add(cls(these([event.broker])), event)

    @classmethod
    def repair(cls, verbs: Verbs) -> Iterator[str]:
        verbs.free_disks()
        yield from ()


@action("replace_disk", short="brokers", example="replace_disk: down")
class ReplaceDisk(OnBrokers, frozen=True):
    """Replace the disks of brokers that are down: their next start finds an empty disk, whatever
    ended the last one.  A running broker loses its disk by `kill: {how: wipe}`."""

    IS_FAULT = False
    MENU = (MenuItem("broker", "Replace its disk", "{broker}", ("down",)),)

    brokers: Annotated[Targets, BROKERS, "The brokers."]

    def do(self, stage: Stage) -> None:
        for broker_id in stage.nodes(self.brokers):
            stage.verbs.replace_disk(broker_id)

    RECORDED_FROM = (DiskReplaced,)

    @classmethod
    def record(cls, event: DiskReplaced, recording: Recording) -> None:
        recording.add(cls(these([event.broker])), event)


@action(
    "slow_disk", short="brokers", example="slow_disk: {brokers: 3, latency: 50ms, jitter: 20ms}"
)
class SlowDisk(OnBrokers, frozen=True):
    """Slow down brokers' disks.  What a broker sends after an append is delayed: as a follower its
    next fetch, as a leader its answers.  Heartbeats write nothing and are not delayed.  Undone by
    restoring the disks' speed."""

    brokers: Annotated[Targets, BROKERS, "The brokers."]
    latency_ms: Annotated[float, duration(), "How much longer each append takes."] = 100
    jitter_ms: Annotated[
        float, duration(), "Random time on top of it, exponentially distributed."
    ] = 0

    def do(self, stage: Stage) -> Undo:
        chosen = stage.nodes(self.brokers)
        controller = stage.verbs.settled.controller_id
        all_nodes = stage.verbs.network.all_nodes
        others = tuple(x for x in all_nodes if x not in chosen and x != controller)
        shape = LinkShape(
            round(self.latency_ms * 1000),
            round(self.jitter_ms * 1000),
            "exponential" if self.jitter_ms else "constant",
        )
        before = stage.verbs.links.shape(chosen, others, shape, one_way=True, of_disk=True)
        return lambda: stage.verbs.links.remove_layers(before)

    RECORDED_FROM = (NetworkShaped,)

    @classmethod
    def record(cls, event: NetworkShaped, recording: Recording) -> None:
        if event.of_disk and not event.undone:
            latency_ms, jitter_ms = event.latency_us / 1000, event.jitter_us / 1000
            recording.add(cls(these(event.nodes), latency_ms, jitter_ms), event)
