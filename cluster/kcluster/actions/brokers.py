"""Actions on processes of brokers and clients: kill, stop, start, pause, resume.

Owns: these actions.  Never: ends a process itself (operations/verbs.py).  Kafka: kill,
kafka-server-start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS, RELEASE
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import OneOf
from kcluster.contract import CONTROLLER_ID, Event
from kcluster.deaths import DeathKind, ProcessState
from kcluster.events.brokers import (
    BrokerDown,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    ControlledShutdown,
    ControllerDown,
    ControllerElected,
    DiskFull,
)
from kcluster.operations.errors import ClusterError
from kcluster.operations.states import StateVerb
from kcluster.operations.targets import Targets, split_apps
from kcluster.operations.verbs import Verbs

_WAYS: Final = OneOf("way to die", tuple(DeathKind))


class OnBrokers(Action, frozen=True):
    """An action on processes of brokers, or of the workload's clients."""

    brokers: Annotated[
        Targets,
        BROKERS,
        "The brokers; the controller and, in a scenario, clients of its workload may be named too.",
    ]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers)


@action("kill", short="brokers", example="kill: {brokers: leader(orders-0), how: power}")
class KillBrokers(OnBrokers, frozen=True):
    """Kill processes of brokers, or of the workload's clients.  Undone by starting them again."""

    MENU = (
        MenuItem("broker", "Kill (SIGKILL)", "{broker}", ("up",)),
        MenuItem("broker", "Power off", {"brokers": "{broker}", "how": "power"}, ("up",)),
        MenuItem("broker", "Wipe its disk", {"brokers": "{broker}", "how": "wipe"}, ("up",)),
        MenuItem("broker", "Kill", "{broker}", ("paused",), is_last=True),
    )

    how: Annotated[
        str,
        _WAYS,
        "kill: written records stay in the page cache; clean: a controlled shutdown; power:"
        " unflushed records are lost; wipe: they return with an empty disk.",
    ] = "kill"

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return _brokers_among(stage, self.brokers)

    def do(self, stage: Stage) -> Undo:
        death, kill = DeathKind(self.how), stage.verbs.kill
        apps, _ = split_apps(self.brokers)
        programs = stage.verbs.programs
        for app in apps:
            if not programs.is_running(app):
                raise ClusterError(f"app {app} does not run")
            programs.kill(app)
        found = self.affected(stage)
        chosen = stage.on_each(StateVerb.KILL, found, lambda node: kill(node, death), death)

        def undo() -> None:
            _start(stage, chosen)
            for app in apps:
                if not programs.is_running(app):
                    programs.start(app)

        return undo

    def problems(self) -> Iterator[tuple[str, str]]:
        if split_apps(self.brokers)[0] and self.how != DeathKind.KILL:
            yield "how", f"{self.how}: a program is killed, as by SIGKILL; leave how out"

    RECORDED_FROM = (BrokerDown, ControllerDown)

    @classmethod
    def record(cls, event: BrokerDown | ControllerDown, recording: Recording) -> None:
        if isinstance(event, ControllerDown):
            recording.add(cls(these([CONTROLLER_ID])), event)
        elif event.broker in recording.halted:
            recording.halted.remove(event.broker)
        elif not event.bug:
            brokers = these([event.broker])
            is_stop = event.how is DeathKind.CLEAN
            recording.add(StopBrokers(brokers) if is_stop else cls(brokers, event.how), event)

    @classmethod
    def repair(cls, verbs: Verbs) -> Iterator[str]:
        yield from verbs.restore_all()


@action("stop", short="brokers", example="stop: 1")
class StopBrokers(OnBrokers, frozen=True):
    """Stop brokers cleanly: SIGTERM, controlled shutdown; a client is closed.  Undone by starting
    them again."""

    MENU = (MenuItem("broker", "Shut down cleanly", "{broker}", ("up",)),)

    def do(self, stage: Stage) -> Undo:
        return KillBrokers(self.brokers, "clean").do(stage)

    RECORDED_FROM = (ControlledShutdown,)

    @classmethod
    def record(cls, event: ControlledShutdown, recording: Recording) -> None:
        if event.leaders_to_move is None:
            recording.halted.add(event.broker)
            recording.add(cls(these([event.broker])), event)


