"""Saved output of Kafka's command line tools, read as values.

Owns: the formats of `kafka-topics --describe`, `kafka-configs --describe`, `kafka-cluster
list-endpoints` and `kafka-broker-api-versions`, as Kafka 4.3.1 prints them.  Never: opens a file,
decides what a topology takes over (topology_draft.py). Kafka: TopicCommand, ConfigCommand,
ClusterTool, BrokerApiVersionsCommand.

Text copied from a terminal has spaces in place of the tool's tabs; both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import Problem, show
from kcluster.importing.described import (
    DEFAULT_SOURCE,
    NO_LEADER,
    DescribedBroker,
    DescribedCluster,
    DescribedConfig,
    DescribedPartition,
    DescribedTopic,
    LeftOut,
)


class ToolOutput(StrEnum):
    """The kinds of files, each with the option that takes it."""

    TOPICS = "--topics"
    CONFIGS = "--configs"
    BROKERS = "--brokers"


_TOOLS: Final = {
    ToolOutput.TOPICS: "kafka-topics --describe",
    ToolOutput.CONFIGS: "kafka-configs --describe",
    ToolOutput.BROKERS: "kafka-cluster list-endpoints or kafka-broker-api-versions",
}

_TOPIC: Final = re.compile(r"Topic: (?P<name>\S+)\s+TopicId: \S+\s+PartitionCount: (?P<count>\d+)")
_CONFIGS_OF_TOPIC: Final = re.compile(r"\sConfigs: (?P<configs>.*?)(\s+MarkedForDeletion: \S+)?$")
_PARTITION: Final = re.compile(r"\s*Topic: (?P<name>\S+)\s+Partition: ")
_PARTITION_KEY: Final = re.compile(
    r"(?:^|\s)(Topic|Partition|Leader|Replicas|Adding Replicas|Removing Replicas|Isr|Elr"
    r"|LastKnownElr|MarkedForDeletion|Offline):"
)
_CONFIG_OF: Final = re.compile(
    r"(All|Dynamic) configs for (?P<kind>[a-z-]+) (?P<name>\S+) are:\s*$"
)
_DEFAULTS: Final = re.compile(r"Default configs for brokers in the cluster are:\s*$")
_CONFIG: Final = re.compile(
    r"\s+(?P<name>[A-Za-z0-9_.-]+)=(?P<value>.*?) sensitive=(?P<sensitive>true|false)"
    r" synonyms=\{(?P<source>[A-Z_]*)"
)
_ENDPOINTS: Final = re.compile(r"ID\s+HOST\s+PORT\s+RACK\s+STATE\s+ENDPOINT_TYPE\s*$")
_ENDPOINT: Final = re.compile(
    r"(?P<id>\d+)\s+\S+\s+\d+\s+(?P<rack>\S+)\s+(un)?fenced\s+(?P<type>\S+)\s*$"
)
_API_VERSIONS: Final = re.compile(r"\S+:\d+ \(id: (?P<id>\d+) rack: (?P<rack>\S+) isFenced: ")
_API_VERSION: Final = re.compile(r"\s+[A-Za-z]+\(\d+\): |\)\s*$")
_LOGGED: Final = re.compile(r"\[?\d{4}-\d\d-\d\d |WARN|Option ")
"""A tool's warnings, which are often saved with its output."""
_NAMED_VALUE: Final = re.compile(r",(?=[a-z][a-z0-9.]*=)")


class ToolText(Struct):
    """A file that is read line by line; collects its problems and its unknown lines."""

    source: str
    text: str
    problems: list[Problem] = []
    skipped: list[Problem] = []

    def lines(self) -> Iterator[tuple[int, str]]:
        """(number, line) of all lines that are not empty."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if line.strip():
                yield number, line.rstrip("\r")

    def wrong(self, line: int, column: int, text: str) -> None:
        """Record a problem at this place; lines and columns count from 1."""
        self.problems.append(Problem(self.source, line, column, "", text))

    def skip(self, line: int, text: str) -> None:
        """Record a line that is not understood; a tool's warnings are ignored."""
        if not _LOGGED.match(text):
            column = len(text) - len(text.lstrip()) + 1
            words = f"not understood: {show(text.strip())}"
            self.skipped.append(Problem(self.source, line, column, "", words))


