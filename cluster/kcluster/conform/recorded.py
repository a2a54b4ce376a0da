"""The recorded responses of Apache Kafka, one file per family of cases and release.

Owns: the format of these files.  Never: sends requests.

recorded/<family>.json is of the newest release.  Consecutive versions with equal outcomes share
one:

    {"case": {"4-12": outcome, "13-18": outcome}}

recorded/4.3/<family>.json has what an older release answers differently, and the names of the cases
that it answers as the newest does.  Together they are everything that it was asked:

    {"same": ["case"], "different": {"case": {"13": outcome}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kcluster.conform.references import NEWEST, REFERENCES, Reference
from kcluster.json_types import JsonObject

FOLDER: Final = Path(__file__).parent / "recorded"

Outcomes = dict[str, dict[int, object]]
"""Case -> version -> outcome."""


class Recordings:
    """The files in one folder."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    def load(self, family: str, reference: Reference) -> Outcomes:
        """The outcomes of a family; empty if it was not recorded."""
        newest = _by_version(_read(self._folder / f"{family}.json"))
        if reference == NEWEST:
            return newest
        found = _read(self._folder / reference.name / f"{family}.json")
        same = {name: newest[name] for name in found.get("same", ()) if name in newest}
        different = _by_version(found.get("different", {}))
        return same | {name: newest.get(name, {}) | one for name, one in different.items()}

    def telling(self, family: str, reference: Reference) -> dict[str, set[int]]:
        """Case -> the versions that tell most: the first and the last of each range with equal
        outcomes; of an older release only where it answers differently from the newest."""
        if reference == NEWEST:
            found = _read(self._folder / f"{family}.json")
        else:
            found = _read(self._folder / reference.name / f"{family}.json").get("different", {})
        return {
            name: {int(end) for versions in by_range for end in versions.split("-")}
            for name, by_range in found.items()
        }

    def save(self, family: str, reference: Reference, outcomes: Outcomes) -> None:
        """Write the outcomes of a family; those of other releases stay as they are."""
        if reference != NEWEST:
            self._save_older(family, reference, outcomes)
            return
        older = {one: self.load(family, one) for one in REFERENCES if one != NEWEST}
        lines = ",\n".join(_case(name, one) for name, one in outcomes.items())
        _write(self._folder / f"{family}.json", f"{{\n{lines}\n}}\n")
        for one, kept in older.items():
            if kept:
                self._save_older(family, one, kept)

    def _save_older(self, family: str, reference: Reference, outcomes: Outcomes) -> None:
        newest = self.load(family, NEWEST)
        different: Outcomes = {}
        for name, by_version in outcomes.items():
            as_newest = newest.get(name, {})
            different[name] = {
                version: one
                for version, one in by_version.items()
                if version not in as_newest or as_newest[version] != one
            }
        same = ",\n".join(f"  {_text(name)}" for name, one in different.items() if not one)
        lines = ",\n".join(_case(name, one) for name, one in different.items() if one)
        _write(
            self._folder / reference.name / f"{family}.json",
            f'{{"same": [\n{same}\n],\n"different": {{\n{lines}\n}}}}\n',
        )


def as_json(value: object) -> object:
    """A value as it is read back from a file."""
    found: object = json.loads(_text(value))
    return found


def _read(path: Path) -> JsonObject:
    found: JsonObject = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _by_version(found: Mapping[str, Mapping[str, object]]) -> Outcomes:
    out: Outcomes = {}
    for name, by_range in found.items():
        out[name] = {}
        for versions, outcome in by_range.items():
            low, _, high = versions.partition("-")
            out[name] |= dict.fromkeys(range(int(low), int(high or low) + 1), outcome)
    return out


def _case(name: str, by_version: Mapping[int, object]) -> str:
    """A case and its outcomes, one line per range of versions with equal ones."""
    ranges: list[tuple[int, int, object]] = []
    for version in sorted(by_version):
        outcome = by_version[version]
        if ranges and ranges[-1][1] == version - 1 and ranges[-1][2] == outcome:
            ranges[-1] = (ranges[-1][0], version, outcome)
        else:
            ranges.append((version, version, outcome))
    lines = [
        f"  {_text(str(a) if a == b else f'{a}-{b}')}: {_text(outcome)}" for a, b, outcome in ranges
    ]
    return f" {_text(name)}: {{\n" + ",\n".join(lines) + "\n }"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
