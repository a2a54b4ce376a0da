"""Processes of a workload's clients: killed, started again, paused, stopped by steps."""

from __future__ import annotations

import pytest

from kcluster.events.clients import ClientDown, ClientStarted, GroupMemberExpired, GroupMemberLeft
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

SHOP = "{topic: orders, name: shop, rate: 100/s}"
KEYED_SHOP = "{topic: orders, name: shop, rate: 100/s, keys: 20}"
DESK = "{topic: orders, name: desk, rate: 100/s, transactions: {every: 5, timeout: 60s}}"
READERS = "{topics: orders, name: reader, group: billing, members: 2}"


def text(
    *steps: str,
    producer: str = SHOP,
    consumer: str = READERS,
    processors: str = "[]",
    more: str = "",
) -> str:
    lines = "".join(f"  - {step}\n" for step in steps)
    return f"""\
topology:
  brokers: 3
  profile: fast
  topics: {{orders: {{partitions: 4}}, bills: {{partitions: 2}}}}
workload:
  producers: {producer}
  consumers: {consumer}
  processors: {processors}
duration: 4s
steps:
{lines}{more}"""


FAULTS = "{at: 1s, faults: {profile: {kinds: [%s]}}}"


def played(*steps: str, clock: str = "virtual", **keys: str) -> RunResult:
    return run_scenario(Scenario.parse(text(*steps, **keys)), clock, 1)


def times_of(result: RunResult, kind: type) -> list[int]:
    """The times of these events since the run's beginning."""
    return [x.at_ms - result.began_ms for x in result.notes if isinstance(x.event, kind)]


def readers_after(result: RunResult, from_ms: int, to_ms: int) -> set[str]:
    """The consumers that read in this part of the run."""
    return {
        read.consumer
        for read in result.ledger.reads
        if from_ms <= read.at_ms - result.began_ms < to_ms
    }


def test_kill__a_producer_that_is_started_again_goes_on_with_its_numbers() -> None:
    result = played("{at: 1s, kill: client shop, for: 1s}")
    assert result.failures == []
    values = [send.value for send in result.ledger.sends]
    assert len(values) == len({*values})
    sent_ms = [send.sent_ms - result.began_ms for send in result.ledger.sends]
    assert not any(1_010 < at_ms < 2_000 for at_ms in sent_ms)
    assert len(values) == pytest.approx(300, abs=5), "what was not sent meanwhile is not made up"
    assert times_of(result, ClientDown) == [1_000]
    assert times_of(result, ClientStarted) == [2_000]


def test_restart__of_a_client_is_a_new_process() -> None:
    result = played("{at: 1s, restart: {brokers: client reader-1, how: kill, down: 500ms}}")
    assert result.failures == []
    assert times_of(result, ClientDown) == [1_000]
    assert times_of(result, ClientStarted) == [1_500]


def test_kill__a_group_waits_for_the_session_of_a_dead_member() -> None:
    result = played("{at: 1s, kill: client reader-1}")
    assert result.failures == []
    (expired_ms,) = times_of(result, GroupMemberExpired)
    assert 1_300 < expired_ms <= 1_460, "session.timeout.ms is 450 ms, with heartbeats between"
    assert readers_after(result, 1_010, 4_000) == {"reader-2"}
    assert times_of(result, ClientStarted) == [4_000], "heal starts it again"


def test_kill__without_heal_a_client_is_dead_for_good() -> None:
    result = played(
        "{at: 1s, kill: [reader-1, reader-2]}", more="heal: false\nchecks: {verdict: unknown}\n"
    )
    assert result.failures == []
    assert readers_after(result, 1_010, 60_000) == set()


def test_kill__a_new_process_aborts_the_transaction_of_the_dead_one() -> None:
    result = played("{at: 1013ms, kill: client desk, for: 200ms}", producer=DESK)
    assert result.failures == []
    numbers = [each.number for each in result.ledger.transactions]
    assert numbers == [*range(1, len(numbers) + 1)]
    outcomes = {str(each.outcome) for each in result.ledger.transactions}
    assert "aborted" in outcomes, "the transaction of 60 s was not waited for"


def test_kill__a_processor_processes_each_record_once() -> None:
    processors = "{topic: orders, to: bills, group: engine, name: engine, members: 2}"
    result = played(
        "{at: 1s, kill: client engine-1, for: 300ms}",
        "{at: 2s, pause: client engine-2, for: 800ms}",
        "{at: 2200ms, kill: client engine-1, for: 300ms}",
        processors=processors,
    )
    assert result.failures == []


def test_kill__a_share_group_delivers_again_what_a_dead_member_held() -> None:
    consumer = "{topics: orders, name: reader, group: billing, share: true, members: 2}"
    result = played("{at: 1s, kill: client reader-1}", consumer=consumer)
    assert result.failures == []


