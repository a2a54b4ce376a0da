"""A broker's server.properties, as found on its machine.

Owns: java.util.Properties' format, as far as Kafka's files use it; finding the broker of a file.
Never: opens a file, decides what a topology takes over (topology_draft.py). Kafka:
server.properties, Utils.loadProps; the names are KafkaConfig's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import show
from kcluster.importing.described import DescribedBroker, DescribedCluster, DescribedConfig
from kcluster.importing.tool_output import ToolText

_SOURCE: Final = "STATIC_BROKER_CONFIG"
_PAIR: Final = re.compile(r"(?P<name>(?:\\.|[^\\=:\s])+)\s*[=:\s]?\s*(?P<value>.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_IDS: Final = ("node.id", "broker.id")
_MAX_ID: Final = 2**31 - 1


def read_properties(files: list[ToolText]) -> DescribedCluster:
    """The brokers of these files, and the configs that each sets; problems are recorded with their
    files."""
    brokers: list[DescribedBroker] = []
    configs: dict[int, tuple[DescribedConfig, ...]] = {}
    for file in files:
        values = {name: value for _, name, value in pairs(file)}
        broker_id = next((values[name] for name in _IDS if name in values), None)
        if "broker" not in values.get("process.roles", "broker"):
            file.wrong(1, 1, "the file of a controller; only brokers are imported")
        elif broker_id is None:
            file.wrong(1, 1, "no node.id: not the server.properties of a broker")
        elif (number := whole_number(broker_id)) is None or number > _MAX_ID:
            file.wrong(1, 1, f"node.id {show(broker_id)} is not the id of a broker")
        elif number in configs:
            file.wrong(1, 1, f"broker {broker_id} has another file already")
        else:
            brokers.append(DescribedBroker(number, values.get("broker.rack") or None))
            configs[number] = tuple(
                DescribedConfig(name, value, _SOURCE)
                for name, value in values.items()
                if name not in _IDS
            )
    origin = ", ".join(file.source for file in files)
    return DescribedCluster(origin, tuple(brokers), broker_configs=configs)


def pairs(file: ToolText) -> Iterator[tuple[int, str, str]]:
    """The pairs of a file in order: (line, name, value).  A backslash at the end of a line
    continues it."""
    begun, first = "", 0
    for number, line in file.lines():
        text = line.lstrip()
        if not begun and text.startswith(("#", "!")):
            continue
        first = first if begun else number
        begun += text
        if _is_continued(begun):
            begun = begun[:-1]
            continue
        match = _PAIR.match(begun)
        if match is not None:
            yield first, _unescaped(match["name"]), _unescaped(match["value"]).strip()
        begun = ""


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(character, text)
