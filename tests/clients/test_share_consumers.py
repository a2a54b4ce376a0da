"""Share consumers: members take records in turn, release some, and survive a leader."""

from __future__ import annotations

import pytest

from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.share_consumer import ShareConsumer
from kcluster.deaths import DeathKind
from kcluster.protocol.apis import ApiKey
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.clients.story import Story
from tests.rig.cluster import TOPIC


def sharing(
    story: Story,
    name: str,
    release: float = 0.0,
    mode: str = "implicit",
    renew: float = 0.0,
    at_once: int = 500,
) -> ShareConsumer:
    plan = ConsumerPlan(topics=(TOPIC,), commit="never")
    settings = ConsumerSettings(
        group_id="g", share_acknowledgement_mode=mode, max_poll_records=at_once
    )
    consumer = ShareConsumer(name, story.ledger, plan, settings, release, renew)
    story._add(name, consumer)
    return consumer


def started(story: Story, *consumers: ShareConsumer) -> None:
    assert story.until(lambda: all(one.assignment and one._sessions for one in consumers))
    story.run(2_000)


def accepted(story: Story) -> list[int]:
    return [one.offset for one in story.ledger.deliveries if one.is_acknowledged]


def test_share_consumers__each_record_is_accepted_once() -> None:
    story = Story()
    started(story, sharing(story, "a"), sharing(story, "b"))
    producer = story.producer(count=60)
    assert story.until(lambda: producer.is_done and len(accepted(story)) == 60)
    assert sorted(accepted(story)) == list(range(60))


def test_share_consumers__a_released_record_comes_again_with_a_higher_count() -> None:
    story = Story()
    started(story, sharing(story, "a", release=0.25))
    story.producer(count=40)
    assert story.until(lambda: len(set(accepted(story))) == 40)
    assert {one.count for one in story.ledger.deliveries} >= {1, 2}


def test_share_consumers__explicit_acknowledgement_is_of_one_record_at_a_time() -> None:
    story = Story()
    started(story, sharing(story, "a", release=0.25, mode="explicit"))
    producer = story.producer(count=40)
    assert story.until(lambda: producer.is_done and len(set(accepted(story))) == 40)
    sent = [one.sent for one in story.ledger.deliveries if one.is_sent]
    assert len(set(sent)) == len(sent) >= 50  # ten records come twice, at least


def test_share_consumers__a_renewed_lock_outlasts_the_first_one() -> None:
    story = Story()
    first = sharing(story, "a", mode="explicit", renew=0.25, at_once=2)
    started(story, first, sharing(story, "b"))
    producer = story.producer(count=40)
    assert story.until(lambda: producer.is_done and len(set(accepted(story))) == 40, 300_000)
    renewed = [one for one in story.ledger.deliveries if one.renewed_ms >= 0]
    assert renewed
    for one in renewed:
        assert one.is_acknowledged
        assert one.ended_ms - one.asked_ms > one.lock_ms > one.renewed_ms - one.at_ms
    assert len(accepted(story)) == 40  # none was delivered to the other member meanwhile


def test_share_consumers__a_broker_without_renewals_ends_a_member_that_needs_them() -> None:
    story = Story(topology={"kafka_version": "4.1", "features": {"share.version": 1}})
    member = sharing(story, "a", mode="explicit", renew=1.0)
    started(story, member)
    story.producer(count=10)
    assert story.until(lambda: bool(member.failed), 120_000)
    assert member.failed == "UNSUPPORTED_VERSION"


def test_share_consumers__what_a_dead_leader_lent_is_delivered_by_the_next_one() -> None:
    story = Story()
    started(story, sharing(story, "a"), sharing(story, "b"))
    producer = story.producer(count=100)
    assert story.until(lambda: len(accepted(story)) > 30)
    story.driver.verbs.kill(story.leader, DeathKind.KILL)
    deliveries = story.ledger.deliveries
    assert story.until(
        lambda: producer.is_done and len({one.offset for one in deliveries}) == 100, 120_000
    )


def test_share_consumers__leave_and_give_back_what_they_have() -> None:
    story = Story()
    first = sharing(story, "a")
    started(story, first)
    story.producer(count=20)
    assert story.until(lambda: len(accepted(story)) == 20)
    first.stop(story.driver.now_ms)
    assert story.until(lambda: first.is_done, 10_000)


DEAF = """
topology: {brokers: 1, profile: fast, topics: {orders: {partitions: 2}}}
workload:
  producers: {topic: orders, name: shop, rate: 200/s, keys: 20, start: 500ms, stop: 1s}
  consumers: {topics: orders, name: packer, group: packing, members: 2, share: true}
duration: 1500ms
steps:
  - {at: 0ms, rule: {api: ShareGroupHeartbeat, client: packer-2, nth: %d, drop: reply, close: true}}
"""


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_share_consumers__an_assignment_in_a_lost_answer_comes_again(lost: int) -> None:
    result = run_scenario(Scenario.parse(DEAF % lost), "virtual")
    assert result.passed, result.failures
    assert {one.consumer for one in result.ledger.deliveries} == {"packer-1", "packer-2"}


EMPTY = """
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, name: shop, rate: 50/s}
  consumers: {topics: orders, name: packer, group: packing, share: true}
duration: 2s
steps:
  - {at: 1s, move: {partition: orders-0, to: 2}}
"""


def test_share_consumers__ask_the_last_leader_for_nothing() -> None:
    result = run_scenario(Scenario.parse(EMPTY), "virtual")
    assert result.passed, result.failures
    moved_ms = result.began_ms + 1_000
    asked = [
        broker
        for at_ms, broker, reply in result.recorder.answers
        if reply.request.api_key == ApiKey.SHARE_FETCH and at_ms > moved_ms
    ]
    assert asked.count(1) <= 3 < asked.count(2)


SERVED_LATE = """
# The request that a member gave up is served after its next one, and adds to the new session a
# partition that has moved away.
topology:
  brokers: 3
  topics: {orders: {assignment: [[2, 1, 3], [2, 3, 1]]}}
workload:
  producers: {topic: orders, rate: 10/s}
  consumers:
    topics: orders
    name: packer
    group: packing
    share: true
    config: {fetch.max.wait.ms: 100, request.timeout.ms: 600}
duration: 8s
steps:
  - {at: 5s, restart: client packer}
  - {at: 5s, rule: {api: ShareFetch, delay: 750ms, of: request}, for: 400ms}
  - {at: 5500ms, move: {partition: orders-1, to: 3}}
"""


def test_share_consumers__need_no_answer_for_what_they_do_not_ask_for() -> None:
    result = run_scenario(Scenario.parse(SERVED_LATE), "virtual")
    assert result.passed, result.failures
    assert not result.unfinished
