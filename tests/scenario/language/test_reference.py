"""The reference: every key is explained, every example is right, and the page in docs/ has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kcluster.operations.conditions import FORMS, condition
from kcluster.operations.targets import TARGET_WORDS, targets
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.reference import KeyTable, pages
from kcluster.scenario.language.reference_text import as_markdown
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

DOCS = Path(__file__).parents[3] / "docs"
CLUSTER: dict[str, Any] = {
    "topology": {
        "profile": "fast",
        "brokers": [{"id": x, "rack": rack} for x, rack in enumerate("abc", 1)],
        "topics": {"orders": {"assignment": [[1, 2, 3], [2, 3, 1], [3, 1, 2]]}},
    },
    "workload": {
        "producers": {"topic": "orders", "name": "shop", "rate": "50/s"},
        "consumers": {"topics": "orders", "name": "billing", "group": "billing"},
    },
    "duration": "800ms",
}
BEFORE = {
    "start": ["kill: 1"],
    "replace_disk": ["kill: 1"],
    "delete_group": ["{after: 200ms, stop: client billing}"],
    "reset_offsets": ["{after: 200ms, stop: client billing}"],
    "resume": ["pause: 2"],
    "remove_broker": ["kill: 3", "{when: event broker_fenced of broker 3, wait: }"],
    "elect": ["move: {partition: orders-0, to: 2}", "{when: leader(orders-0) = 2, wait: }"],
}
"""Steps that make an action's example possible."""
IN_TOPOLOGY: dict[str, Any] = {
    "acl": {"security": {"authorizer": True, "super_users": ["ANONYMOUS"]}},
    "end_sessions": {"listeners": {"SASL_PLAINTEXT": {}}, "security": {"users": {"alice": "a"}}},
    "expire_token": {
        "listeners": {"SASL_PLAINTEXT": {}},
        "config": {"sasl.enabled.mechanisms": "OAUTHBEARER"},
    },
    "certificate": {"listeners": {"SSL": {}}, "security": {"tls": "auto"}},
    "remove_acl": {
        "security": {
            "super_users": ["ANONYMOUS"],
            "acls": [{"allow": "alice", "to": "write", "topic": "orders"}],
        }
    },
}
"""Keys of the topology that make an action's example possible."""
BY_TOKEN = {name: {**keys, "user": "alice"} for name, keys in CLUSTER["workload"].items()}
IN_FILE: dict[str, Any] = {"expire_token": {"workload": BY_TOKEN}}
"""Other parts of the file that do."""


NEED_PROGRAMS = {"stall"}
"""Actions on programs beside a cluster; tests/testing/test_apps.py plays them."""


@pytest.mark.parametrize("verb", sorted(ACTIONS.keys() - NEED_PROGRAMS))
def test_reference__the_example_of_an_action_runs(verb: str) -> None:
    steps = [yaml.safe_load(step) for step in (*BEFORE.get(verb, ()), ACTIONS[verb].EXAMPLE)]
    steps = [step if isinstance(step, dict) else {step: None} for step in steps]
    steps[-1]["after"] = "100ms"
    cluster = CLUSTER | {"topology": CLUSTER["topology"] | IN_TOPOLOGY.get(verb, {})}
    cluster |= IN_FILE.get(verb, {})
    scenario = Scenario.parse(yaml.safe_dump({**cluster, "steps": steps}), "example.yaml")
    assert scenario.steps[-1].verb == verb
    result = run_scenario(scenario, "virtual", 1)
    assert not result.has_problems, result.failures
    assert len(result.played) >= len(steps)


@pytest.mark.parametrize("page", [page for page in pages().values() if not page.is_action])
def test_reference__the_examples_of_the_parts_of_a_file_are_right(page: Any) -> None:
    example = page.example
    if page.name in ("topology", "workload", "steps", "checks"):
        file = CLUSTER | yaml.safe_load(example)
    elif page.name == "conditions":
        file = CLUSTER | {"steps": [yaml.safe_load(example)]}
    elif page.name == "targets":
        file = CLUSTER | {"steps": [yaml.safe_load(line) for line in example.splitlines()]}
    else:
        return
    Scenario.parse(yaml.safe_dump(file), "example.yaml")


def test_reference__every_key_is_explained() -> None:
    silent = [
        f"{page.name}.{line.key}"
        for page in pages().values()
        for table in page.tables
        if isinstance(table, KeyTable)
        for line in table.lines
        if not line.words or not line.form
    ]
    assert silent == []


def test_reference__every_form_of_a_condition_and_of_a_target_can_be_read() -> None:
    assert [condition(form).shown for form, _ in FORMS] == [form for form, _ in FORMS]
    for word in TARGET_WORDS:
        if word.EXAMPLE.isascii() and " by " not in word.EXAMPLE and "..." not in word.EXAMPLE:
            assert targets(word.EXAMPLE.replace("a broker's id", "2")), word.EXAMPLE


def test_reference__the_copy_in_docs_is_current() -> None:
    command = "kcluster scenario help --markdown > docs/reference/scenario-keys.md"
    assert (DOCS / "reference" / "scenario-keys.md").read_text("utf-8") == as_markdown(), command
