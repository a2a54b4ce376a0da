"""The corpus: what once made something fail, one small file each, replayed as ordinary tests.

Owns: the format of its files.  Never: plays them.

    # OverflowError in group_log.py: encode
    # brokers, seed 5
    {"type":"sent","broker":1,...}

The head says what it was, and from which target and seed; then comes one step per line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.fuzz.episodes import Failure, Target

CORPUS: Final = Path(__file__).parent / "corpus"
SUFFIX: Final = ".jsonl"


def add(directory: Path, target: Target, seed: str, failure: Failure, steps: Sequence[Any]) -> Path:
    """Write what was found; a failure of the same name replaces the one before."""
    directory.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", failure.what.lower()).strip("-")
    path = directory / f"{target.name}-{name}{SUFFIX}"
    rows = [msgspec.json.encode(step) for step in steps]
    head = f"# {failure.what}\n# {target.name}, seed {seed}\n"
    path.write_bytes(head.encode() + b"".join(row + b"\n" for row in rows))
    return path


def target_of(path: Path) -> str:
    """The name of the target that an entry is for."""
    return path.read_text().splitlines()[1].removeprefix("# ").partition(",")[0]


def read(path: Path, step: Any) -> list[Any]:
    """The steps of an entry; `step`: their type."""
    lines = path.read_bytes().splitlines()
    decode = msgspec.json.Decoder(step).decode
    return [decode(line) for line in lines if line and not line.startswith(b"#")]


def entries(directory: Path = CORPUS) -> list[Path]:
    """All entries, by name."""
    return sorted(directory.glob(f"*{SUFFIX}"))
