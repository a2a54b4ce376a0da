"""AlterUserScramCredentials (API 51, v0): what users' passwords are checked against.

Owns: which credentials are accepted, and the records for them.  Never: sees a password (clients
send it salted and hashed), authenticates anybody, describes (brokers do, from their images).
Kafka: ScramControlManager, ScramFormatter; KIP-554, KIP-900; RFC 5802.

A user is altered at most once in a request, in whatever mechanism.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

from kcluster.controller.outcome import ApiError
from kcluster.controller.registry import answers
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.metadata.image import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.hash_order import hash_order, string_hash

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

MECHANISMS: Final = {1: ("SCRAM-SHA-256", "sha256"), 2: ("SCRAM-SHA-512", "sha512")}
"""Kafka's ScramMechanism codes -> its name, the hash."""

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384

_OK: Final = ApiError(ErrorCode.NONE)
_TWICE: Final = ApiError(ErrorCode.DUPLICATE_RESOURCE, "a user is altered once in a request")


@answers("AlterUserScramCredentialsRequest")
def alter_user_scram_credentials(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: deletions before upsertions; first told are users deleted, then users set, then
    those who failed."""
    deletions: dict[str, Any] = {}
    upsertions: dict[str, Any] = {}
    failed: dict[str, ApiError] = {}
    for change in request.deletions:
        _sort_out(change, deletions, (deletions,), failed, _deletion_problem(node, change))
    for change in request.upsertions:
        problem = _upsertion_problem(change)
        _sort_out(change, upsertions, (deletions, upsertions), failed, problem)
    for user in _order(upsertions):
        if not upsertions[user].salted_password:
            # 4.3.1 finds out only when it hashes it, and has no better answer.
            failed[user] = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            del upsertions[user]
    for user in _order(deletions):
        _remove(node, deletions[user])
    for user in _order(upsertions):
        _set(node, upsertions[user])
    outcomes = [(user, _OK) for user in (*_order(deletions), *_order(upsertions))]
    outcomes += [(user, failed[user]) for user in _order(failed)]
    response = m.AlterUserScramCredentialsResponse
    return response(
        results=[
            response.AlterUserScramCredentialsResult(user, error.code, error.message)
            for user, error in outcomes
        ]
    )


def _order(by_user: dict[str, Any]) -> list[str]:
    return hash_order(by_user, string_hash)


def _sort_out(
    change: Any,
    accepted: dict[str, Any],
    earlier: tuple[dict[str, Any], ...],
    failed: dict[str, ApiError],
    problem: ApiError | None,
) -> None:
    """Put a change where it belongs; a second one for a user takes the first one with it."""
    user = change.name
    if user in failed:
        return
    for others in earlier:
        if others.pop(user, None) is not None:
            failed[user] = _TWICE
            return
    if problem is not None:
        failed[user] = problem
    else:
        accepted[user] = change


def _problem(change: Any) -> ApiError | None:
    if not change.name:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user has a name")
    if change.mechanism not in MECHANISMS:
        text = f"there is no SCRAM mechanism {change.mechanism}"
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    return None


def _deletion_problem(node: ControllerNode, change: Any) -> ApiError | None:
    problem = _problem(change)
    if problem is None and (change.name, change.mechanism) not in node.image.scram_credentials:
        text = f"{change.name} has no {MECHANISMS[change.mechanism][0]} credential"
        return ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return problem


def _upsertion_problem(change: Any) -> ApiError | None:
    problem = _problem(change)
    if problem is None and not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
        text = f"{change.iterations} iterations are not {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    return problem


def _remove(node: ControllerNode, change: Any) -> None:
    name, mechanism = change.name, change.mechanism
    removed: dict[str, str | None] = {MECHANISMS[mechanism][0]: None}
    cause = node.note(ConfigChanged(ResourceType.USER, name, removed))
    node.commit([RemoveUserScramCredentialRecord(name, mechanism, cause)])


def _set(node: ControllerNode, change: Any) -> None:
    mechanism, hash_name = MECHANISMS[change.mechanism]
    salted = bytes(change.salted_password)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    credential: dict[str, str | None] = {mechanism: f"[iterations={change.iterations}]"}
    cause = node.note(ConfigChanged(ResourceType.USER, change.name, credential))
    records: list[MetadataRecord] = [
        UserScramCredentialRecord(
            name=change.name,
            mechanism=change.mechanism,
            salt=bytes(change.salt),
            stored_key=hashlib.new(hash_name, client_key).digest(),
            server_key=hmac.digest(salted, b"Server Key", hash_name),
            iterations=change.iterations,
            cause=cause,
        )
    ]
    node.commit(records)
