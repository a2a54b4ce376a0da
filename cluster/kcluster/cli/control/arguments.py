"""Nodes and partitions as people type them: `1`, `leader(orders-0)`, `orders-0`.

Owns: reading what was typed against the cluster's brokers and topics; suggestions for wrong words;
what to do about a broker in the wrong state.  Never: decides whether the cluster can do what was
asked, reads the state of all partitions.
Kafka: kafka-topics.sh --describe shows the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from kcluster.cli.control.protocol import ControlError
from kcluster.deaths import DeathKind, ProcessState
from kcluster.operations.states import Chosen, StateVerb

if TYPE_CHECKING:
    from kcluster.handle.cluster import Cluster
    from kcluster.operations.status import BrokerStatus, PartitionStatus


def find_broker(brokers: Sequence[BrokerStatus], typed: str | int) -> BrokerStatus:
    """The broker with this id.  ControlError suggests the id if something else was typed."""
    text = str(typed).strip()
    by_id = {str(broker.id): broker for broker in brokers}
    if text in by_id:
        return by_id[text]
    digits = "".join(char for char in text if char.isascii() and char.isdecimal()).lstrip("0")
    known = ", ".join(by_id)
    find_address(brokers, text)
    if digits in by_id and digits != text:
        raise ControlError(f"{text!r} is not a broker id; did you mean {digits}?", 2)
    raise ControlError(f"there is no broker {text}; the brokers are {known}", 2)


def find_address(brokers: Sequence[BrokerStatus], text: str) -> None:
    """ControlError with the id, if this is a broker's address or port."""
    for broker in brokers:
        if text in (f"{broker.host}:{broker.port}", str(broker.port)):
            raise ControlError(f"{text} is the address of broker {broker.id}; use the id", 2)


def find_nodes(cluster: Cluster, typed: str | int, may_be_none: bool = False) -> tuple[int, ...]:
    """The nodes that are meant now, in the words of scenarios: `1,2`, `leader(orders-0)`."""
    from kcluster.operations.targets import BrokerTarget, NameTarget, targets

    text = str(typed)
    try:
        found = targets(text)
    except ValueError as error:
        find_address(cluster.brokers(), text)
        raise ControlError(f"{text}: {error}", 2) from None
    for target in found:
        if isinstance(target, BrokerTarget) and not target.is_controller:
            find_broker(cluster.brokers(), str(target.broker_id))
        if isinstance(target, NameTarget) and any(char.isdecimal() for char in target.name):
            find_broker(cluster.brokers(), target.name)
    return cluster.find(text, may_be_none)


def check_how(how: str, ways: Sequence[str]) -> None:
    """ControlError if this is none of the ways to end a broker."""
    if how not in ways:
        raise ControlError(f"how: {how!r} is not one of {', '.join(ways)}", 2)


def choose(cluster: Cluster, verb: StateVerb, nodes: tuple[int, ...], how: str = "") -> Chosen:
    """Those of these nodes that the verb acts on; none that is paused if it is to shut down
    cleanly.  ControlError, with the right verb, if a single one is named and not among them."""
    chosen = cluster.choose(verb, nodes, can_wait=how != DeathKind.CLEAN)
    if len(nodes) == 1 and not chosen.nodes:
        raise ControlError(next(left_alone_lines(verb, chosen)))
    return chosen


def left_alone_lines(verb: StateVerb, chosen: Chosen) -> Iterator[str]:
    """Who is left alone, and the verb for them: `broker 1 is already down; start it: …`."""
    by_state: dict[ProcessState, list[int]] = {}
    for node, state in chosen.left_alone:
        by_state.setdefault(state, []).append(node)
    for state, nodes in by_state.items():
        are = f"{brokers_text(nodes)} {'is' if len(nodes) == 1 else 'are'}"
        match verb, state:
            case (StateVerb.START, ProcessState.UP):
                yield f"{are} already up"
            case (StateVerb.START, ProcessState.PAUSED):
                yield f"{are} paused, not down; {resume_hint(nodes)}"
            case (StateVerb.RESUME, ProcessState.UP):
                yield f"{are} not paused; pause {_them(nodes)}: kcluster pause {_ids(nodes)}"
            case (StateVerb.RESUME, _):
                yield f"{are} down, not paused; {start_hint(nodes)}"
            case (StateVerb.PAUSE, ProcessState.PAUSED):
                yield f"{are} already paused; {resume_hint(nodes)}"
            case (_, ProcessState.PAUSED):
                kill = f"kill {_them(nodes)}: kcluster kill {_ids(nodes)}"
                yield f"{are} paused and cannot shut down cleanly; {resume_hint(nodes)}, or {kill}"
            case (StateVerb.KILL, _):
                yield f"{are} already down; {start_hint(nodes)}"
            case _:
                yield f"{are} down; {start_hint(nodes)}"


