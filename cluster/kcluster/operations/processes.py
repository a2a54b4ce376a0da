"""The processes that verbs act on: of brokers, of the controller, and of a workload's clients.

Owns: the ports RunningProcess and RunningClient.  Never: acts on one (verbs.py does), runs a client
(scenario/play/client_process.py does).
Kafka: kill -9, SIGSTOP of a process, and its supervisor.
"""

from __future__ import annotations

from typing import Protocol

from kcluster.deaths import DeathKind, ProcessState
from kcluster.operations.states import StateVerb


class RunningProcess(Protocol):
    """A process, in the driver's thread.  ClusterError for what its kind cannot do."""

    @property
    def label(self) -> str:
        """Its name in messages: `broker 1`, `the controller`, `client shop`."""

    @property
    def state(self) -> ProcessState:
        """Whether it runs, is paused, or is down."""

    def state_for(self, verb: StateVerb) -> ProcessState:
        """The state that a verb meets: `state`, unless the process stands for several."""

    def end(self, how: DeathKind) -> None:
        """End it, or ask it to shut down (`clean`)."""

    def start(self, kafka_version: str | None) -> None:
        """Start it again; with a release, it runs as that release from now on."""

    def pause(self) -> None:
        """Stop it, as by SIGSTOP."""

    def resume(self) -> None:
        """Let it go on."""

    def restore(self) -> None:
        """Undo an operation on it: resume it if it is paused, start it if it is down, or start it
        as soon as its controlled shutdown is over."""


class RunningClient(Protocol):
    """The process of one client of the workload; used in the driver's thread."""

    name: str

    @property
    def state(self) -> ProcessState:
        """DOWN also if its application has ended by itself, or is being closed by a step."""

    def kill(self) -> None:
        """End the process, as SIGKILL does: its connections close, and it sends nothing more."""

    def stop(self) -> None:
        """End the application, as close() does: it sends what it has, and leaves its group."""

    def start(self) -> None:
        """Start a new process of the client, which has ended, with the same settings."""

    def pause(self) -> None:
        """Stop the process, as by SIGSTOP; its connections stay open."""

    def resume(self) -> None:
        """Let a paused process go on: what has arrived meanwhile comes first."""
