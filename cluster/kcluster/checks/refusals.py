"""Clients that were refused by security, apart from those refused by failure.

Owns: the rights that a client lacked, from the errors that it got; the records that were not
written for that reason.  Never: judges a refusal (a record that was refused is failed, not lost);
looks into a broker.
Kafka: AuthorizationException and AuthenticationException with their subclasses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.checks.older_metadata import NONE_LATE, LateBrokers
from kcluster.clients.ledger import ClientError, Ledger, Outcome
from kcluster.clients.logins import SSL_HANDSHAKE_FAILED
from kcluster.events.words.base import counted
from kcluster.principals import ANONYMOUS
from kcluster.protocol.errors import ErrorCode

LOGIN_ERRORS: Final = (
    ErrorCode.SASL_AUTHENTICATION_FAILED.name,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM.name,
    ErrorCode.ILLEGAL_SASL_STATE.name,
    SSL_HANDSHAKE_FAILED,
)
_RESOURCES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED.name: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED.name: "group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.name: "transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name: "cluster",
}
"""The kinds of resources to which a client lacked a right, by the error."""
SECURITY_ERRORS: Final = (*LOGIN_ERRORS, *_RESOURCES)

_OPERATIONS: Final = {
    ("topic", "Produce"): "WRITE",
    ("topic", "AddPartitionsToTxn"): "WRITE",
    ("topic", "Metadata"): "DESCRIBE",
    ("topic", "ListOffsets"): "DESCRIBE",
    ("topic", "OffsetForLeaderEpoch"): "DESCRIBE",
    ("group", "FindCoordinator"): "DESCRIBE",
    ("transactional id", "FindCoordinator"): "DESCRIBE",
    ("cluster", "InitProducerId"): "IDEMPOTENT_WRITE",
}
"""The operations that need a right, by the kind of the resource and the API that was refused."""
_OTHERS: Final = {"topic": "READ", "group": "READ", "transactional id": "WRITE"}
"""The operations of all other APIs, by the kind of the resource."""


class RefusedBySecurity(Struct, frozen=True):
    """A client that could not log in, or lacked a right.

    `principal`: such as `User:alice`; `operation`, `resource`: the right, such as `WRITE` and
    `topic orders`; empty for a login.  `records`: how many of its records were not written for that
    reason; `count`: how often it got the error; `first_ms`: the time of the first.  `late_brokers`:
    the brokers that refused it before a change of ACLs or passwords had reached them."""

    client: str
    principal: str
    error: str
    operation: str
    resource: str
    records: int
    count: int
    first_ms: int
    late_brokers: tuple[int, ...] = ()

    @property
    def is_login(self) -> bool:
        """Whether the client could not log in."""
        return self.error in LOGIN_ERRORS


def find_refused(ledger: Ledger, late: LateBrokers = NONE_LATE) -> tuple[RefusedBySecurity, ...]:
    """The clients that were refused by security, in order of time.  `late`: the brokers that did so
    by older metadata."""
    found: dict[tuple[str, str, str, str], list[ClientError]] = {}
    for error in ledger.errors:
        if error.error in SECURITY_ERRORS:
            key = (error.client, error.error, *_right(error))
            found.setdefault(key, []).append(error)
    if not found:
        return ()
    records = _records(ledger)
    return tuple(
        RefusedBySecurity(
            client,
            ledger.principals.get(client, str(ANONYMOUS)),
            name,
            operation,
            resource,
            _records_of(records, client, name, resource),
            len(errors),
            errors[0].at_ms,
            late.get((client, name in LOGIN_ERRORS), ()),
        )
        for (client, name, operation, resource), errors in found.items()
    )


def _right(error: ClientError) -> tuple[str, str]:
    """The operation and the resource of a refusal; empty for a login."""
    kind = _RESOURCES.get(error.error)
    if kind is None:
        return "", ""
    operation = _OPERATIONS.get((kind, error.api)) or _OTHERS.get(kind, "CLUSTER_ACTION")
    named = kind == "topic" and error.partition is not None
    return operation, f"topic {error.partition[0]}" if named and error.partition else kind


def _records(ledger: Ledger) -> Counter[tuple[str, str, str]]:
    """The records that were not written, by producer, error and topic."""
    return Counter(
        (send.producer, send.error, send.partition[0])
        for send in ledger.sends
        if send.outcome is Outcome.FAILED and send.error in SECURITY_ERRORS
    )


def _records_of(
    records: Mapping[tuple[str, str, str], int], client: str, error: str, resource: str
) -> int:
    topic = resource.removeprefix("topic ") if resource.startswith("topic ") else None
    return sum(
        count
        for (producer, name, sent_to), count in records.items()
        if (producer, name) == (client, error) and topic in (None, sent_to)
    )


def refused_line(refused: RefusedBySecurity) -> str:
    """One line: `refused by security: shop, User:alice may not WRITE topic orders, 34 records`."""
    if refused.error == SSL_HANDSHAKE_FAILED:
        what = "its TLS handshake failed"
    elif refused.is_login:
        what = f"{refused.principal} could not log in ({refused.error})"
    else:
        what = f"{refused.principal} may not {refused.operation} {refused.resource}"
    records = f", {counted(refused.records, 'record')}" if refused.records else ""
    return f"refused by security: {refused.client}, {what}{records}{_late_text(refused)}"


def _late_text(refused: RefusedBySecurity) -> str:
    if not refused.late_brokers:
        return ""
    brokers = ", ".join(map(str, refused.late_brokers))
    noun = "broker" if len(refused.late_brokers) == 1 else "brokers"
    return f"; {noun} {brokers} decided by older metadata"
