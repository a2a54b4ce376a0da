"""A consumer that reads from the follower in its rack, while that follower fails (KIP-392)."""

from __future__ import annotations

from kcluster.clients.consumer.consumer import Consumer
from kcluster.config.kafka.broker import RACK_AWARE_SELECTOR
from tests.clients.story import Story


def racks() -> tuple[Story, int]:
    """Brokers in racks r1, r2, r3; and the number of the follower whose rack is the consumer's."""
    story = Story(
        brokers=[{"id": number, "rack": f"r{number}"} for number in (1, 2, 3)],
        config={"replica.selector.class": RACK_AWARE_SELECTOR},
    )
    return story, story.leader % 3 + 1


def source(consumer: Consumer) -> int:
    """The broker from which the consumer reads."""
    (position,) = consumer.positions.values()
    preferred: int = position.preferred_replica
    return position.leader if preferred < 0 else preferred


def test_nearest_replica__new_records_arrive_one_fetch_of_the_follower_later() -> None:
    story, nearest = racks()
    consumer = story.consumer(client_rack=f"r{nearest}")
    story.producer()
    story.run(5_000)
    assert source(consumer) == nearest
    sent = {send.offset: send.sent_ms for send in story.ledger.sends}
    delays = [read.at_ms - sent[read.offset] for read in story.reads() if read.offset > 10]
    assert len(delays) > 400
    assert max(delays) < 100, "the watermark's arrival ends the wait, not fetch.max.wait.ms"


def test_nearest_replica__a_dead_follower_is_left_for_the_leader_until_it_is_back() -> None:
    story, nearest = racks()
    consumer = story.consumer(client_rack=f"r{nearest}", metadata_max_age_ms=2_000)
    story.producer()
    story.run(3_000)
    story.driver.kill(nearest)
    story.run(12_000)  # until the death is noticed, the leader sends it back each time
    assert source(consumer) == story.leader
    story.driver.start(nearest)
    assert story.until(lambda: source(consumer) == nearest)
    story.run(1_000)
    assert story.offsets() == list(range(len(story.offsets())))


def test_nearest_replica__a_follower_without_the_offset_does_not_reset_the_position() -> None:
    story, nearest = racks()
    consumer = story.consumer()
    producer = story.producer(count=300)
    story.driver.isolate(nearest, others=story.leader)
    assert story.until(lambda: consumer.records_read == 300 and producer.is_done)
    (position,) = consumer.positions.values()
    position.prefer(nearest, story.driver.now_ms + 60_000)
    story.producer("q", count=100)
    assert story.until(lambda: consumer.records_read == 400)
    assert ("Fetch", "OFFSET_OUT_OF_RANGE") in story.errors("c")
    assert source(consumer) == story.leader
    assert story.offsets() == list(range(400))
