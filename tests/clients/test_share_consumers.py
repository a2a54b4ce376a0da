"""Share consumers: members take records in turn, release some, and survive a leader."""

from __future__ import annotations

from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.share_consumer import ShareConsumer
from kcluster.deaths import DeathKind
from tests.clients.story import Story
from tests.rig.cluster import TOPIC


def sharing(story: Story, name: str, release: float = 0.0) -> ShareConsumer:
    plan = ConsumerPlan(topics=(TOPIC,), commit="never")
    settings = ConsumerSettings(group_id="g")
    consumer = ShareConsumer(name, story.ledger, plan, settings, release)
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