class SeenConfigs(Struct):
    """The configs of one or several files."""

    brokers: dict[int, list[DescribedConfig]] = {}
    defaults: list[DescribedConfig] = []
    topics: dict[str, list[DescribedConfig]] = {}
    others: list[str] = []
    """Headings of entities other than brokers and topics: `group billing`."""


def output_kind(text: str) -> ToolOutput | None:
    """The kind of a text, by its first known line."""
    for line in text.split("\n"):
        if _TOPIC.match(line) or _PARTITION.match(line):
            return ToolOutput.TOPICS
        if _CONFIG_OF.match(line) or _DEFAULTS.match(line) or _CONFIG.match(line):
            return ToolOutput.CONFIGS
        if _ENDPOINTS.match(line) or _API_VERSIONS.match(line):
            return ToolOutput.BROKERS
    return None


def has_kind(file: ToolText, wanted: ToolOutput) -> bool:
    """Whether a file has the kind that its option takes; records a problem if not."""
    first = next(file.lines(), None)
    if first is None:
        file.wrong(1, 1, f"empty; {wanted} takes the output of {_TOOLS[wanted]}")
        return False
    kind = output_kind(file.text)
    if kind is wanted:
        return True
    expected = f"{wanted} takes the output of {_TOOLS[wanted]}"
    if kind is None:
        file.wrong(first[0], 1, f"{show(first[1].strip())}: {expected}")
    else:
        what = f"this is the output of {_TOOLS[kind]}; give it with {kind}"
        file.wrong(first[0], 1, f"{what}; {expected}")
    return False


# ------------------------------------------------------------------------------------- topics


def read_topics(file: ToolText) -> list[DescribedTopic]:
    """The topics of `kafka-topics --describe`."""
    if not has_kind(file, ToolOutput.TOPICS):
        return []
    heads: dict[str, tuple[int, int, tuple[DescribedConfig, ...]]] = {}
    partitions: dict[str, list[DescribedPartition]] = {}
    for number, line in file.lines():
        head = _TOPIC.match(line)
        if head is not None:
            found = _CONFIGS_OF_TOPIC.search(line)
            configs = topic_line_configs(found["configs"] if found else "")
            heads[head["name"]] = (number, int(head["count"]), configs)
            partitions.setdefault(head["name"], [])
        elif (row := _PARTITION.match(line)) is not None:
            partition = _partition(file, number, line)
            if row["name"] not in heads:
                words = f"a partition of {row['name']} before the line of that topic"
                file.wrong(number, row.start("name") + 1, words)
            elif partition is not None:
                partitions[row["name"]].append(partition)
        else:
            file.skip(number, line)
    topics = []
    for name, (number, count, configs) in heads.items():
        rows = sorted(partitions[name], key=lambda partition: partition.number)
        if [row.number for row in rows] != list(range(count)) and not file.problems:
            words = f"{name} has {count} partitions; {len(rows)} lines of them follow"
            file.wrong(number, 1, words)
        topics.append(DescribedTopic(name, tuple(rows), configs))
    return topics


def topic_line_configs(text: str) -> tuple[DescribedConfig, ...]:
    """The configs of a topic's line: `cleanup.policy=compact,delete,retention.ms=1` -> two configs.
    The tool separates configs, and the items of a list, by the same comma."""
    pairs = [item.partition("=") for item in _NAMED_VALUE.split(text.strip()) if item]
    return tuple(DescribedConfig(name, value) for name, _, value in pairs)


def _partition(file: ToolText, number: int, line: str) -> DescribedPartition | None:
    """The partition in a line; each key in it is followed by words up to the next key."""
    keys = list(_PARTITION_KEY.finditer(line))
    ends = [key.start() for key in keys[1:]] + [len(line)]
    values = {
        key[1]: (line[key.end() : end].strip(), key.end() + 2)
        for key, end in zip(keys, ends, strict=True)
    }
    for key in ("Partition", "Leader", "Replicas", "Isr"):
        if key not in values:
            file.wrong(number, len(line) + 1, f"the line of a partition without `{key}:`")
            return None
    leader, _ = values["Leader"]
    index = _ids(file, number, *values["Partition"])
    leaders = () if leader == "none" else _ids(file, number, *values["Leader"])
    replicas = _ids(file, number, *values["Replicas"])
    removing = _ids(file, number, *values.get("Removing Replicas", ("", 1)))
    isr = _ids(file, number, *values["Isr"])
    if index is None or leaders is None or replicas is None or isr is None or removing is None:
        return None
    if len(index) != 1 or not replicas:
        file.wrong(number, 1, "the line of a partition without its number or its replicas")
        return None
    kept = tuple(replica for replica in replicas if replica not in removing) or replicas
    return DescribedPartition(index[0], leaders[0] if leaders else NO_LEADER, kept, isr)


