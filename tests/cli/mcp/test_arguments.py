"""Schemas from click's parameters, and command lines from JSON values."""

from __future__ import annotations

import jsonschema
import pytest

from kcluster.cli.mcp.arguments import WrongArguments, command_line, schema_of
from kcluster.cli.mcp.tools import TOOLS, Tool


def no_file(name: str, text: str) -> str:
    raise AssertionError(f"no file is written: {name} {text}")


@pytest.mark.parametrize("tool", TOOLS.values(), ids=[*TOOLS])
def test_tool__has_a_description_and_a_schema_of_its_verb(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(tool))
    assert len(tool.description()) > 20
    assert {*tool.texts} <= {*tool.shown.split()}


def test_words__options_before_arguments_which_are_no_options() -> None:
    given = {"condition": "--help", "within": "3s", "name": "agent1"}
    assert command_line(TOOLS["wait"], given, no_file) == [
        "wait",
        "--within=3s",
        "--name=agent1",
        "--",
        "--help",
    ]


def test_words__flags_numbers_and_lists() -> None:
    given = {"n": 3, "kind": ["leader_elected", "isr_shrunk"], "name": "a"}
    assert command_line(TOOLS["events"], given, no_file) == [
        *("events", "-n", "3", "--kind=leader_elected", "--kind=isr_shrunk", "--name=a")
    ]
    unwaited = {"action": "kill: 1", "wait": False, "name": "a"}
    assert command_line(TOOLS["fault"], unwaited, no_file) == [
        *("fault", "--no-wait", "--name=a", "--", "kill: 1")
    ]


def test_text__of_a_file_is_written_and_a_path_is_not() -> None:
    written: list[tuple[str, str]] = []

    def write(name: str, text: str) -> str:
        written.append((name, text))
        return "written"

    assert command_line(TOOLS["shrink"], {"file": "a.yaml"}, write)[-1] == "a.yaml"
    assert command_line(TOOLS["shrink"], {"file": "steps: []\n"}, write)[-1] == "written"
    assert written == [("scenario.yaml", "steps: []\n")]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sed": 1, "file": "a"}, "did you mean seed?"),
        ({"seed": True, "file": "a"}, "seed: takes a number, not true"),
        ({"seed": -1, "file": "a"}, "seed: -1 is not in the range x>=0"),
        ({"file": "\ud800"}, "half of a character"),
        ({"file": "  "}, "file: is empty"),
        ({"file": {"a": [1]}, "out": {"a": 1}}, 'out: takes text, not {"a": 1}'),
        ({}, "file: is missing"),
    ],
)
def test_problems__name_the_argument(given: dict[str, object], problem: str) -> None:
    with pytest.raises(WrongArguments, match=r".") as refused:
        command_line(TOOLS["shrink"], given, no_file)
    assert problem in str(refused.value)
