"""Records a case or conversation on a real cluster, or checks ours against the recording.

Owns: record and check.  Never: prints, reads options.
"""

from __future__ import annotations

from typing import Any

import kcluster.broker.node  # noqa: F401  registers every handler
from compare import recorded
from compare.case import Case, Conversation
from compare.differences import Difference, differences
from compare.filling import CaseError
from compare.recorded import Outcomes
from compare.running import Runner
from kcluster.broker.registry import SERVED_APIS

CONVERSATIONS = "conversations"


def outcome(runner: Runner, case: Case, version: int) -> Any:
    """The outcome of one version of a case; a failed step is an outcome, too."""
    try:
        return recorded.as_json(runner.run(case, version))
    except CaseError as problem:
        return f"could not be asked: {problem}"


def record(runner: Runner, case: Case) -> dict[str, Any]:
    """Run all versions of a case on a real cluster."""
    return recorded.merged(
        {version: outcome(runner, case, version) for version in case.each_version()}
    )


def check(runner: Runner, family: str, case: Case, recording: Outcomes) -> list[Difference]:
    """Run all versions of a case on ours, and compare with the recording.  No differences if ours
    does not serve the API, which the case of ApiVersions shows."""
    if case.api not in SERVED_APIS:
        return []
    pairs: dict[int, tuple[Any, Any]] = {}
    for version in case.each_version():
        try:
            expected = recorded.of_version(recording.get(case.name, {}), version)
        except KeyError:
            expected = "not recorded: make compare"
        pairs[version] = (expected, outcome(runner, case, version))
    return differences(f"{family}: {case.name}", pairs)


def record_conversation(runner: Runner, conversation: Conversation) -> None:
    """Run a conversation on a real cluster, and save it."""
    recording = recorded.load(CONVERSATIONS)
    recording[conversation.name] = {"0": recorded.as_json(runner.converse(conversation))}
    recorded.save(CONVERSATIONS, recording)


def check_conversation(runner: Runner, conversation: Conversation) -> list[Difference]:
    """Run a conversation on ours, and compare with the recording."""
    recording = recorded.load(CONVERSATIONS).get(
        conversation.name, {"0": "not recorded: make compare"}
    )
    ours = recorded.as_json(runner.converse(conversation))
    return differences(f"conversation: {conversation.name}", {0: (recording["0"], ours)})
