"""What members of share groups get, compared with what they asked for."""

from __future__ import annotations

import pytest

from kcluster.contract import Reply, Request
from kcluster.invariants.share_answers import ShareAnswers
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

TOPIC = b"t" * 16
BATCHES, EXACT = 0, 1
LEADER = 1
LOST = int(ErrorCode.SHARE_SESSION_NOT_FOUND)
LIMIT = int(ErrorCode.SHARE_SESSION_LIMIT_REACHED)


class Member:
    """A member's fetches from one leader, of the partitions of one topic."""

    def __init__(self, answers: ShareAnswers, max_records: int = 10, mode: int = BATCHES) -> None:
        self.answers = answers
        self.max_records = max_records
        self.mode = mode
        self.broken: list[str] = []

    def ask(
        self, epoch: int, *added: int, forgotten: tuple[int, ...] = (), connection: int = 2
    ) -> Request:
        kind = m.ShareFetchRequest
        body = kind("g", "a", epoch, max_records=self.max_records, share_acquire_mode=self.mode)
        body.topics = [kind.FetchTopic(TOPIC, [kind.FetchPartition(one) for one in added])]
        body.forgotten_topics_data = [kind.ForgottenTopic(TOPIC, list(forgotten))]
        request = Request(connection, int(ApiKey.SHARE_FETCH), 2, epoch, "a", body)
        self.answers.on_request(LEADER, request)
        return request

    def answer(
        self, asked: Request, got: dict[int, int], error: int = 0, *, count: int = 1
    ) -> None:
        """`got`: the number of records by partition."""
        kind = m.ShareFetchResponse
        rows = [
            kind.PartitionData(one, acquired_records=[kind.AcquiredRecords(5, 4 + some, count)])
            for one, some in got.items()
        ]
        body = kind(error_code=error, responses=[kind.ShareFetchableTopicResponse(TOPIC, rows)])
        found = self.answers.on_decided(Reply(asked, body))
        self.broken += [name for _, (name, _, _) in found]


def test_session__that_its_leader_forgets(answers: ShareAnswers) -> None:
    member = Member(answers)
    member.answer(member.ask(0, 0), {})
    member.answer(member.ask(1), {}, LOST)
    assert member.broken == ["share-session-lost"]


@pytest.mark.parametrize("end", ["connection", "final", "refused", "other connection"])
def test_session__that_has_ended(end: str, answers: ShareAnswers) -> None:
    member = Member(answers)
    member.answer(member.ask(0, 0), {}, LIMIT if end == "refused" else 0)
    if end == "connection":
        assert answers.on_closed(2) == [(LEADER, "g", "a")]
    elif end == "final":
        member.answer(member.ask(-1), {})
    asked = member.ask(1, connection=3 if end == "other connection" else 2)
    member.answer(asked, {}, LOST)
    assert member.broken == []


def test_delivery__more_often_than_a_record_may_be(answers: ShareAnswers) -> None:
    answers.max_deliveries = lambda _broker, _group: 3
    member = Member(answers)
    member.answer(member.ask(0, 0), {0: 1}, count=3)
    assert member.broken == []
    member.answer(member.ask(1), {0: 1}, count=4)
    assert member.broken == ["share-over-deliveries"]


@pytest.mark.parametrize(
    ("limit", "count", "records", "is_broken"),
    [(3, 3, 1, False), (3, 2, 5, False), (3, 3, 2, True), (2, 2, 2, False), (None, 3, 2, False)],
)
def test_delivery__the_last_one_of_a_record(
    answers: ShareAnswers, limit: int | None, count: int, records: int, is_broken: bool
) -> None:
    answers.max_deliveries = lambda _broker, _group: limit
    member = Member(answers)
    member.answer(member.ask(0, 0), {0: records}, count=count)
    assert member.broken == (["share-last-together"] if is_broken else [])


@pytest.fixture
def answers() -> ShareAnswers:
    return ShareAnswers()


def test_session__it_grows_and_shrinks(answers: ShareAnswers) -> None:
    member = Member(answers)
    member.answer(member.ask(0, 0), {0: 1})
    member.answer(member.ask(1, 1), {0: 1, 1: 1})
    member.answer(member.ask(2, forgotten=(0,)), {1: 1})
    assert member.broken == []
    member.answer(member.ask(3), {0: 1})
    assert member.broken == ["share-unasked"]


def test_session__a_request_that_gives_a_partition_up_gets_none_of_it(
    answers: ShareAnswers,
) -> None:
    member = Member(answers)
    member.answer(member.ask(0, 0, 1), {})
    member.answer(member.ask(1, forgotten=(1,)), {1: 1})
    assert member.broken == ["share-unasked"]


def test_session__a_refused_request_changes_nothing(answers: ShareAnswers) -> None:
    member = Member(answers)
    member.answer(member.ask(0, 0), {})
    member.answer(member.ask(7, forgotten=(0,)), {}, error=123)
    member.answer(member.ask(1), {0: 1})
    assert member.broken == []


def test_session__a_partition_that_comes_back_before_the_answer(answers: ShareAnswers) -> None:
    member = Member(answers)
    member.answer(member.ask(0, 0), {})
    gives_up, takes_back = member.ask(1, forgotten=(0,)), member.ask(2, 0)
    member.answer(gives_up, {})
    member.answer(takes_back, {0: 1})
    member.answer(member.ask(3), {0: 1})
    assert member.broken == []


def test_session__a_new_one_has_nothing_of_the_last(answers: ShareAnswers) -> None:
    member = Member(answers)
    late = member.ask(0, 0)
    new = member.ask(0, 1)
    member.answer(late, {0: 1})  # it was asked for in the last session
    assert member.broken == []
    member.answer(new, {0: 1})
    assert member.broken == ["share-unasked"]


def test_session__one_that_began_before_the_watch(answers: ShareAnswers) -> None:
    member = Member(answers)
    member.answer(member.ask(4), {0: 1})
    assert member.broken == []


@pytest.mark.parametrize(
    ("mode", "got", "is_broken"),
    [
        (EXACT, {0: 10}, False),
        (EXACT, {0: 11}, True),
        (EXACT, {0: 6, 1: 5}, True),
        (BATCHES, {0: 40}, False),  # one batch
        (BATCHES, {0: 9, 1: 40}, False),
        (BATCHES, {0: 10, 1: 1}, False),  # the second one came first, and left 9
        (BATCHES, {0: 10, 1: 10}, True),
        (BATCHES, {0: 4, 1: 6, 2: 6}, True),
    ],
)
def test_limit(answers: ShareAnswers, mode: int, got: dict[int, int], is_broken: bool) -> None:
    member = Member(answers, 10, mode)
    member.answer(member.ask(0, 0, 1, 2), got)
    assert member.broken == (["share-over-limit"] if is_broken else [])
