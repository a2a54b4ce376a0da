"""Calls that programs have registered with atexit."""

from __future__ import annotations

import pytest

from kcluster.world.errors import Deadlock
from kcluster.world.exits import AtExit, AtExits


def close(made: list[str], name: str, error: Exception | None = None) -> None:
    made.append(name)
    if error is not None:
        raise error


def test_exits__an_exception_is_written_and_the_next_call_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exits, made = AtExits(), list[str]()
    exits.register(AtExit("", close, (made, "first"), {}))
    exits.register(AtExit("", close, (made, "second", TimeoutError("not flushed")), {}))
    exits.run()
    assert made == ["second", "first"]
    written = capsys.readouterr().err
    assert written.startswith("Exception ignored in atexit callback: <function close")
    assert written.endswith("TimeoutError: not flushed\n")


def test_exits__the_end_of_the_world_is_not_ignored() -> None:
    exits = AtExits()
    exits.register(AtExit("", close, ([], "first", Deadlock([])), {}))
    with pytest.raises(Deadlock):
        exits.run()
