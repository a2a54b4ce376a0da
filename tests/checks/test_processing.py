"""What an application did with its records: each problem, found in the facts that have it."""

from __future__ import annotations

from msgspec import structs

from kcluster.checks.processing import (
    LastRequest,
    Missed,
    OutOfOrder,
    Processed,
    ProcessingFacts,
    Repeated,
    find_problems,
)
from kcluster.checks.processing_words import problem_text
from kcluster.clients.ledger import ReadRecord
from kcluster.events.clients import Departure, GroupMemberExpired, GroupMemberLeft, GroupRebalanced
from kcluster.events.rebalance_reasons import MembersLeft
from kcluster.evidence.group_history import Commit, Departed, Generation, GroupHistory

P = ("orders", 0)
MEMBER = "app-9d6262f5-6943-45da-a069-0d2a62815a1e"
EXPIRED = Departed(815, GroupMemberExpired("billing", MEMBER, 600))


def done(*offsets: int, at_ms: int = 100, worker: str = "w1") -> list[Processed]:
    return [Processed(at_ms + place, P, offset, worker) for place, offset in enumerate(offsets)]


def commit(offset: int, at_ms: int, generation: int = 1, error: str = "") -> Commit:
    return Commit(at_ms, 1, "app", "billing", MEMBER, generation, P, offset, error)


def generation(number: int, at_ms: int) -> Generation:
    return Generation(at_ms, GroupRebalanced("billing", number, (MEMBER,), MembersLeft(())))


def facts(
    processed: list[Processed],
    *commits: Commit,
    records: int = 4,
    departures: tuple[Departed, ...] = (),
    generations: tuple[Generation, ...] = (),
    reads: tuple[ReadRecord, ...] = (),
) -> ProcessingFacts:
    history = GroupHistory(commits, departures, generations)
    return ProcessingFacts({P: range(records)}, processed, reads, history)


def text(found: ProcessingFacts) -> str:
    (problem,) = find_problems(found)
    return problem_text(problem, 0)


def test_processing__each_record_once_and_in_order_is_no_problem() -> None:
    assert find_problems(facts(done(0, 1, 2, 3), commit(4, 200))) == []


def test_processing__of_no_record_at_all_is_no_problem() -> None:
    assert find_problems(facts([], records=0)) == []


def test_missed__the_commit_that_skipped_it_and_the_end_of_its_member() -> None:
    found = facts(done(0, 1, 3), commit(2, 500), commit(3, 812), departures=(EXPIRED,))
    (problem,) = find_problems(found)
    assert isinstance(problem, Missed)
    assert (problem.first, problem.commit, problem.departed) == (2, commit(3, 812), EXPIRED)
    assert text(found) == (
        "missed: orders-0, offset 2: generation 1 of group billing (app-9d6262f5) committed offset"
        " 3 at +812 ms, 3 ms before member app-9d6262f5 expired (no heartbeat for 600 ms); nobody"
        " processed it"
    )


def test_missed__neighbours_with_one_commit_are_one_problem() -> None:
    (problem,) = find_problems(facts(done(0), commit(4, 500)))
    assert (problem.first, problem.last, problem.count) == (1, 3, 3)
    assert "; its member is still in the group; nobody processed them" in text(
        facts(done(0), commit(4, 500))
    )


def test_missed__a_refused_commit_skips_nothing() -> None:
    found = facts(
        done(0, 1, 2),
        commit(4, 500, error="ILLEGAL_GENERATION"),
        reads=(ReadRecord("app", P, 3, b"", False, 90),),
    )
    assert text(found) == (
        "missed: orders-0, offset 3: app received it at +90 ms and nobody processed it; the commit"
        " of offset 4 at +500 ms was refused with ILLEGAL_GENERATION"
    )


def test_missed__received_and_neither_processed_nor_committed() -> None:
    reads = tuple(ReadRecord("app", P, offset, b"", False, 90) for offset in range(4))
    assert text(facts(done(0, 1), commit(2, 500), reads=reads)) == (
        "missed: orders-0, offsets 2 to 3 (2 records): app received them at +90 ms and nobody"
        " processed them; no commit covers them"
    )


def test_missed__by_a_commit_from_outside_of_the_group() -> None:
    found = facts(done(0, 1, 2), commit(4, 500, generation=-1))
    assert text(found).endswith(
        "app (group billing, without a generation) committed offset 4 at +500 ms; nobody processed"
        " it"
    )


def test_missed__what_nobody_has_read_yet() -> None:
    reads = tuple(ReadRecord("app", P, offset, b"", False, 90) for offset in range(3))
    assert text(facts(done(0, 1, 2), reads=reads)).endswith("nobody has read it yet")
    assert text(facts([])).endswith("nobody read the partition")


