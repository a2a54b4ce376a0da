"""What the recorded answers hold: no names of the machine that they were recorded on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kcluster.conform.cases import families
from kcluster.conform.conversations import conversations
from kcluster.conform.needs import NEEDS, dependents
from kcluster.conform.recorded import FOLDER
from kcluster.conform.references import NEWEST

TEXTS = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.rglob("*.json"))}
BY_CASES = {"a", "b", "h", "*", "localhost", "10.0.0.5", "10.0.0.0/8", "<text>", "127.0.0.1"}
"""Hosts that cases name themselves, and the loopback address that every recorded cluster had."""


def hosts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            if name in ("host", "client_host") and isinstance(one, str):
                yield one
            else:
                yield from hosts(one)
    elif isinstance(value, list):
        for one in value:
            yield from hosts(one)


def test_recorded__no_host_and_no_path_of_a_machine() -> None:
    for name, text in TEXTS.items():
        assert {host.removeprefix("/") for host in hosts(json.loads(text))} <= BY_CASES, name
        assert not re.search(r"\"/(home|root|work|Users|var)/", text), name


def test_needs__name_cases_that_are_there() -> None:
    known = {f"conversation: {name}" for name in conversations()}
    for family, cases in families(NEWEST).items():
        known |= {f"{family}: {case.name}" for case in cases}
    for need, cases_of_it in dependents().items():
        assert cases_of_it <= known, need
    assert {need.name for need in NEEDS} <= dependents().keys()
