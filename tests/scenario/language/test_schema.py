"""JSON Schemas: the copies in docs are current and have every key and action."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from kcluster.config.files.fields import fields_of
from kcluster.config.topology.keys import TopologyKeys
from kcluster.conform.findings import conform_schema
from kcluster.learn.exercises import ExerciseKeys
from kcluster.learn.lesson import LessonKeys
from kcluster.runs.schema import run_schema
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.schema import keys_schema, scenario_schema, topology_schema

DOCS = Path(__file__).parents[3] / "docs" / "schema"


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("topology", topology_schema),
        ("scenario", scenario_schema),
        ("run", run_schema),
        ("conform", conform_schema),
        ("lesson", partial(keys_schema, "lesson", LessonKeys)),
        ("exercise", partial(keys_schema, "exercise", ExerciseKeys)),
    ],
)
def test_schema__the_copies_in_docs_are_current(file: str, schema: object) -> None:
    shown = json.loads((DOCS / f"{file}.schema.json").read_text())
    made = schema()  # type: ignore[operator]  # one of two functions
    assert shown == made, f"kcluster schema {file} > docs/schema/{file}.schema.json"


def test_schema__has_every_key_and_action() -> None:
    assert set(topology_schema()["properties"]) == {field.key for field in fields_of(TopologyKeys)}
    step = scenario_schema()["$defs"]["step"]["anyOf"][0]
    assert set(ACTIONS) <= set(step["properties"])
    assert step["properties"]["kill"]["anyOf"][0]["properties"]["how"]["enum"] == [
        "kill",
        "clean",
        "power",
        "wipe",
    ]


def test_schema__takes_what_yaml_makes_of_words_without_quotes() -> None:
    schema = scenario_schema()
    producers = schema["properties"]["workload"]["properties"]["producers"]
    acks = producers["anyOf"][0]["properties"]["acks"]
    assert {"0", "1", "all", 0, 1} <= set(acks["enum"])
    wait = schema["$defs"]["step"]["anyOf"][0]["properties"]["wait"]
    assert wait["type"] == ["object", "null"], "`wait:` stands alone in the incidents"


def test_schema__keys_have_their_sentence_and_their_default() -> None:
    step = scenario_schema()["$defs"]["step"]["anyOf"][0]["properties"]
    latency = step["slow_disk"]["anyOf"][0]["properties"]["latency"]
    assert latency["description"] == "How much longer each append takes."
    assert latency["default"] == "100ms"
