"""A drafted topology as a YAML file.

Owns: the file's layout and comments.  Never: decides on its content (topology_draft.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kcluster.config.files.scalars import scalar
from kcluster.importing.described import LeftOut
from kcluster.importing.topology_draft import DraftTopic, TopologyDraft

_WIDTH_CHARS: Final = 110


def topology_text(draft: TopologyDraft) -> str:
    """The topology file; comments at its end name the parts that were left out."""
    lines = [f"# {line}" for line in head_lines(draft.origin)]
    lines += ["", "name: imported", *topology_lines(draft), *left_out_lines(draft.left_out)]
    return "\n".join(lines) + "\n"


def head_lines(origin: str) -> list[str]:
    """The comment at the beginning of the file."""
    return [
        f"Imported by `kcluster import` from {origin}.",
        "Brokers listen on free ports: give them a `port` each for fixed ones. Topics start empty:",
        "records, groups and their offsets, users, ACLs and quotas are not imported.",
    ]


def topology_lines(draft: TopologyDraft) -> list[str]:
    """The keys of a topology: configs, brokers, topics."""
    lines: list[str] = []
    if draft.config:
        lines += ["config:", *(f"  {line}" for line in _entries(draft.config))]
    lines.append("brokers:")
    for broker in draft.brokers:
        entries = [f"id: {broker.id}"]
        if broker.rack is not None:
            entries.append(f"rack: {scalar(broker.rack)}")
        if broker.config:
            entries.append(f"config: {_flow(broker.config)}")
        lines.append(f"  - {{{', '.join(entries)}}}")
    if draft.topics:
        lines += ["topics:", *(line for topic in draft.topics for line in _topic_lines(topic))]
    return lines


def left_out_lines(left_out: Sequence[LeftOut]) -> list[str]:
    """The comments that name the parts that were left out."""
    if not left_out:
        return []
    return ["", "# Not taken over:", *(f"#   {text_for_comment(str(entry))}" for entry in left_out)]


def _topic_lines(topic: DraftTopic) -> Iterator[str]:
    rows = ["[" + ", ".join(map(str, row)) + "]" for row in topic.assignment]
    yield f"  {scalar(topic.name)}:"
    yield from _wrapped("    assignment: [", rows, "]")
    if topic.config:
        yield "    config:"
        yield from (f"      {line}" for line in _entries(topic.config))


def _wrapped(head: str, items: Sequence[str], tail: str) -> Iterator[str]:
    line = head
    for at, item in enumerate(items):
        piece = item + (", " if at < len(items) - 1 else tail)
        if len(line) + len(piece) > _WIDTH_CHARS:
            yield line.rstrip()
            line = " " * len(head)
        line += piece
    yield line


def _entries(config: Mapping[str, str]) -> Iterable[str]:
    return (f"{scalar(name)}: {scalar(value)}" for name, value in config.items())


def _flow(config: Mapping[str, str]) -> str:
    return "{" + ", ".join(_entries(config)) + "}"


def text_for_comment(text: str) -> str:
    """Text for a comment: on one line, without control characters."""
    return text if text.isprintable() else repr(text)
