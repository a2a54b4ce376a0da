"""Write protocol/releases.txt: the API versions that brokers of each Kafka release list.

    python tools/read_versions.py --jars DIR_WITH_KAFKA_CLIENTS_JARS --slf4j slf4j-api-1.7.36.jar

Owns: running BrokerVersions.java on each kafka-clients-X.jar, and the format of the table (defined
in cluster/kcluster/protocol/releases.py).  Never: copies prose, only facts.
Needs Java 17.  Get the jars with `mvn dependency:copy -Dartifact=org.apache.kafka:kafka-clients:X`;
the last patch of each release is used.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "cluster"))

from kcluster.protocol.apis import ApiKey  # noqa: E402 - after the path is set

TABLE = REPOSITORY / "cluster" / "kcluster" / "protocol" / "releases.txt"
PROGRAM = REPOSITORY / "tools" / "BrokerVersions.java"
FIRST_KRAFT = (3, 3)
"""From this release on the table has the versions of a KRaft broker (KIP-833), before it those of a
ZooKeeper broker."""

Ranges = dict[int, str]
"""API key -> `low-high`."""


def facts_of(jar: Path, slf4j: Path, release: tuple[int, int]) -> tuple[Ranges, int]:
    """(the API versions that a broker of the release lists, its highest error code)."""
    command = ["java", "-cp", f"{jar}:{slf4j}", str(PROGRAM)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    listener = "broker" if release >= FIRST_KRAFT else "zk"
    ranges: Ranges = {}
    highest_error = 0
    for line in text.splitlines():
        match line.split():
            case ["api", key, _name, low, high, listeners] if listener in listeners.split(","):
                ranges[int(key)] = f"{low}-{high}"
            case ["errors", code]:
                highest_error = int(code)
    return ranges, highest_error


def table(facts: dict[tuple[int, int], tuple[Ranges, int]]) -> str:
    """The table as text; a row has the releases in which a value changed."""
    names = {release: f"{release[0]}.{release[1]}" for release in facts}
    lines = [
        "# Written by tools/read_versions.py.  What a broker of each release lists in ApiVersions:",
        "# KEY NAME RELEASE LOW-HIGH ..., each holding until the next; - where it is not listed.",
        f"releases {' '.join(names.values())}",
        _row("errors", {names[release]: str(known) for release, (_, known) in facts.items()}),
    ]
    for key in sorted({key for ranges, _ in facts.values() for key in ranges}):
        listed = {names[release]: ranges.get(key, "-") for release, (ranges, _) in facts.items()}
        lines.append(_row(f"{key} {ApiKey(key).name}", listed))
    return "\n".join(lines) + "\n"


def _row(head: str, values: dict[str, str]) -> str:
    cells, last = [head], "-"
    for release, value in values.items():
        if value != last:
            cells.append(f"{release} {value}")
        last = value
    return "  ".join(cells)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--slf4j", type=Path, required=True)
    arguments = parser.parse_args()
    patches = {}
    for jar in arguments.jars.glob("kafka-clients-*.jar"):
        found = re.fullmatch(r"kafka-clients-(\d+(?:\.\d+)+)\.jar", jar.name)
        if found is not None:
            patches[tuple(int(number) for number in found[1].split("."))] = jar
    last = {(numbers[0], numbers[1]): jar for numbers, jar in sorted(patches.items())}
    facts = {release: facts_of(jar, arguments.slf4j, release) for release, jar in last.items()}
    TABLE.write_text(table(facts))


if __name__ == "__main__":
    main()
