"""Brokers and partitions as people type them: `1`, `orders-0`.

Owns: reading what was typed against the cluster's status; a wrong word is answered with the right
one.  Never: decides whether the cluster can do what was asked.
Kafka: kafka-topics.sh --describe shows the same names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kcluster.cli.control.protocol import ControlError

if TYPE_CHECKING:
    from kcluster.operations.status import BrokerStatus, ClusterStatus, PartitionStatus


def find_broker(status: ClusterStatus, typed: str | int) -> BrokerStatus:
    """The broker with this id.  ControlError suggests the id if something else was typed."""
    text = str(typed).strip()
    by_id = {str(broker.id): broker for broker in status.brokers}
    if text in by_id:
        return by_id[text]
    digits = "".join(char for char in text if char.isascii() and char.isdecimal()).lstrip("0")
    by_address = {f"{broker.host}:{broker.port}": broker for broker in status.brokers} | {
        str(broker.port): broker for broker in status.brokers
    }
    known = ", ".join(by_id)
    if text in by_address:
        raise ControlError(f"{text} is the address of broker {by_address[text].id}; use the id", 2)
    if digits in by_id and digits != text:
        raise ControlError(f"{text!r} is not a broker id; did you mean {digits}?", 2)
    raise ControlError(f"there is no broker {text}; the brokers are {known}", 2)


def find_partition(status: ClusterStatus, typed: str) -> PartitionStatus:
    """The partition written as `orders-0`.  ControlError suggests a name if it does not exist."""
    text = typed.strip()
    partitions: dict[str, list[PartitionStatus]] = {}
    for found in status.partitions:
        partitions.setdefault(found.topic, []).append(found)
    topic, dash, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal()
    if dash and is_number and topic in partitions:
        of_topic = partitions[topic]
        for found in of_topic:
            if found.partition == int(number):
                return found
        raise ControlError(f"{topic} has no partition {int(number)}; {_range(of_topic)}", 2)
    if text in partitions:
        raise ControlError(f"{text} is a topic; name a partition: {_range(partitions[text])}", 2)
    for separator in (":", "/", ",", "["):
        head, found_separator, tail = text.partition(separator)
        tail = tail.rstrip("]")
        if found_separator and head in partitions and tail.isdecimal():
            raise ControlError(f"a partition is written with a dash: {head}-{tail}", 2)
    word = topic if dash and is_number else text
    raise ControlError(_unknown_topic(word, number if is_number else "0", partitions), 2)


def check_topic(status: ClusterStatus, typed: str) -> None:
    """Raise ControlError, with the nearest name, if there is no such topic."""
    topics = dict.fromkeys(found.topic for found in status.partitions)
    if typed not in topics:
        from kcluster.config.files.problems import unknown

        names = [name for name in topics if not name.startswith("__")] or list(topics)
        known = unknown("topic", typed, names) if names else "there are no topics yet"
        raise ControlError(f"--topic {typed}: {known}")


def _unknown_topic(
    word: str, number: str, partitions: Mapping[str, Sequence[PartitionStatus]]
) -> str:
    from kcluster.config.files.problems import nearest

    meant = nearest(word, partitions)
    if meant is not None:
        return f"there is no topic {word}; did you mean {meant}-{number}?"
    names = [name for name in sorted(partitions) if not name.startswith("__")]
    if not names:
        return f"there is no topic {word}; there are no topics yet"
    more = f", … and {len(names) - 12} more" if len(names) > 12 else ""
    return f"there is no topic {word}; the topics are {', '.join(names[:12])}{more}"


def _range(of_topic: Sequence[PartitionStatus]) -> str:
    first = of_topic[0]
    if len(of_topic) == 1:
        return f"there is {first.topic}-{first.partition}"
    last = of_topic[-1]
    return f"there are {first.topic}-{first.partition} to {last.topic}-{last.partition}"


def start_hint(broker: BrokerStatus) -> str:
    """The command that starts a broker."""
    return f"start it: kcluster start {broker.id}"


def resume_hint(broker: BrokerStatus) -> str:
    """The command that resumes a broker."""
    return f"resume it: kcluster resume {broker.id}"
