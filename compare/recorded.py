"""The recorded responses of Apache Kafka: recorded/<family>.json.

Owns: the format of these files.  Never: sends requests.

{"case": {"4-12": outcome, "13-18": outcome}}: consecutive versions with equal outcomes share one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "recorded"

Outcomes = dict[str, dict[str, Any]]
"""Case -> versions (`4-12`) -> outcome."""


def load(family: str) -> Outcomes:
    """The recorded outcomes of a family; empty if there are none."""
    path = FOLDER / f"{family}.json"
    if not path.is_file():
        return {}
    found: Outcomes = json.loads(path.read_text("utf-8"))
    return found


def save(family: str, outcomes: Outcomes) -> None:
    """Write a family's file, one line per case and range of versions."""
    lines = []
    for name, by_versions in outcomes.items():
        inner = [f"  {_text(versions)}: {_text(one)}" for versions, one in by_versions.items()]
        lines.append(f" {_text(name)}: {{\n" + ",\n".join(inner) + "\n }")
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{family}.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def merged(by_version: Mapping[int, Any]) -> dict[str, Any]:
    """Outcomes by range of versions: consecutive versions with equal outcomes share one."""
    out: list[tuple[int, int, Any]] = []
    for version in sorted(by_version):
        outcome = by_version[version]
        if out and out[-1][1] == version - 1 and out[-1][2] == outcome:
            out[-1] = (out[-1][0], version, outcome)
        else:
            out.append((version, version, outcome))
    return {(str(a) if a == b else f"{a}-{b}"): outcome for a, b, outcome in out}


def of_version(by_versions: Mapping[str, Any], version: int) -> Any:
    """The outcome of one version.  Raises KeyError if it was not recorded."""
    for versions, outcome in by_versions.items():
        low, _, high = versions.partition("-")
        if int(low) <= version <= int(high or low):
            return outcome
    raise KeyError(version)


def as_json(value: Any) -> Any:
    """A value as it is read back from a file."""
    return json.loads(_text(value))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
