"""Words for brokers that a verb acted on or left alone.

Owns: these words.  Never: chooses the brokers for a verb (operations/states.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcluster.deaths import ProcessState
from kcluster.json_types import JsonObject
from kcluster.node_ids import CONTROLLER_ID
from kcluster.operations.states import StateVerb


def left_alone_lines(verb: StateVerb, brokers: Sequence[JsonObject]) -> Iterator[str]:
    """The brokers that are left alone, and the verb for them: `broker 1 is already down; start it:
    …`.  `brokers`: the id and the state of each."""
    by_state: dict[ProcessState, list[int]] = {}
    for broker in brokers:
        by_state.setdefault(ProcessState(broker["state"]), []).append(broker["id"])
    for state, nodes in by_state.items():
        are = f"{brokers_text(nodes)} {'is' if len(nodes) == 1 else 'are'}"
        match verb, state:
            case (StateVerb.START, ProcessState.UP):
                yield f"{are} already up"
            case (StateVerb.START, ProcessState.PAUSED):
                yield f"{are} paused, not down; {_hint('resume', nodes)}"
            case (StateVerb.RESUME, ProcessState.UP):
                yield f"{are} not paused; {_hint('pause', nodes)}"
            case (StateVerb.RESUME, _):
                yield f"{are} down, not paused; {_hint('start', nodes)}"
            case (StateVerb.PAUSE, ProcessState.PAUSED):
                yield f"{are} already paused; {_hint('resume', nodes)}"
            case (_, ProcessState.PAUSED):
                hints = f"{_hint('resume', nodes)}, or {_hint('kill', nodes)}"
                yield f"{are} paused and cannot shut down cleanly; {hints}"
            case (StateVerb.KILL, _):
                yield f"{are} already down; {_hint('start', nodes)}"
            case _:
                yield f"{are} down; {_hint('start', nodes)}"


def brokers_text(nodes: Sequence[int]) -> str:
    """The names of brokers: `broker 1`, `brokers 1 and 2`, or `the controller and broker 1`."""
    brokers = [node for node in nodes if node != CONTROLLER_ID]
    texts = ["the controller"] if CONTROLLER_ID in nodes else []
    if len(brokers) == 1:
        texts.append(f"broker {brokers[0]}")
    elif brokers:
        texts.append(f"brokers {', '.join(map(str, brokers[:-1]))} and {brokers[-1]}")
    return " and ".join(texts)


def seconds_text(seconds: float) -> str:
    """A duration in words: `9 s`, `90 ms`."""
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def _hint(verb: str, nodes: Sequence[int]) -> str:
    """The hint at a verb: `start them: kcluster start 1,2`."""
    ids = ",".join("controller" if node == CONTROLLER_ID else str(node) for node in nodes)
    return f"{verb} {'it' if len(nodes) == 1 else 'them'}: kcluster {verb} {ids}"
