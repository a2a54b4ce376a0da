"""One case or conversation at a time: recorded from a real cluster, or checked against that.

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
    """What one version of a case comes to; a step that failed is an outcome too."""
    try:
        return recorded.as_json(runner.run(case, version))
    except CaseError as problem:
        return f"could not be asked: {problem}"


def record(runner: Runner, case: Case) -> dict[str, Any]:
    """A case in all its versions, asked of a real cluster."""
    return recorded.merged(
        {version: outcome(runner, case, version) for version in case.each_version()}
    )


def check(runner: Runner, family: str, case: Case, kept: Outcomes) -> list[Difference]:
    """A case in all its versions, asked of ours, beside what was recorded; nothing if ours does
    not serve the API at all, which ApiVersions tells."""
    if case.api not in SERVED_APIS:
        return []
    pairs: dict[int, tuple[Any, Any]] = {}
    for version in case.each_version():
        try:
            expected = recorded.of_version(kept.get(case.name, {}), version)
        except KeyError:
            expected = "not recorded: make compare"
        pairs[version] = (expected, outcome(runner, case, version))
    return differences(f"{family}: {case.name}", pairs)


def record_conversation(runner: Runner, conversation: Conversation) -> None:
    """Asked of a real cluster, and written down at once."""
    kept = recorded.load(CONVERSATIONS)
    kept[conversation.name] = {"0": recorded.as_json(runner.converse(conversation))}
    recorded.save(CONVERSATIONS, kept)


def check_conversation(runner: Runner, conversation: Conversation) -> list[Difference]:
    """Held with ours, beside what was recorded."""
    kept = recorded.load(CONVERSATIONS).get(conversation.name, {"0": "not recorded: make compare"})
    told = recorded.as_json(runner.converse(conversation))
    return differences(f"conversation: {conversation.name}", {0: (kept["0"], told)})
