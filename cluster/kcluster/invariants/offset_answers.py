"""The offsets that are returned to groups, compared with what was committed.

Owns: every commit that has arrived, every confirmed deletion of offsets, and the offsets in answers
that were never committed, or were deleted.  Never: looks into a coordinator or its log, judges who
may commit (memberships.py does).  Kafka: OffsetMetadataManager; KIP-320 (the leader epoch).

An answer has an offset, a leader epoch and metadata.  All three must come from the same commit,
whether it was confirmed or not.  Once the deletion of a group, or of an offset, is confirmed,
commits that were answered before the request for the deletion are void.  A partition counts from
its first confirmed commit on, since earlier commits, from before the watch began, are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.contract import Reply, Request
from kcluster.invariants.group_facts import OffsetGiven
from kcluster.invariants.promises import forget_oldest
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

if TYPE_CHECKING:
    from kcluster.protocol.messages import OffsetFetchResponse

    Given = (
        OffsetFetchResponse.OffsetFetchResponseTopic | OffsetFetchResponse.OffsetFetchResponseTopics
    )

_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
_COMMITS: Final = (_COMMIT, int(ApiKey.TXN_OFFSET_COMMIT))
_FETCH: Final = int(ApiKey.OFFSET_FETCH)
_DELETE_GROUPS: Final = int(ApiKey.DELETE_GROUPS)
_DELETE_OFFSETS: Final = int(ApiKey.OFFSET_DELETE)
OFFSET_APIS: Final = frozenset((*_COMMITS, _FETCH, _DELETE_GROUPS, _DELETE_OFFSETS))
"""The requests that commit, read or delete offsets."""
MAX_VALUES: Final = 1_000
"""The number of different commits of one partition that are remembered; a partition with more is
not checked."""

TopicOf = Callable[[str, bytes], str | bytes]
"""(name, id) -> how a topic is kept, which a message names by either of them."""
_Place = tuple[str | bytes, int]
"""(topic, partition)."""
_Value = tuple[int, int, str]
"""(offset, leader epoch, metadata)."""


class _Offsets(Struct):
    """The commits of one partition.  `values`: what was sent, with the request if that is not
    answered yet; `void`: what was deleted, with the number of the deletion; `is_known`: whether a
    commit or a deletion was confirmed."""

    values: dict[_Value, Request | None] = {}
    void: dict[_Value, int] = {}
    is_known: bool = False
    is_whole: bool = True


class OffsetAnswers:
    """The offsets of all groups of one cluster."""

    def __init__(self, topic_of: TopicOf) -> None:
        self._topic_of = topic_of
        self._groups: dict[str, dict[_Place, _Offsets]] = {}
        self._number = 0
        """It grows with each request."""
        self._asked: dict[Request, int] = {}
        """The number of each OffsetFetch that is not answered yet."""
        self._deleting: dict[Request, list[tuple[str, _Place, _Value]]] = {}
        """The offsets that each unanswered request would delete."""
        self.deleted_groups: dict[str, None] = {}
        """The groups of which a request has asked to delete offsets."""

    def forget(self) -> None:
        """Discard the commits: the coordinators' logs may have lost records."""
        self._groups = {}
        self._deleting = {}

    def on_request(self, request: Request) -> None:
        """Record the arrival of a request at a broker."""
        self._number += 1
        body = request.body
        if request.api_key in _COMMITS:
            for topic in body.topics:
                for one in topic.partitions:
                    place = (self._topic_of(topic.name, topic.topic_id), one.partition_index)
                    value = (
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata or "",
                    )
                    self._sent(body.group_id, place, value, request)
        elif request.api_key == _FETCH:
            self._asked[request] = self._number
            forget_oldest(self._asked)
        elif request.api_key == _DELETE_GROUPS:
            names = set(body.groups_names)
            self._delete(request, [(group, None) for group in names])
        else:
            named = [
                (body.group_id, (self._topic_of(topic.name, b""), one.partition_index))
                for topic in body.topics
                for one in topic.partitions
            ]
            self._delete(request, named)

    def _sent(self, group: str, place: _Place, value: _Value, request: Request) -> None:
        places = self._groups.setdefault(group, {})
        forget_oldest(self._groups)
        known = places.setdefault(place, _Offsets())
        forget_oldest(places)
        known.values[value] = request
        known.void.pop(value, None)
        if len(known.values) > MAX_VALUES:
            known.is_whole = False
            known.values.clear()

    def _delete(self, request: Request, named: Sequence[tuple[str, _Place | None]]) -> None:
        self.deleted_groups.update(dict.fromkeys(group for group, _ in named))
        self._deleting[request] = [
            (group, place, value)
            for group, only in named
            for place, known in self._groups.get(group, {}).items()
            if only in (None, place)
            for value, commit in known.values.items()
            if commit is None
        ]
        forget_oldest(self._deleting)

    def on_decided(self, reply: Reply) -> None:
        """Record an answer once it is decided, whether its client gets it or not."""
        request, body = reply.request, reply.body
        if body is None:
            return
        if request.api_key in _COMMITS:
            self._committed(request, body)
        elif request in self._deleting:
            self._number += 1
            refused = _refused_deletions(request, body, self._topic_of)
            for group, place, value in self._deleting.pop(request):
                known = self._groups.get(group, {}).get(place)
                if known is None or group in refused or (group, place) in refused:
                    continue
                known.is_known = True
                if known.values.get(value, request) is None:
                    known.void[value] = self._number

    def _committed(
        self, request: Request, body: m.OffsetCommitResponse | m.TxnOffsetCommitResponse
    ) -> None:
        places = self._groups.get(request.body.group_id, {})
        for topic in body.topics:
            for one in topic.partitions:
                place = (self._topic_of(topic.name, topic.topic_id), one.partition_index)
                known = places.get(place)
                if known is None:
                    continue
                known.is_known |= request.api_key == _COMMIT and not one.error_code
                for value, commit in known.values.items():
                    if commit is request:
                        known.values[value] = None

    def on_fetched(self, reply: Reply) -> Iterator[OffsetGiven]:
        """The offsets in an answer that were never committed, or that were deleted before."""
        request, body = reply.request, reply.body
        asked = self._asked.pop(request, None)
        if asked is None or body is None:
            return
        for group, topics in _given(request, body):
            places = self._groups.get(group, {})
            for topic in topics:
                key = self._topic_of(topic.name, getattr(topic, "topic_id", b""))
                for one in topic.partitions:
                    known = places.get((key, one.partition_index))
                    if one.error_code or one.committed_offset < 0 or known is None:
                        continue
                    value = (one.committed_offset, one.committed_leader_epoch, one.metadata or "")
                    is_sent = value in known.values
                    is_void = is_sent and known.void.get(value, asked) < asked
                    if known.is_known and known.is_whole and (is_void or not is_sent):
                        yield OffsetGiven(
                            group, topic.name, one.partition_index, *value, is_deleted=is_void
                        )


def _given(request: Request, body: m.OffsetFetchResponse) -> Iterator[tuple[str, Sequence[Given]]]:
    """(group, its topics) in an answer; before version 8 it is about one group."""
    if body.groups:
        for group in body.groups:
            if not group.error_code:
                yield group.group_id, group.topics
    elif not body.error_code:
        yield request.body.group_id, body.topics


def _refused_deletions(
    request: Request, body: m.DeleteGroupsResponse | m.OffsetDeleteResponse, topic_of: TopicOf
) -> set[str | tuple[str, _Place]]:
    """The groups, or the groups' partitions, whose deletion an answer does not confirm."""
    if isinstance(body, m.DeleteGroupsResponse):
        return {result.group_id for result in body.results if result.error_code}
    group = request.body.group_id
    if body.error_code:
        return {group}
    return {
        (group, (topic_of(topic.name, b""), one.partition_index))
        for topic in body.topics
        for one in topic.partitions
        if one.error_code
    }