def test_missed__what_nobody_read_has_the_last_request_of_a_reader() -> None:
    reads = (ReadRecord("app", P, 0, b"", False, 90),)

    def last(*requests: LastRequest) -> str:
        found = structs.replace(facts(done(0, 1, 2), reads=reads), last_requests=requests)
        return text(found).split("nobody has read it yet")[1]

    silent = LastRequest("app", "Heartbeat", 5_195)
    assert last() == ""
    its_last = "its last request, {}, was over at +{} ms"
    assert last(silent) == f"; client app sent no Fetch; {its_last.format('Heartbeat', 5195)}"
    fetched = LastRequest("old", "LeaveGroup", 5_300, 2_372)
    since = "client old sent no Fetch since +2372 ms"
    assert last(silent, fetched) == f"; {since}; {its_last.format('LeaveGroup', 5300)}"
    reader = LastRequest("app", "Fetch", 6_000, 6_000)
    assert last(silent, reader).endswith("reader was a Fetch of client app, at +6000 ms")
    assert "; client app sent no Fetch; " in text(
        structs.replace(facts([]), last_requests=(silent,))
    )


def test_missed__below_the_offset_where_reading_began() -> None:
    reads = tuple(ReadRecord("app", P, offset, b"", False, 90) for offset in (2, 3))
    assert text(facts(done(2, 3), reads=reads)) == (
        "missed: orders-0, offsets 0 to 1 (2 records): nobody read them: app began at offset 2,"
        " +90 ms"
    )


def test_missed__in_a_log_with_gaps_neighbours_are_neighbours() -> None:
    found = ProcessingFacts({P: (0, 5, 9)}, done(0))
    (problem,) = find_problems(found)
    assert (problem.first, problem.last, problem.count) == (5, 9, 2)


def test_repeated__its_commit_never_arrived() -> None:
    left = Departed(700, GroupMemberLeft("billing", MEMBER, Departure.LEFT))
    found = facts(
        [*done(0, 1, 2, 3), *done(3, at_ms=900, worker="w2")],
        commit(3, 500),
        departures=(left,),
        generations=(generation(1, 50), generation(2, 750)),
    )
    (problem,) = find_problems(found)
    assert isinstance(problem, Repeated)
    assert not problem.was_committed
    assert text(found) == (
        "processed twice: orders-0, offset 3: processed at +103 ms by w1, again at +900 ms by w2;"
        " no commit of offset 4 or later arrived; member app-9d6262f5 left at +700 ms; generation 2"
        " began at +750 ms"
    )


def test_repeated__its_commit_was_refused() -> None:
    found = facts(
        [*done(0, 1, 2, 3), *done(3, at_ms=900)],
        commit(4, 600, error="ILLEGAL_GENERATION"),
        commit(4, 950, generation=2),
        generations=(generation(2, 550),),
    )
    assert text(found).endswith(
        "; the commit of offset 4 at +600 ms was refused with ILLEGAL_GENERATION; generation 2"
        " began at +550 ms"
    )


def test_repeated__its_commit_came_too_late() -> None:
    found = facts([*done(0, 1, 2, 3), *done(3, at_ms=900)], commit(4, 950))
    assert text(found).endswith("; offset 4 or later was committed only at +950 ms")


def test_repeated__although_it_was_committed() -> None:
    found = facts([*done(0, 1, 2, 3), *done(3, at_ms=900)], commit(4, 500))
    (problem,) = find_problems(found)
    assert isinstance(problem, Repeated)
    assert problem.was_committed
    assert "offset 4 had been committed at +500 ms" in text(found)


def test_repeated__many_times_is_one_problem() -> None:
    found = facts([*done(0, 1, 2, 3), *done(3, at_ms=300), *done(3, at_ms=400)])
    assert text(found).startswith("processed 3 times: orders-0, offset 3: processed at +103 ms")


def test_out_of_order__the_later_record_and_the_rebalance_in_between() -> None:
    found = facts(
        [*done(0, 2, 3), *done(1, at_ms=900, worker="w2")], generations=(generation(2, 550),)
    )
    (problem,) = find_problems(found)
    assert isinstance(problem, OutOfOrder)
    assert text(found) == (
        "out of order: orders-0, offset 1: processed at +900 ms by w2, after offset 3 at +102 ms by"
        " w1; generation 2 began at +550 ms in between"
    )


def test_out_of_order__without_a_rebalance_it_was_the_application() -> None:
    assert text(facts(done(0, 2, 1, 3))).endswith("; no rebalance was in between")


def test_repeated__a_batch_that_is_done_again_is_not_out_of_order() -> None:
    found = facts([*done(0, 1, 2), *done(1, 2, 3, at_ms=900)])
    (problem,) = find_problems(found)
    assert isinstance(problem, Repeated)
    assert (problem.first, problem.last) == (1, 2)


def test_processing__partitions_are_judged_apart() -> None:
    other = ("orders", 1)
    processed = [*done(0, 1), Processed(300, other, 0)]
    found = ProcessingFacts({P: range(2), other: range(2)}, processed)
    (problem,) = find_problems(found)
    assert (problem.partition, problem.first) == (other, 1)
