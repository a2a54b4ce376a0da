"""Files of users: mistakes in YAML, encodings, sizes and paths, each reported in one line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kcluster.config.files.problems import TopologyError, unknown
from kcluster.config.topology.model import Topology
from tests.config.refused import problems_of


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "t.yaml:1:1: empty; the least that works is `brokers: 3`"),
        ("# nothing\n", "t.yaml:1:1: empty; the least that works is `brokers: 3`"),
        ("---\n...\n", "t.yaml:2:1: empty; the least that works is `brokers: 3`"),
        ("- 1", "t.yaml:1:1: this is a list; a topology is a mapping with the key `brokers`"),
        ("word", "t.yaml:1:1: this is word; a topology is a mapping with the key `brokers`"),
        ("brokers: [1", "t.yaml:1:12: the file ends before its brackets are closed"),
        ("brokers:\n\t- 1", "t.yaml:2:1: a tab; YAML is indented with spaces"),
        ('name: "x', "t.yaml:1:9: a quote that is never closed"),
        ("a: 1\n b: 2", "t.yaml:2:3: no `:` can stand here: check the indentation above"),
        ("brokers: 3\nname: @x", "t.yaml:2:7: not YAML: while scanning for the next token"),
        ("brokers: 3\n---\nbrokers: 2", "t.yaml:2:1: a second document; one topology to a file"),
        ("brokers: 3\nbrokers: 2", "t.yaml:2:1 brokers: given twice, first in line 1"),
        ("brokers: *x", "t.yaml:1:10 brokers: aliases are not supported: write out *x"),
        ("brokers: 3\n<<: {}", "t.yaml:2:1 ['<<']: no such key of a topology"),
        ("brokers: !!int 3", "t.yaml:1:10 brokers: tags are not supported: leave out"),
        ("brokers: 3\n? [a]\n: 1", "t.yaml:2:3: a key must be a word"),
        ("brokers: 3\nname: a\x00b", "t.yaml:2:8: character U+0000 is not allowed in YAML"),
        (b"brokers: 3\nname: \xe9", "t.yaml:2:7: byte 0xe9 is not UTF-8"),
        ("brokers: 3".encode("utf-16"), "t.yaml:1:1: UTF-16; save it as UTF-8"),
        ("[" * 5_000, "t.yaml:1:14: nested more than 12 deep"),
    ],
)
def test_yaml__mistakes_are_reported_plainly(text: str | bytes, problem: str) -> None:
    found = problems_of(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_yaml__aliases_cannot_exhaust_memory() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}, *{old}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    found = problems_of(bomb + "brokers: *i")
    assert sum("aliases are not supported" in line for line in found) == 25


def test_yaml__a_huge_text_is_not_parsed() -> None:
    assert problems_of("# " + "x" * 600_000) == ["t.yaml: larger than 512 KiB: not a topology"]


def test_yaml__many_problems_cost_little_and_are_counted() -> None:
    started = time.process_time()
    found = problems_of("brokers: 1\nconfig:\n" + "".join(f"  a.{i}: 1\n" for i in range(3_000)))
    assert time.process_time() - started < 5
    assert len(found) == 101
    assert found[-1] == "... and 2900 more problems"


def test_yaml__no_message_is_long_or_unprintable() -> None:
    found = problems_of('brokers: 1\n"a\\nb\\e[31m": 1\nprofile: ' + "x" * 10_000)
    assert len(found) == 2
    assert all(len(line) < 200 and line.isprintable() for line in found)


def test_file__missing_or_a_directory_is_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    with pytest.raises(TopologyError, match=r"none\.yaml: no such file$"):
        Topology.load(missing)
    with pytest.raises(TopologyError, match=r"a directory; name the file in it$"):
        Topology.load(tmp_path)


def test_file__problems_name_it_as_the_caller_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.yaml").write_text("brokers: x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TopologyError, match=r"^c\.yaml:1:10 brokers: x is not a whole number"):
        Topology.load("c.yaml")


def test_unknown__letters_in_another_order_are_near_also_in_short_names() -> None:
    assert unknown("key", "nht", ["api", "nth"]) == "no such key; did you mean nth?"


def test_unknown__without_any_name_to_choose_from() -> None:
    assert unknown("cluster", "c9", []) == "no such cluster; there are none"
