"""The controllers of a real Kafka: a quorum, which one mirrored controller stands for.

Owns: which of them run, and whether they are a majority.  Never: elects one (Kafka does), knows the
metadata log.
Kafka: KafkaRaftClient, kafka-metadata-quorum.

A word `controller` means the active one, or the only one: a kill of it makes the others elect.  The
mirror is up while a majority runs.  A start starts every controller that is down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.apache_kafka.processes import KafkaProcesses
from kcluster.deaths import DeathKind, ProcessState
from kcluster.operations.errors import ClusterError
from kcluster.operations.states import ACTS_ON, StateVerb

ACTIVE: Final = "active"


class KafkaQuorum:
    """The controllers of one cluster.  `active`: returns the active one's id, -1 for none."""

    def __init__(self, processes: KafkaProcesses, active: Callable[[], int]) -> None:
        self._processes = processes
        self._active = active
        self._paused: dict[int, None] = {}

    @property
    def ids(self) -> tuple[int, ...]:
        """The controllers' ids."""
        return self._processes.controller_ids

    @property
    def is_single(self) -> bool:
        """Whether there is only one controller, which no other can replace."""
        return len(self.ids) == 1

    @property
    def has_majority(self) -> bool:
        """Whether enough of them run to elect one."""
        return 2 * len(self._serving()) > len(self.ids)

    def states(self) -> dict[int, str]:
        """The state of each controller: `active`, `up`, `paused` or `down`."""
        active = self._active() if self.has_majority else -1
        return {
            each: ACTIVE if each == active and each in self._serving() else str(self._state(each))
            for each in self.ids
        }

    def state_for(self, verb: StateVerb) -> ProcessState:
        """The state that a verb for `controller` meets: one that it changes, if a controller has
        it."""
        states = sorted(map(self._state, self.ids), key=list(ProcessState).index)
        return next((state for state in states if state in ACTS_ON[verb]), states[0])

    def kill(self) -> None:
        """Kill the active controller, else one that runs; ClusterError if none does."""
        running = [each for each in self.ids if self._processes.is_running(each)]
        chosen = self._chosen(running)
        self._paused.pop(chosen, None)
        self._processes.kill(chosen)

    def start(self) -> None:
        """Start the controllers that are down."""
        for each in self.ids:
            if not self._processes.is_running(each):
                self._processes.start(each)

    def pause(self) -> None:
        """Pause the active controller, else one that runs."""
        chosen = self._chosen(self._serving())
        self._processes.pause(chosen)
        self._paused[chosen] = None

    def resume(self) -> None:
        """Resume the controllers that are paused."""
        for each in tuple(self._paused):
            if self._processes.is_running(each):
                self._processes.resume(each)
        self._paused.clear()

    def changed(self, controller: int, *, is_paused: bool = False) -> None:
        """Take note of a process that was paused, was resumed or has ended otherwise."""
        self._paused.pop(controller, None)
        if is_paused:
            self._paused[controller] = None

    def _chosen(self, running: list[int]) -> int:
        if not running:
            raise ClusterError("no controller is running")
        active = self._active()
        return active if active in running else running[0]

    def _serving(self) -> list[int]:
        return [each for each in self.ids if self._state(each) is ProcessState.UP]

    def _state(self, controller: int) -> ProcessState:
        if not self._processes.is_running(controller):
            return ProcessState.DOWN
        return ProcessState.PAUSED if controller in self._paused else ProcessState.UP


class ControllerProcesses:
    """The processes of several controllers, as the one RunningProcess that verbs know.  `change`:
    changes them, and what mirrors them."""

    label = "the controller"

    def __init__(self, quorum: KafkaQuorum, change: Callable[[Callable[[], None]], None]) -> None:
        self._quorum = quorum
        self._change = change

    @property
    def state(self) -> ProcessState:
        return ProcessState.UP if self._quorum.has_majority else ProcessState.DOWN

    def state_for(self, verb: StateVerb) -> ProcessState:
        return self._quorum.state_for(verb)

    def end(self, how: DeathKind) -> None:
        self._change(self._quorum.kill)

    def start(self, kafka_version: str | None) -> None:
        self._change(self._quorum.start)

    def pause(self) -> None:
        self._change(self._quorum.pause)

    def resume(self) -> None:
        self._change(self._quorum.resume)

    def restore(self) -> None:
        self.resume()
        self.start(None)
