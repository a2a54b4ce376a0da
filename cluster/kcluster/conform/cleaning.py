"""After a run: its topics, groups, transactions and users are removed from the cluster.

Owns: finding everything with the run's prefix, emptying groups, deleting.  Never: touches another
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from kcluster.conform.filling import CaseError
from kcluster.conform.rights import acl_filter
from kcluster.conform.running import CaseRunner
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

Row = TypeVar("Row")
TRIES: Final = 20
RETRY_AFTER_MS: Final = 250
_GONE: Final = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
_LEAVES: Final = -1
"""The epoch with which a member of a group of KIP-848, 932 or 1071 leaves."""


def sweep(runner: CaseRunner, prefix: str, *, has_users: bool = False) -> list[str]:
    """Remove everything whose name begins with `prefix`; the names that are left.  `has_users`:
    whether the run had users."""
    left: list[str] = []
    of_users = (_delete_acls, _delete_users) if has_users else ()
    for remove in (*of_users, _end_transactions, _delete_groups, _delete_topics):
        try:
            left += remove(runner, prefix)
        except CaseError as problem:
            left.append(str(problem))
    return left


def _end_transactions(runner: CaseRunner, prefix: str) -> list[str]:
    """Abort what is open: a new producer with the same id does it."""
    if not runner.serves(ApiKey.LIST_TRANSACTIONS):
        return []
    for broker in runner.system.addresses:
        body = {"state_filters": ["Ongoing"], "producer_id_filters": []}
        listed = runner.message(m.ListTransactionsResponse, body, broker, runner.values())
        for one in listed.transaction_states:
            if one.transactional_id.startswith(prefix):
                renewed = {"transactional_id": one.transactional_id, "transaction_timeout_ms": 1000}
                runner.message(m.InitProducerIdResponse, renewed, broker, runner.values())
    return []


def _delete_acls(runner: CaseRunner, prefix: str) -> list[str]:
    """Take the rights of the run's users."""
    start = f"User:{prefix}"
    for _ in range(TRIES):
        filled = acl_filter(None)
        listed = runner.message(m.DescribeAclsResponse, filled, 1, runner.values())
        left = {
            acl.principal
            for resource in listed.resources
            for acl in resource.acls
            if acl.principal.startswith(start)
        }
        if not left:
            return []
        body = {"filters": [acl_filter(principal) for principal in sorted(left)]}
        runner.message(m.DeleteAclsResponse, body, 1, runner.values())
        runner.system.sleep_ms(RETRY_AFTER_MS)
    return [f"ACLs of {principal}" for principal in sorted(left)]


def _delete_users(runner: CaseRunner, prefix: str) -> list[str]:
    left: list[str] = []
    for _ in range(TRIES):
        body = {"users": None}
        listed = runner.message(m.DescribeUserScramCredentialsResponse, body, 1, runner.values())
        found = [one for one in listed.results if one.user.startswith(prefix)]
        if not found:
            return []
        deletions = [
            {"name": one.user, "mechanism": info.mechanism}
            for one in found
            for info in one.credential_infos
        ]
        left = [f"user {one.user}" for one in found]
        wanted = {"deletions": deletions}
        runner.message(m.AlterUserScramCredentialsResponse, wanted, 1, runner.values())
        runner.system.sleep_ms(RETRY_AFTER_MS)
    return left


def _delete_topics(runner: CaseRunner, prefix: str) -> list[str]:
    left: list[str] = []
    for _ in range(TRIES):
        listed = runner.message(m.MetadataResponse, {"topics": None}, 1, runner.values())
        left = [one.name for one in listed.topics if one.name and one.name.startswith(prefix)]
        if not left:
            return []
        topics = [{"name": name} for name in left]
        body = {"topics": topics, "topic_names": left, "timeout_ms": 30_000}
        runner.message(m.DeleteTopicsResponse, body, 1, runner.values())
        runner.system.sleep_ms(RETRY_AFTER_MS)
    return left


def _delete_groups(runner: CaseRunner, prefix: str) -> list[str]:
    if not runner.serves(ApiKey.LIST_GROUPS):
        return []
    left: list[str] = []
    for _ in range(TRIES):
        left = []
        for broker in runner.system.addresses:
            listed = runner.message(m.ListGroupsResponse, {}, broker, runner.values())
            for one in listed.groups:
                if one.group_id.startswith(prefix):
                    left += _delete_group(runner, broker, one.group_id, one.group_type)
        if not left:
            return []
        runner.system.sleep_ms(RETRY_AFTER_MS)
    return left


def _delete_group(runner: CaseRunner, broker: int, group: str, kind: str) -> list[str]:
    """Delete a group at its coordinator; its name if it is still there."""
    if not runner.serves(ApiKey.DELETE_GROUPS):
        return [group]
    body = {"groups_names": [group]}
    deleted = runner.message(m.DeleteGroupsResponse, body, broker, runner.values())
    error = deleted.results[0].error_code if deleted.results else ErrorCode.NONE
    if error == ErrorCode.NON_EMPTY_GROUP:
        _empty(runner, broker, group, kind.lower())
    return [] if error in _GONE else [group]


def _all(lists: Iterable[Sequence[Row]]) -> list[Row]:
    return [row for rows in lists for row in rows]


def _empty(runner: CaseRunner, broker: int, group: str, kind: str) -> None:
    """Let every member leave."""
    values = runner.values()
    asked = {"group_ids": [group]}
    if kind == "consumer":
        consumers = runner.message(m.ConsumerGroupDescribeResponse, asked, broker, values)
        for member in _all(row.members for row in consumers.groups):
            body = {"group_id": group, "member_id": member.member_id, "member_epoch": _LEAVES}
            runner.message(m.ConsumerGroupHeartbeatResponse, body, broker, values)
    elif kind == "share":
        sharing = runner.message(m.ShareGroupDescribeResponse, asked, broker, values)
        for one in _all(row.members for row in sharing.groups):
            body = {"group_id": group, "member_id": one.member_id, "member_epoch": _LEAVES}
            runner.message(m.ShareGroupHeartbeatResponse, body, broker, values)
    elif kind == "streams":
        streaming = runner.message(m.StreamsGroupDescribeResponse, asked, broker, values)
        for each in _all(row.members for row in streaming.groups):
            body = {"group_id": group, "member_id": each.member_id, "member_epoch": _LEAVES}
            runner.message(m.StreamsGroupHeartbeatResponse, body, broker, values)
    else:
        described = runner.message(m.DescribeGroupsResponse, {"groups": [group]}, broker, values)
        for classic in _all(row.members for row in described.groups):
            leaving = {"member_id": classic.member_id}
            body = {"group_id": group, "member_id": classic.member_id, "members": [leaving]}
            runner.message(m.LeaveGroupResponse, body, broker, values)
