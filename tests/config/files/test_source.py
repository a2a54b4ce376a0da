"""Files of each kind: a message calls the file what it is."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from kcluster.config.files.problems import ProblemsError
from kcluster.config.topology.model import Topology
from kcluster.learn.exercises import exercise_of
from kcluster.learn.lesson import load_lesson
from kcluster.pipeline.sweep.grid import load_grid
from kcluster.scenario.language.scenario import Scenario

READERS: dict[str, Callable[[Path], object]] = {
    "topology": Topology.load,
    "scenario": Scenario.load,
    "lesson": load_lesson,
    "exercise": lambda path: exercise_of(str(path)),
    "grid": load_grid,
}


@pytest.mark.parametrize("word", READERS)
def test_file__messages_name_its_kind(word: str, tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"

    def refused(data: bytes | None) -> list[str]:
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(ProblemsError) as caught:
            READERS[word](path)
        return str(caught.value).replace(str(path), "f").splitlines()

    one = "an exercise" if word == "exercise" else f"a {word}"
    assert refused(b"a: 1\n---\nb: 2") == [f"f:2:1: a second document; one {word} to a file"]
    assert refused(b"#" * 600_000) == [f"f: larger than 512 KiB: not {one}"]
    assert refused(b"a: b\nc: \xff") == ["f:2:4: byte 0xff is not UTF-8"]
    assert refused("a: b".encode("utf-16")) == ["f:1:1: UTF-16; save it as UTF-8"]
    assert refused(b"")[0].startswith("f:1:1: empty")
    assert refused(None) == ["f: no such file"]
    assert f"no such key of {one}" in refused(b"namee: 1")[0]


def test_error__passes_from_one_process_to_another() -> None:
    with pytest.raises(ProblemsError) as caught:
        Topology.parse("{brokers: 0, topicz: {}}")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))
