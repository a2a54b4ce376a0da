"""Run directories that strangers wrote: explained, drawn as a page, shown at a moment.

Owns: the directory that is changed, the readers, how they may refuse it: with an exit code and a
line, never with a traceback.
Never: writes outside a directory of its own.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.cli.main import main
from kcluster.runs.directory import INFO, SCENARIO, VERDICT, write_run
from kcluster.runs.record import TABLES
from tests.fuzz.episodes import Budget, Failure, Watch, packed, shorter, unpacked
from tests.fuzz.json_texts import changed, made_up_value
from tests.rig.incidents import INCIDENTS, played

FILES: Final = (INFO, VERDICT, SCENARIO, *(table.file for table in TABLES.values()))
"""What is read; the page is only written."""
READERS: Final = (
    ("explain", "RUN"),
    ("explain", "RUN", "--html"),
    ("explain", "RUN", "--partition", "orders-0"),
    ("status", "--run", "RUN", "--at", "1s"),
    ("status", "--run", "RUN", "--at", "-0s"),
)
EDITS: Final = (1, 1, 2, 5)
WHOLE: Final = -1


class Wrote(Struct, tag="wrote"):
    """A line of a file is replaced, or one more is added at its end, or the whole file is replaced
    (WHOLE); the bytes as `packed` writes them."""

    file: str
    line: int
    bytes: str

    def smaller(self) -> Iterator[Wrote]:
        """With fewer bytes."""
        data = unpacked(self.bytes)
        for size in shorter(len(data)):
            yield replace(self, bytes=packed(data[:size]))


class Removed(Struct, tag="removed"):
    """A file is not there."""

    file: str


Step = Wrote | Removed


@cache
def base() -> dict[str, bytes]:
    """A run that is sound: its files."""
    smallest = min(INCIDENTS, key=lambda file: (file.stat().st_size, file.name))
    with tempfile.TemporaryDirectory() as parent:
        path = write_run(parent, played(smallest).record())
        return {file: (path / file).read_bytes() for file in FILES if (path / file).exists()}


class Runs:
    """The target."""

    name = "runs"
    step = Step

    def draw(self, rng: Random) -> list[Step]:
        """A few changes to one directory."""
        steps: list[Step] = []
        for _ in range(rng.choice(EDITS)):
            file = rng.choice((INFO, VERDICT, *base()))
            lines = base()[file].split(b"\n")
            kind = rng.random()
            at = rng.randrange(len(lines))
            if kind < 0.04:
                steps.append(Removed(file))
            elif kind < 0.1:
                made_up = made_up_value(rng).encode("utf-8", "surrogatepass")
                steps.append(Wrote(file, WHOLE, packed(made_up)))
            elif file in (INFO, VERDICT):  # one value over many lines
                steps.append(Wrote(file, WHOLE, packed(changed(rng, base()[file]))))
            else:
                steps.append(Wrote(file, at, packed(changed(rng, lines[at]))))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Write the directory, and read it in every way."""
        with tempfile.TemporaryDirectory() as parent:
            path = Path(parent) / "run"
            path.mkdir()
            for file, content in changed_files(steps).items():
                (path / file).write_bytes(content)
            for reader in READERS:
                failure = read(tuple(str(path) if word == "RUN" else word for word in reader))
                if failure is not None:
                    return failure
        return None


def changed_files(steps: Sequence[Step]) -> dict[str, bytes]:
    """The files of the directory after these steps."""
    files = dict(base())
    for step in steps:
        if isinstance(step, Removed):
            files.pop(step.file, None)
        elif step.line == WHOLE:
            files[step.file] = unpacked(step.bytes)
        else:
            lines = files.get(step.file, b"").split(b"\n")
            lines[step.line : step.line + 1] = [unpacked(step.bytes)]
            files[step.file] = b"\n".join(lines)
    return files


def read(words: tuple[str, ...]) -> Failure | None:
    """Run a verb in this process."""
    budget = Budget()
    out, err = io.StringIO(), io.StringIO()
    watch = Watch()
    try:
        with watch, budget, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words)
    except SystemExit as ended:
        if ended.code in (0, None):
            return budget.over
        if ended.code not in (1, 2) or not err.getvalue().startswith(("kcluster: ", "Usage: ")):
            return Failure(f"{words[0]}: exit code {ended.code}", err.getvalue()[-2_000:])
        return budget.over
    return watch.failure or budget.over
