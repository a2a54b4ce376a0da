"""AlterUserScramCredentials (API 51, v0): the values against which users' passwords are checked.

Owns: the acceptance of credentials, and the records for them, also for the users of a new cluster.
Never: sees another password (clients send theirs salted and hashed), authenticates a user, answers
DescribeUserScramCredentials (brokers do, from their images).
Kafka: ScramControlManager, ScramFormatter; KIP-554, KIP-900; RFC 5802.

A request may alter a user only once, whatever the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kcluster.config.topology.specs import UserSpec
from kcluster.contract import NoteId
from kcluster.controller.outcome import ApiError
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.metadata.records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.java import hash_order, java_hash_code
from kcluster.security.sasl.mechanisms import SCRAM_CODES, SCRAM_NAMES
from kcluster.security.sasl.nonces import draw_text
from kcluster.security.sasl.scram_keys import MIN_ITERATIONS, derive_keys, keys_of_salted

MAX_ITERATIONS: Final = 16384

if TYPE_CHECKING:
    _Deletion = m.AlterUserScramCredentialsRequest.ScramCredentialDeletion
    _Upsertion = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion

C = TypeVar("C", bound="_Deletion | _Upsertion")

_OK: Final = ApiError(ErrorCode.NONE)
_TWICE: Final = ApiError(ErrorCode.DUPLICATE_RESOURCE, "a request may alter a user only once")


class ScramCredentials:
    """The users' SCRAM credentials, in the metadata."""

    def __init__(self, metadata: MetadataPort, users: Sequence[tuple[UserSpec, str]] = ()) -> None:
        self._metadata = metadata
        self._users = users
        """The users of a new cluster, with their mechanisms."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"AlterUserScramCredentialsRequest": self.alter_user_scram_credentials}

    def initial_records(self) -> list[MetadataRecord]:
        """The records of a newly formatted cluster.  Kafka: kafka-storage format --add-scram."""
        return [
            _record(
                user.name,
                mechanism,
                draw_text(self._metadata.rng).encode(),
                user.password,
                MIN_ITERATIONS,
            )
            for user, mechanism in self._users
        ]

    def alter_user_scram_credentials(
        self, request: m.AlterUserScramCredentialsRequest, _now_ms: int
    ) -> m.AlterUserScramCredentialsResponse:
        """Change credentials, deletions first.  The answer lists users deleted, then users set,
        then users whose changes failed."""
        deletions: dict[str, _Deletion] = {}
        upsertions: dict[str, _Upsertion] = {}
        failed: dict[str, ApiError] = {}
        for deletion in request.deletions:
            _accept(deletion, deletions, (deletions,), failed, self._deletion_problem(deletion))
        for upsertion in request.upsertions:
            problem = _upsertion_problem(upsertion)
            _accept(upsertion, upsertions, (deletions, upsertions), failed, problem)
        for user in _order(upsertions):
            if not upsertions[user].salted_password:
                # 4.3.1 notices only while hashing, and has no better error.
                failed[user] = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
                del upsertions[user]
        for user in _order(deletions):
            self._remove(deletions[user])
        for user in _order(upsertions):
            self._set(upsertions[user])
        outcomes = [(user, _OK) for user in (*_order(deletions), *_order(upsertions))]
        outcomes += [(user, failed[user]) for user in _order(failed)]
        response = m.AlterUserScramCredentialsResponse
        return response(
            results=[
                response.AlterUserScramCredentialsResult(user, error.code, error.message)
                for user, error in outcomes
            ]
        )

    def _deletion_problem(self, change: _Deletion) -> ApiError | None:
        problem = _problem(change)
        if (
            problem is None
            and (change.name, change.mechanism) not in self._metadata.image.scram_credentials
        ):
            text = f"{change.name} has no {SCRAM_NAMES[change.mechanism]} credential"
            return ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
        return problem

    def _remove(self, change: _Deletion) -> None:
        name, mechanism = change.name, change.mechanism
        removed: dict[str, str | None] = {SCRAM_NAMES[mechanism]: None}
        cause = self._metadata.note(ConfigChanged(ResourceType.USER, name, removed))
        self._metadata.commit([RemoveUserScramCredentialRecord(name, mechanism, cause)])

    def _set(self, change: _Upsertion) -> None:
        mechanism = SCRAM_NAMES[change.mechanism]
        credential: dict[str, str | None] = {mechanism: f"[iterations={change.iterations}]"}
        cause = self._metadata.note(ConfigChanged(ResourceType.USER, change.name, credential))
        salt, salted = bytes(change.salt), bytes(change.salted_password)
        self._metadata.commit(
            [_record(change.name, mechanism, salt, salted, change.iterations, cause)]
        )


def _record(
    name: str,
    mechanism: str,
    salt: bytes,
    secret: str | bytes,
    iterations: int,
    cause: NoteId | None = None,
) -> UserScramCredentialRecord:
    """The record of a credential.  `secret`: the password, or the password salted and hashed."""
    if isinstance(secret, str):
        keys = derive_keys(mechanism, secret, salt, iterations)
    else:
        keys = keys_of_salted(mechanism, secret, salt, iterations)
    return UserScramCredentialRecord(
        name=name,
        mechanism=SCRAM_CODES[mechanism],
        salt=salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=iterations,
        cause=cause,
    )


def _order(by_user: Mapping[str, object]) -> list[str]:
    return hash_order(by_user, java_hash_code)


def _accept(
    change: C,
    accepted: dict[str, C],
    earlier: tuple[dict[str, _Deletion] | dict[str, _Upsertion], ...],
    failed: dict[str, ApiError],
    problem: ApiError | None,
) -> None:
    """Accept or refuse a change.  A second change for a user also undoes the first."""
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


def _problem(change: _Deletion | _Upsertion) -> ApiError | None:
    if not change.name:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the user name is empty")
    if change.mechanism not in SCRAM_NAMES:
        text = f"there is no SCRAM mechanism {change.mechanism}"
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    return None


def _upsertion_problem(change: _Upsertion) -> ApiError | None:
    problem = _problem(change)
    if problem is None and not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
        text = f"{change.iterations} iterations: must be {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    return problem