def brokers_text(nodes: Sequence[int]) -> str:
    """`broker 1`, `brokers 1 and 2`, or `the controller and broker 1`."""
    from kcluster.contract import CONTROLLER_ID

    brokers = [node for node in nodes if node != CONTROLLER_ID]
    texts = ["the controller"] if CONTROLLER_ID in nodes else []
    if len(brokers) == 1:
        texts.append(f"broker {brokers[0]}")
    elif brokers:
        texts.append(f"brokers {', '.join(map(str, brokers[:-1]))} and {brokers[-1]}")
    return " and ".join(texts)


def seconds_text(seconds: float) -> str:
    """`9 s`, `90 ms`."""
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def find_partition(cluster: Cluster, typed: str) -> PartitionStatus:
    """The partition written as `orders-0`.  ControlError suggests a name if it does not exist."""
    text = typed.strip()
    topics = cluster.topics()
    topic, dash, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal()
    if dash and is_number and topic in topics:
        if int(number) < topics[topic]:
            return cluster.partition(topic, int(number))
        raise ControlError(
            f"{topic} has no partition {int(number)}; {_range(topic, topics[topic])}", 2
        )
    if text in topics:
        raise ControlError(f"{text} is a topic; name a partition: {_range(text, topics[text])}", 2)
    for separator in (":", "/", ",", "["):
        head, found_separator, tail = text.partition(separator)
        tail = tail.rstrip("]")
        if found_separator and head in topics and tail.isdecimal():
            raise ControlError(f"a partition is written with a dash: {head}-{tail}", 2)
    word = topic if dash and is_number else text
    raise ControlError(_unknown_topic(word, number if is_number else "0", topics), 2)


def check_topic(topics: Collection[str], typed: str) -> None:
    """Raise ControlError, with the nearest name, if there is no such topic."""
    if typed not in topics:
        from kcluster.config.files.problems import unknown

        names = [name for name in topics if not name.startswith("__")] or list(topics)
        known = unknown("topic", typed, names) if names else "there are no topics yet"
        raise ControlError(f"--topic {typed}: {known}")


def _unknown_topic(word: str, number: str, topics: Collection[str]) -> str:
    from kcluster.config.files.problems import nearest

    meant = nearest(word, topics)
    if meant is not None:
        return f"there is no topic {word}; did you mean {meant}-{number}?"
    names = [name for name in sorted(topics) if not name.startswith("__")]
    if not names:
        return f"there is no topic {word}; there are no topics yet"
    more = f", … and {len(names) - 12} more" if len(names) > 12 else ""
    return f"there is no topic {word}; the topics are {', '.join(names[:12])}{more}"


def _range(topic: str, partitions: int) -> str:
    if partitions == 1:
        return f"there is {topic}-0"
    return f"there are {topic}-0 to {topic}-{partitions - 1}"


def start_hint(nodes: Sequence[int]) -> str:
    """The command that starts these brokers."""
    return f"start {_them(nodes)}: kcluster start {_ids(nodes)}"


def resume_hint(nodes: Sequence[int]) -> str:
    """The command that resumes these brokers."""
    return f"resume {_them(nodes)}: kcluster resume {_ids(nodes)}"


def _them(nodes: Sequence[int]) -> str:
    return "it" if len(nodes) == 1 else "them"


def _ids(nodes: Sequence[int]) -> str:
    from kcluster.contract import CONTROLLER_ID

    return ",".join("controller" if node == CONTROLLER_ID else str(node) for node in nodes)
