"""Requests to a classic group and answers to them, without the differences between versions.

Owns: `JoinCall`, the errors of JoinGroup, the shape of answers.  Never: decides on an answer.
Kafka: JoinGroupRequest, JoinGroupResponse, SyncGroupResponse; KIP-62 (rebalance timeout), KIP-559
(protocol in answers), KIP-800 (reasons).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

    MemberIdentity = LeaveGroupRequest.MemberIdentity
    MemberResponse = LeaveGroupResponse.MemberResponse

NULLABLE_PROTOCOL_NAME: Final = 7
"""JoinGroup version from which a missing protocol is null instead of ""."""
MEMBER_ID_REQUIRED_SINCE: Final = 4
"""JoinGroup version from which a new member must join again with its assigned id (KIP-394)."""
SKIP_ASSIGNMENT_SINCE: Final = 9
"""JoinGroup version from which a returning static leader can be asked not to assign (KIP-814)."""


class JoinCall(Struct, frozen=True):
    """A JoinGroup request, without the differences between its versions."""

    request: Request
    member_id: str
    """The member's id; empty if it does not have one yet."""
    instance_id: str | None
    protocol_type: str
    protocols: dict[str, bytes]
    """Name -> metadata, in the member's order of preference."""
    rebalance_timeout_ms: int
    session_timeout_ms: int
    client_reason: str
    """The client's reason to join (KIP-800); empty if it gives none."""

    @staticmethod
    def read(request: Request) -> JoinCall:
        body: m.JoinGroupRequest = request.body
        has_own_timeout = request.api_version > 0
        timeout_ms = body.rebalance_timeout_ms if has_own_timeout else body.session_timeout_ms
        return JoinCall(
            request=request,
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            protocol_type=body.protocol_type,
            protocols={one.name: bytes(one.metadata) for one in body.protocols},
            rebalance_timeout_ms=timeout_ms,
            session_timeout_ms=body.session_timeout_ms,
            client_reason=body.reason or "",
        )

    @property
    def must_join_again(self) -> bool:
        """Whether a new member first gets an id, and must then join again with that id
        (KIP-394)."""
        is_old = self.request.api_version < MEMBER_ID_REQUIRED_SINCE
        return self.instance_id is None and not is_old

    @property
    def can_skip_assignment(self) -> bool:
        return self.request.api_version >= SKIP_ASSIGNMENT_SINCE


def reply_join(broker: CoordinatorBroker, request: Request, body: m.JoinGroupResponse) -> None:
    if request.api_version < NULLABLE_PROTOCOL_NAME:
        body.protocol_name = body.protocol_name or ""
    else:
        body.protocol_name = body.protocol_name or None
    broker.reply(request, body)


def join_error(member_id: str, error: ErrorCode) -> m.JoinGroupResponse:
    return m.JoinGroupResponse(
        error_code=error, generation_id=-1, protocol_name=None, leader="", member_id=member_id
    )


def refuse_join(
    broker: CoordinatorBroker, request: Request, member_id: str, error: ErrorCode
) -> None:
    reply_join(broker, request, join_error(member_id, error))


def leave_answer(leaver: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return m.LeaveGroupResponse.MemberResponse(
        member_id=leaver.member_id, group_instance_id=leaver.group_instance_id, error_code=error
    )