def test_kill__the_run_goes_on_until_a_share_member_has_the_partitions_of_the_dead_one() -> None:
    consumer = "{topics: orders, name: reader, group: billing, share: true}"
    kill = "{at: 3700ms, kill: client reader, for: 200ms}"
    one = text(kill, producer=KEYED_SHOP, consumer=consumer)
    one = one.replace("brokers: 3", "brokers: 1").replace("profile: fast", "profile: kafka")
    result = run_scenario(Scenario.parse(one), "virtual", 1)
    assert result.failures == []
    assert times_of(result, GroupMemberExpired)


def test_workload__what_is_sent_after_the_last_consumer_has_stopped_is_not_unseen() -> None:
    consumer = "{topics: orders, name: reader, group: billing, stop: 2s}"
    assert played(consumer=consumer).failures == []


def test_pause__a_member_that_stood_still_joins_again() -> None:
    result = played("{at: 1s, pause: client reader-1, for: 1s}", producer=KEYED_SHOP)
    assert result.failures == []
    assert times_of(result, GroupMemberExpired)
    assert readers_after(result, 1_010, 2_000) == {"reader-2"}
    assert readers_after(result, 3_000, 4_000) == {"reader-1", "reader-2"}


def test_pause__a_short_one_costs_nothing() -> None:
    result = played("{at: 1s, pause: [shop, reader-1], for: 100ms}")
    assert result.failures == []
    assert not times_of(result, GroupMemberExpired)


def test_stop__a_member_leaves_its_group() -> None:
    result = played("{at: 1s, stop: client reader-1, for: 1s}", producer=KEYED_SHOP)
    assert result.failures == []
    assert times_of(result, GroupMemberLeft)[0] == 1_000
    assert not times_of(result, GroupMemberExpired)
    assert readers_after(result, 2_100, 4_000) == {"reader-1", "reader-2"}


def test_stop__a_client_that_is_still_being_closed_is_started_again() -> None:
    result = played("{at: 1s, stop: [client shop, client reader-1], for: 0ms}")
    assert result.failures == []
    assert times_of(result, ClientStarted) == [1_000, 1_000]
    assert "shop" in {send.producer for send in result.ledger.sends}


def test_kill__at_a_moment_inside_a_broker() -> None:
    steps = (
        "{when: 3rd transaction_written of desk, kill: client desk, for: 200ms}",
        "{when: 2nd commit_written of billing, kill: [reader-1, reader-2], for: 200ms}",
    )
    result = played(*steps, producer=DESK)
    assert result.failures == []
    assert len(times_of(result, ClientStarted)) == 3


def test_any_client__is_drawn_by_the_seed() -> None:
    result = played("{every: 500ms, kill: any clients, for: 200ms}")
    assert result.failures == []
    assert len(times_of(result, ClientStarted)) == len(times_of(result, ClientDown)) >= 6


def test_two_steps_at_once__the_second_finds_the_client_dead() -> None:
    steps = ("{at: 1s, kill: client shop}", "{at: 1s, kill: shop}")
    result = played(*steps)
    assert result.failures == ["kill at 1 s: client shop is down"] or "client shop is down" in str(
        result.failures
    )
    possible = played(steps[0], "{at: 1s, kill: shop, if_possible: true}")
    assert possible.failures == []


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{at: 1s, kill: {brokers: client shop, how: power}}", "client shop has no disk"),
        ("{at: 1s, start: client shop}", "client shop is up"),
        ("{at: 1s, resume: client shop}", "client shop is up"),
        ("{at: 1s, restart: {brokers: client shop, new_address: true}}", "has no address"),
        ("{at: 1s, start: {brokers: client shop, kafka_version: '3.9'}}", "client shop is up"),
    ],
)
def test_what_cannot_be_done_is_said(step: str, problem: str) -> None:
    result = played(step)
    assert problem in str(result.failures)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{at: 1s, kill: client sohp}", "did you mean shop?"),
        ("{at: 1s, fill_disk: client shop}", "client shop is a client; fill_disk takes brokers"),
        (FAULTS % "restart: client sohp", "restart: client sohp: no such client; did you mean"),
        (FAULTS % "move: {partition: orders-9, to: 1}", "orders has 4 partitions, not one"),
    ],
)
def test_names_are_checked_before_the_run(step: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=r".*") as raised:
        Scenario.parse(text(step))
    assert problem in str(raised.value)


def test_the_same_steps_live() -> None:
    result = played(
        "{at: 500ms, kill: client shop, for: 300ms}",
        "{at: 1s, pause: client reader-1, for: 1s}",
        "{at: 2500ms, kill: client reader-2, for: 500ms}",
        clock="live",
    )
    assert result.failures == []
    assert len(times_of(result, ClientStarted)) == 2


def test_restart__a_late_request_of_a_dead_process_breaks_no_order() -> None:
    slow = "{at: 900ms, rule: {api: Produce, delay: 800ms, of: request}, for: 150ms}"
    result = played(slow, "{at: 1s, kill: client shop, for: 300ms}", producer=KEYED_SHOP)
    lives = {send.value: send.life for send in result.ledger.sends}
    read = [
        lives[record.value or b""]
        for record in result.ledger.reads
        if record.partition == ("orders", 0)
    ]
    assert result.failures == []
    assert 1 in read[read.index(2) :], "no request of the first process was late"