def _ids(file: ToolText, number: int, text: str, column: int) -> tuple[int, ...] | None:
    words = [word.strip() for word in text.split(",")] if text else []
    ids = tuple(found for word in words if (found := whole_number(word)) is not None)
    if len(ids) == len(words):
        return ids
    file.wrong(number, column, f"{show(text)}: not ids separated by commas")
    return None


# ------------------------------------------------------------------------------------ configs


def read_configs_output(file: ToolText, into: SeenConfigs) -> None:
    """Add the configs of brokers and topics that `kafka-configs --describe` shows.  The last value
    of a config counts.  A config without synonyms is not set."""
    if not has_kind(file, ToolOutput.CONFIGS):
        return
    rows: list[DescribedConfig] | None = None
    for number, line in file.lines():
        head = _CONFIG_OF.match(line)
        if head is not None or _DEFAULTS.match(line):
            rows = into.defaults if head is None else _rows_of(file, number, head, into)
            continue
        config = _CONFIG.match(line)
        if config is None:
            file.skip(number, line)
        elif rows is None:
            file.wrong(
                number,
                config.start("name") + 1,
                "a config before the line that says what it belongs to",
            )
        else:
            value = None if config["value"] == "null" else config["value"]
            source = config["source"] or DEFAULT_SOURCE
            seen = DescribedConfig(config["name"], value, source, config["sensitive"] == "true")
            rows[:] = [row for row in rows if row.name != seen.name] + [seen]


def _rows_of(
    file: ToolText, number: int, head: re.Match[str], into: SeenConfigs
) -> list[DescribedConfig]:
    kind, name = head["kind"], head["name"]
    if kind == "topic":
        return into.topics.setdefault(name, [])
    broker_id = whole_number(name)
    if kind == "broker" and broker_id is not None:
        return into.brokers.setdefault(broker_id, [])
    if kind == "broker":
        file.wrong(number, head.start("name") + 1, f"{show(name)} is not the id of a broker")
    else:
        into.others.append(f"{kind} {name}")
    return []


# ------------------------------------------------------------------------------------ brokers


def read_brokers(file: ToolText) -> list[DescribedBroker]:
    """The brokers of `kafka-cluster list-endpoints` or `kafka-broker-api-versions`."""
    if not has_kind(file, ToolOutput.BROKERS):
        return []
    brokers: dict[int, DescribedBroker] = {}
    for number, line in file.lines():
        row = _ENDPOINT.match(line) or _API_VERSIONS.match(line)
        if row is not None:
            is_broker = row.groupdict().get("type", "broker") == "broker"
            if is_broker:
                rack = None if row["rack"] == "null" else row["rack"]
                brokers[int(row["id"])] = DescribedBroker(int(row["id"]), rack)
        elif not (_ENDPOINTS.match(line) or _API_VERSION.match(line)):
            file.skip(number, line)
    return list(brokers.values())


# ---------------------------------------------------------------------------------- all files


def read_tools(
    topics: ToolText, configs: Sequence[ToolText], brokers: Sequence[ToolText]
) -> tuple[DescribedCluster, list[Problem]]:
    """The cluster that the files describe together, and every problem of any of them."""
    seen_topics = read_topics(topics)
    seen = SeenConfigs()
    for file in configs:
        read_configs_output(file, seen)
    seen_brokers = [broker for file in brokers for broker in read_brokers(file)]
    files = [topics, *configs, *brokers]
    left_out = [
        LeftOut(f"{one.source}:{one.line}:{one.column}", one.text)
        for file in files
        for one in file.skipped
    ]
    left_out += [LeftOut(f"configs of {one}", "no part of a topology") for one in seen.others]
    cluster = DescribedCluster(
        origin=", ".join(file.source for file in files),
        brokers=tuple({broker.id: broker for broker in seen_brokers}.values()),
        topics=tuple(seen_topics),
        broker_configs={number: tuple(rows) for number, rows in seen.brokers.items()},
        default_configs=tuple(seen.defaults),
        topic_configs={name: tuple(rows) for name, rows in seen.topics.items()},
        left_out=tuple(left_out),
    )
    return cluster, [problem for file in files for problem in file.problems]