@action("start", short="brokers", example="start: down")
class StartBrokers(OnBrokers, frozen=True):
    """Start brokers that are down, on the disks that they had; or clients, as new processes."""

    MENU = (MenuItem("broker", "Start", "{broker}", ("down",)),)

    kafka_version: Annotated[
        str | None, RELEASE, "Run as this Kafka release from now on: an upgrade or a downgrade."
    ] = None

    def do(self, stage: Stage) -> None:
        start, version = stage.verbs.start, self.kafka_version
        apps, _ = split_apps(self.brokers)
        for app in apps:
            if stage.verbs.programs.is_running(app):
                raise ClusterError(f"app {app} runs already")
            stage.verbs.programs.start(app)
        found = self.affected(stage)
        stage.on_each(StateVerb.START, found, lambda node: start(node, version))

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return _brokers_among(stage, self.brokers, may_be_none=True)

    RECORDED_FROM = (BrokerStarted, ControllerElected)

    @classmethod
    def record(cls, event: BrokerStarted | ControllerElected, recording: Recording) -> None:
        """End the step of a shutdown or a halt; without such a step, add one that starts the
        broker."""
        if isinstance(event, ControllerElected):
            recording.add(cls(these([CONTROLLER_ID])), event)
            return
        if not event.restarted:
            return

        def has_halted(was: Event) -> bool:
            return isinstance(was, ControlledShutdown | DiskFull) and was.broker == event.broker

        if not recording.undo(has_halted):
            recording.add(cls(these([event.broker])), event)


@action("pause", short="brokers", example="pause: any followers(orders-0)")
class PauseBrokers(OnBrokers, frozen=True):
    """Pause brokers, clients or programs, as by SIGSTOP or a long garbage collection.  Undone by
    resuming them."""

    MENU = (MenuItem("broker", "Pause", "{broker}", ("up",)),)

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return _brokers_among(stage, self.brokers)

    def do(self, stage: Stage) -> Undo:
        apps, _ = split_apps(self.brokers)
        programs = stage.verbs.programs
        for app in apps:
            if not programs.is_running(app):
                raise ClusterError(f"app {app} does not run")
            programs.pause(app)
        found = self.affected(stage)
        chosen = stage.on_each(StateVerb.PAUSE, found, stage.verbs.pause)

        def undo() -> None:
            _resume(stage, chosen)
            for app in apps:
                programs.resume(app)

        return undo

    RECORDED_FROM = (BrokerPaused,)

    @classmethod
    def record(cls, event: BrokerPaused, recording: Recording) -> None:
        recording.add(cls(these([event.broker])), event)


@action("resume", short="brokers", example="resume: 2")
class ResumeBrokers(OnBrokers, frozen=True):
    """Resume paused brokers, clients or programs."""

    MENU = (MenuItem("broker", "Resume", "{broker}", ("paused",)),)

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return _brokers_among(stage, self.brokers)

    def do(self, stage: Stage) -> None:
        for app in split_apps(self.brokers)[0]:
            stage.verbs.programs.resume(app)
        stage.on_each(StateVerb.RESUME, self.affected(stage), stage.verbs.resume)

    RECORDED_FROM = (BrokerResumed,)

    @classmethod
    def record(cls, event: BrokerResumed, recording: Recording) -> None:
        recording.add(cls(these([event.broker])), event)


def _brokers_among(stage: Stage, found: Targets, may_be_none: bool = False) -> tuple[int, ...]:
    """The nodes among some targets; there need be none if a program is named."""
    apps, others = split_apps(found)
    return stage.nodes(others, may_be_none) if others or not apps else ()


def _start(stage: Stage, chosen: tuple[int, ...]) -> None:
    """Start the processes that are down or shutting down; another step may have started some."""
    for broker_id in chosen:
        if broker_id in stage.verbs.clients:
            stage.verbs.restore(broker_id)
            continue
        process = stage.dispatcher.processes[broker_id]
        if process.state is ProcessState.DOWN and not process.is_removed:
            stage.verbs.start(broker_id)
        elif stage.dispatcher.is_shutting_down(broker_id):
            stage.dispatcher.start_after_shutdown(broker_id)


def _resume(stage: Stage, chosen: tuple[int, ...]) -> None:
    for broker_id in chosen:
        if stage.verbs.state(broker_id) is ProcessState.PAUSED:
            stage.verbs.resume(broker_id)
