"""Answers to members of groups, compared with what their coordinator's log has committed.

Owns: the rule that a member is told no epoch, and no assignment of a generation, before it is
committed.  Never: replays a log (replayed_groups.py does), looks into a coordinator.  Kafka:
CoordinatorRuntime, which answers when all that an answer is based on is committed.

A repeated request, after its answer was lost, changes nothing: its answer, too, is based on what
was written before.  What a member was told too early may be gone after a failover: the member is
then fenced, or has partitions that are also given to another member.
"""

from __future__ import annotations

from typing import Final

from kcluster.contract import Reply, Request
from kcluster.invariants.facts import Measure
from kcluster.invariants.group_facts import ToldUncommitted
from kcluster.invariants.promises import BrokenPromise
from kcluster.invariants.refused import transactional_id_of
from kcluster.invariants.replayed_groups import ReplayedGroups
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

_SYNC: Final = int(ApiKey.SYNC_GROUP)
_HEARTBEATS: Final = tuple(
    map(
        int,
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
        ),
    )
)
OF_MEMBERS: Final = frozenset((_SYNC, *_HEARTBEATS))
"""The requests of members whose answers are compared."""


def asked_of(request: Request) -> tuple[str, str]:
    """The key and the topic that determine the coordinator of a member or a producer."""
    if request.api_key in OF_MEMBERS:
        return request.body.group_id, GROUP_METADATA_TOPIC
    return transactional_id_of(request) or "", TRANSACTION_STATE_TOPIC


def told_too_early(
    reply: Reply, groups: ReplayedGroups, has_loaded_uncommitted: bool
) -> BrokenPromise | None:
    """What an answer breaks if it is ahead of the committed `groups`; None: nothing.
    `has_loaded_uncommitted`: whether the coordinator's log has uncommitted records of earlier
    leaders."""
    request, body = reply.request, reply.body
    if body is None or body.error_code:
        return None
    if request.api_key == _SYNC and has_loaded_uncommitted:
        return None  # of a generation that was loaded Kafka, too, answers at once
    group_id: str = request.body.group_id
    if request.api_key == _SYNC:
        member_id, told = request.body.member_id, request.body.generation_id
        what, committed = Measure.GENERATION, groups.newest_generation(group_id, member_id)
    else:
        member_id, told = body.member_id or request.body.member_id, body.member_epoch
        what, committed = Measure.MEMBER_EPOCH, groups.newest_epoch(group_id, member_id)
    if committed is None or told <= max(committed, 0):
        return None
    fact = ToldUncommitted(_name(request), member_id, what, told, committed)
    return "told-uncommitted", f"group {group_id}", fact


def _name(request: Request) -> str:
    return type(request.body).__name__.removesuffix("Request")
