"""The processes of a workload's clients, as verbs see them.

Owns: the port RunningClient.  Never: runs a client (scenario/play/client_process.py does).
Kafka: kill -9, SIGSTOP of a client's process, and its supervisor.
"""

from __future__ import annotations

from typing import Protocol

from kcluster.deaths import ProcessState


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
