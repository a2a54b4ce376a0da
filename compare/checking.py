"""Records a case or conversation on a real cluster, or checks ours against the recording.

Owns: record and check.  Never: prints, reads options.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

import kcluster.broker.node  # noqa: F401  registers every handler
from compare.differences import Difference, differences
from kcluster.broker.registry import SERVED_APIS
from kcluster.conform import recorded
from kcluster.conform.case import Case, Conversation
from kcluster.conform.filling import CaseError
from kcluster.conform.recorded import Outcomes
from kcluster.conform.running import CaseRunner

CONVERSATIONS = "conversations"
TRIES = 4
_UNKNOWN = object()


def outcome(runner: CaseRunner, case: Case, version: int) -> Any:
    """The outcome of one version of a case; a failed step is an outcome, too."""
    try:
        return recorded.as_json(runner.run(case, version))
    except CaseError as problem:
        return f"could not be asked: {problem}"


def record(runner: CaseRunner, case: Case, known: Mapping[int, Any]) -> dict[int, Any]:
    """Run all versions of a case on a real cluster; the outcome of each.  `known`: outcomes of
    before.  What differs is asked again, until one outcome has come twice: a slow machine shows
    states that pass."""
    found: dict[int, Any] = {}
    for version in case.each_version(runner.reference):
        found[version] = repeated(
            partial(outcome, runner, case, version), known.get(version, _UNKNOWN)
        )
    return found


def repeated(ask: Callable[[], Any], known: Any) -> Any:
    """What `ask` answers, as soon as it is `known` or comes twice; else the last of three."""
    outcomes = [known]
    while len(outcomes) < TRIES:
        asked = ask()
        if asked in outcomes:
            return asked
        outcomes.append(asked)
    return outcomes[-1]


def check(
    runner: CaseRunner,
    family: str,
    case: Case,
    recording: Outcomes,
    only: Container[int] | None = None,
) -> list[Difference]:
    """Run all versions of a case, or those in `only`, on ours, and compare with the recording of
    the runner's release.  No differences if ours does not serve the API, which the case of
    ApiVersions shows."""
    if case.api not in SERVED_APIS:
        return []
    pairs: dict[int, tuple[Any, Any]] = {}
    for version in case.each_version(runner.reference):
        if only is not None and version not in only:
            continue
        expected = recording.get(case.name, {}).get(version, _not_recorded(runner))
        pairs[version] = (expected, outcome(runner, case, version))
    return differences(runner.reference.version, f"{family}: {case.name}", pairs)


def record_conversation(
    runner: CaseRunner, conversation: Conversation, known: Mapping[int, Any]
) -> dict[int, Any]:
    """Run a conversation on a real cluster; its outcome as that of version 0.  `known`: as for
    `record`."""

    def ask() -> Any:
        return recorded.as_json(runner.converse(conversation))

    return {0: repeated(ask, known.get(0, _UNKNOWN))}


def check_conversation(
    runner: CaseRunner, conversation: Conversation, recording: Outcomes
) -> list[Difference]:
    """Run a conversation on ours, and compare with the recording."""
    expected = recording.get(conversation.name, {}).get(0, _not_recorded(runner))
    ours = recorded.as_json(runner.converse(conversation))
    name = f"conversation: {conversation.name}"
    return differences(runner.reference.version, name, {0: (expected, ours)})


def _not_recorded(runner: CaseRunner) -> str:
    return f"not recorded: make compare KAFKA={runner.reference.version}"
