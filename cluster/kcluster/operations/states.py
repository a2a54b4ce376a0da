"""The choice of the brokers on which a verb acts, if some are already in the state to which it
leads.

Owns: the rule, for the command line, Python and scenario files.  Never: acts on a broker, refuses;
imports msgspec: `kcluster --help` loads this.
Kafka: systemctl start, which starts only services that do not run.

A verb for several brokers acts on the brokers whose state allows it, and leaves the others as they
are.  A single broker in the wrong state is refused, because its user expects it to be in another
state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from kcluster.deaths import ProcessState
from kcluster.operations.errors import ClusterError


class StateVerb(StrEnum):
    """A verb that changes the state of processes."""

    KILL = "kill"
    START = "start"
    RESTART = "restart"
    PAUSE = "pause"
    RESUME = "resume"


ACTS_ON: Final[Mapping[StateVerb, tuple[ProcessState, ...]]] = {
    StateVerb.KILL: (ProcessState.UP, ProcessState.PAUSED),
    StateVerb.START: (ProcessState.DOWN,),
    StateVerb.RESTART: (ProcessState.UP, ProcessState.PAUSED),
    StateVerb.PAUSE: (ProcessState.UP,),
    StateVerb.RESUME: (ProcessState.PAUSED,),
}
"""The states in which each verb has an effect."""


class Chosen(NamedTuple):
    """The result of `choose`.  `nodes`: the nodes on which the verb acts.  `left_alone`: the
    others, with their states."""

    nodes: tuple[int, ...]
    left_alone: tuple[tuple[int, ProcessState], ...] = ()


class WrongState(ClusterError):
    """The error for a verb on a single node, in a state in which the verb does nothing.
    `left_alone`: that node, as in Chosen."""

    def __init__(self, text: str, left_alone: tuple[tuple[int, ProcessState], ...]) -> None:
        super().__init__(text)
        self.left_alone = left_alone


def choose(
    verb: StateVerb, nodes: Sequence[tuple[int, ProcessState]], can_wait: bool = True
) -> Chosen:
    """Divide nodes by whether the verb acts on them in their states.  `can_wait`: whether a paused
    process may be asked to shut down; it is killed if it does not do so in time."""
    allowed = [x for x in ACTS_ON[verb] if can_wait or x is not ProcessState.PAUSED]
    return Chosen(
        tuple(node for node, state in nodes if state in allowed),
        tuple((node, state) for node, state in nodes if state not in allowed),
    )
