"""The users of a run on somebody's cluster, who log in by SCRAM.

Owns: whether a run can have users and why not, making them, their logins.  Never: knows what a
right is (rights.py), deletes (cleaning.py).  Kafka: kafka-configs --alter --entity-type users.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from kcluster.conform.case import LogIn
from kcluster.conform.filling import Untried, Values
from kcluster.conform.logins import Frames, log_in
from kcluster.conform.probes import Asker
from kcluster.conform.rights import Right, create_acls
from kcluster.json_types import JsonObject
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import error_of
from kcluster.security.sasl.mechanisms import SCRAM_CODES
from kcluster.security.sasl.scram_keys import salted_password

ITERATIONS: Final = 4_096
"""The fewest that Kafka accepts."""
USER: Final = "{user}"
CONNECTION: Final = "user"
_TRIES: Final = 50
_RETRY_AFTER_MS: Final = 100
_NEEDED: Final = (
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS,
)  # fmt: skip


class RunUsers(Struct, frozen=True):
    """How the users of a run log in: by this mechanism of SCRAM, all with one password.  `reason`:
    why the run has no users, "" if it has."""

    mechanism: str = ""
    password: str = ""
    reason: str = ""


NO_USERS: Final = RunUsers(reason="it needs users: --command-config of an administrator by SASL")


def users_of(
    mechanisms: Collection[str] | None,
    listed: Collection[int],
    password: str,
    *,
    has_authorizer: bool,
) -> RunUsers:
    """The users that a run can have.  `mechanisms`: those of the listener at which the run logs in,
    None if it does not; `listed`: the APIs that the cluster lists."""
    if mechanisms is None:
        return NO_USERS
    if not has_authorizer:
        return RunUsers(reason="it needs a cluster with an authorizer")
    for api in _NEEDED:
        if api not in listed:
            return RunUsers(reason=f"it needs users: the cluster does not list {APIS[api].name}")
    for mechanism in SCRAM_CODES:
        if mechanism in mechanisms:
            return RunUsers(mechanism, password)
    return RunUsers(reason="it needs users: the listener has no SCRAM")


def make_users(
    runner: Asker, users: RunUsers, rights: Mapping[str, Iterable[Right]], values: Values
) -> None:
    """Make these users, and give them rights; Untried if the cluster refuses."""
    body = {"upsertions": [_credential(users, str(values.fill(name))) for name in rights]}
    answer = runner.message(m.AlterUserScramCredentialsResponse, body, 1, values)
    for row in answer.results:
        if row.error_code:
            raise Untried(f"no user can be made: {error_of(row.error_code).name}")
    create_acls(runner, rights, values)


def _credential(users: RunUsers, name: str) -> JsonObject:
    salt = name.encode()
    return {
        "name": name,
        "mechanism": SCRAM_CODES[users.mechanism],
        "iterations": ITERATIONS,
        "salt": salt,
        "salted_password": salted_password(users.mechanism, users.password, salt, ITERATIONS),
    }


def log_in_user(
    runner: Frames, users: RunUsers, name: str, on: str, to: int, values: Values
) -> None:
    """Log in as a user at a broker as soon as it knows the user; Untried if it never does."""
    login = LogIn(name, on, users.mechanism, users.password)
    for _ in range(_TRIES):
        answers = log_in(runner, login, to, values)
        if all(isinstance(one, dict) and "error_code" not in one for one in answers):
            return
        runner.system.sleep_ms(_RETRY_AFTER_MS)
    raise Untried("a new user cannot log in")
