"""What Apache Kafka 4.3.1 printed (kafka_4_3_1/), as the values that are read from it."""

from __future__ import annotations

from pathlib import Path

from kcluster.importing.described import DescribedCluster
from kcluster.importing.log_lines import LogReading, read_log
from kcluster.importing.tool_output import ToolText, read_tools

FOLDER = Path(__file__).parent / "kafka_4_3_1"


def output(name: str) -> ToolText:
    return ToolText(name, (FOLDER / name).read_text(encoding="utf-8"))


def cluster_of(topics: str, *configs: str, brokers: tuple[str, ...] = ()) -> DescribedCluster:
    """The cluster that these files describe; they have no problems."""
    seen, problems = read_tools(
        output(topics), [output(name) for name in configs], [output(name) for name in brokers]
    )
    assert problems == []
    return seen


def reading_of(*names: str) -> LogReading:
    """The lines of these logs; they have no problems."""
    reading = LogReading()
    for name in names:
        read_log(name, (FOLDER / name).read_text(encoding="utf-8"), reading)
    assert reading.problems == []
    return reading
