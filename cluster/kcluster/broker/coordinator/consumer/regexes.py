"""Regular expressions that members of a consumer group subscribe to (KIP-848).

Owns: the choice and the time of resolving them, and the topics that match.  Never: compiles an
expression itself (protocol/patterns.py).  Kafka:
GroupMetadataManager.maybeUpdateRegularExpressions, TopicRegexResolver.

Kafka resolves in a separate thread, and writes the result afterwards.  Here the next turn of the
broker does so; the heartbeat that brings an expression is answered without its topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Final

from kcluster.broker.coordinator.consumer.group import ConsumerGroup, ResolvedRegex
from kcluster.broker.coordinator.consumer.member import ConsumerMember
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.modern.records import ConsumerGroupRegularExpression
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.patterns import InvalidPattern, Pattern, compile_pattern
from kcluster.security.acls import AclOperation, AclResource

REFRESH_MIN_MS: Final = 10_000
"""The least time between two look-ups of topics.  Kafka: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""

RESOLVE: Final = "regex"
"""Name of the timer that stands for Kafka's thread."""


class RegexChange(Enum):
    """The change of a member's expression.  Kafka: UpdateRegularExpressionStatus."""

    NONE = auto()
    CHANGED = auto()
    """The topics are not known yet; the target is computed later, with them."""
    CHANGED_AND_RESOLVED = auto()
    """The topics are known, and the target must be computed."""


def change_regex(
    group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, records: list[LogRecord]
) -> RegexChange | RequestRefused:
    """Apply a member's change; `records` gets the tombstone of an expression without
    subscribers."""
    old, new = before.regex, after.regex
    if old == new:
        return RegexChange.NONE
    if old and group.regex_counts[old] == 1:
        records.append(ConsumerGroupRegularExpression(group.group_id, old, None))
    if not new:
        return RegexChange.CHANGED_AND_RESOLVED if old else RegexChange.CHANGED
    if group.regex_counts[new]:
        is_known = new in group.regexes
        return RegexChange.CHANGED_AND_RESOLVED if is_known else RegexChange.CHANGED
    compiled = compile_pattern(new)
    if isinstance(compiled, InvalidPattern):
        message = f"SubscribedTopicRegex `{new}`: {compiled.reason}"
        return RequestRefused(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    return RegexChange.CHANGED


def resolve_if_due(
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    request: Request,
    now_ms: int,
) -> None:
    """Look the topics up in the next turn, if an expression is new, if there are new topics, or
    after a long time.  Whatever the client of `request` may not DESCRIBE does not match, for the
    whole group."""
    new = after.regex
    counts = Counter(group.regex_counts)
    is_new = bool(new) and before.regex != new and not counts[new or ""]
    if not is_new and not counts:
        return
    if group.timers.has_phase(RESOLVE):
        return
    last = next(iter(group.regexes.values()), None)
    if last is not None and now_ms <= last.timestamp_ms + REFRESH_MIN_MS:
        return
    if before.regex != new:
        counts -= Counter([before.regex] if before.regex else [])
        counts += Counter([new] if new else [])
    interval_ms = group.broker.config.group_consumer_regex_refresh_interval_ms
    if counts and (
        is_new
        or len(counts) != len(group.regexes)
        or group.has_new_topics
        or (last is not None and now_ms > last.timestamp_ms + interval_ms)
    ):
        group_id, home, regexes = group.group_id, group.home, tuple(counts)

        def resolve(at_ms: int) -> None:
            current = home.groups.get(group_id)
            if isinstance(current, ConsumerGroup):
                visible = visible_topics(current, request)
                current.write_alone(resolution(current, regexes, visible, at_ms), at_ms)

        group.timers.start_phase(RESOLVE, now_ms, resolve)


def visible_topics(group: ConsumerGroup, request: Request) -> list[str]:
    """The topics that the client of a request may DESCRIBE.  Kafka:
    filterTopicDescribeAuthorizedTopics."""
    topics, access = group.broker.image.topics, group.broker.access
    if access is None:
        return list(topics)
    rights = access.rights_of(request)
    hidden = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, topics, silently=True)
    return [name for name in topics if name not in hidden]


def resolution(
    group: ConsumerGroup, regexes: Iterable[str], visible: Sequence[str], now_ms: int
) -> list[LogRecord]:
    """The records with the topics that match now, and the next group epoch if they have changed."""
    image = group.broker.image
    group.note_topics()
    records: list[LogRecord] = []
    resolved = dict(group.regexes)
    bump = False
    for regex in regexes:
        if not group.regex_counts[regex]:
            continue
        topics = frozenset(matching(regex, visible))
        before = group.regexes.get(regex)
        bump = bump or topics != (frozenset() if before is None else before.topics)
        resolved[regex] = ResolvedRegex(topics, image.offset, now_ms)
        value = m.ConsumerGroupRegularExpressionValue(
            topics=sorted(topics), version=image.offset, timestamp=now_ms
        )
        records.append(ConsumerGroupRegularExpression(group.group_id, regex, value))
    topics_read = set(group.topic_counts)
    topics_read.update(name for one in resolved.values() for name in one.topics)
    hashed = group.hash_of(topics_read)
    if bump or hashed != group.metadata_hash:
        records.append(group.epoch_record(group.epoch + 1, hashed))
        group.note_checked_metadata(group.epoch + 1)
    return records


def matching(regex: str, topics: Iterable[str]) -> list[str]:
    """The topics whose whole name matches; none if the expression is invalid."""
    pattern = compile_pattern(regex)
    return [one for one in topics if pattern.matches(one)] if isinstance(pattern, Pattern) else []
